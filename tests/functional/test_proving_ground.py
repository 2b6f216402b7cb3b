"""The tests' own index: that it serves as a real one does, and that installers take it for one."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import certificates
import pytest
import uv
from cli import environment
from index_server import Access, Index, serve
from index_site import JSON_TYPE, Offer
from wheel_maker import sdist, sha256, wheel

BIG = 300_000


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    wheel(folder, "Demo.App", "1.0+nv23.03", build="7", requires=["demo-lib~=2.0"],
          requires_python=">=3.6", scripts={"demo": "demo_app:main"},
          modules={"demo_app.py": "def main():\n    print('works')\n"})  # fmt: skip
    wheel(folder, "demo-lib", "2.1", payload=BIG)
    wheel(folder, "demo-lib", "3.0")
    sdist(folder, "demo-source", "0.2.2", modules={"demo_source/__init__.py": "value = 1\n"})
    return folder


@pytest.fixture
def index(files: Path, tmp_path: Path) -> Iterator[Index]:
    with serve(files, tmp_path / "an index") as served:
        yield served


def ask(url: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    request = urllib.request.Request(
        url, headers={k.replace("_", "-"): v for k, v in headers.items()}, method=method
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=10) as answer:
            return answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, {k.lower(): v for k, v in error.headers.items()}, error.read()


def test_a_wheel_is_the_same_bytes_every_time_and_says_what_it_holds(tmp_path: Path) -> None:
    tags = "py2.py3-none-manylinux1_x86_64"
    made = [
        wheel(tmp_path / name, "nvidia-demo", "1.0+nv23.03", build="12", tags=tags, payload=1000)
        for name in ("one", "two")
    ]
    assert made[0].name == "nvidia_demo-1.0+nv23.03-12-py2.py3-none-manylinux1_x86_64.whl"
    assert made[0].read_bytes() == made[1].read_bytes()
    with zipfile.ZipFile(made[0]) as archive:
        told = archive.read("nvidia_demo-1.0+nv23.03.dist-info/WHEEL").decode()
        record = archive.read("nvidia_demo-1.0+nv23.03.dist-info/RECORD").decode().splitlines()
        names = archive.namelist()
    assert "Tag: py2-none-manylinux1_x86_64\nTag: py3-none-manylinux1_x86_64\n" in told
    assert [line.partition(",")[0] for line in record] == names


def test_pages_are_html_or_json_as_asked(index: Index, files: Path) -> None:
    page = f"{index.url}demo-lib/"
    _, headers, body = ask(page)
    assert headers["content-type"].startswith("text/html")
    name = "demo_lib-2.1-py3-none-any.whl"
    assert f'href="../../files/{name}#sha256={sha256(files / name)}"' in body.decode()
    _, headers, body = ask(page, Accept=f"{JSON_TYPE}, text/html;q=0.1")
    assert headers["content-type"].startswith(JSON_TYPE)
    told = {file["filename"]: file for file in json.loads(body)["files"]}
    assert told[name]["size"] == (files / name).stat().st_size
    assert told[name]["hashes"] == {"sha256": sha256(files / name)}
    assert b"_payload" not in ask(f"{index.origin}/files/{name}.metadata")[2]
    assert b"Name: demo-lib" in ask(f"{index.origin}/files/{name}.metadata")[2]
    assert ask(f"{index.url}nobody/")[0] == 404


def test_ranges(index: Index, files: Path) -> None:
    url = f"{index.origin}/files/demo_lib-2.1-py3-none-any.whl"
    whole = (files / "demo_lib-2.1-py3-none-any.whl").read_bytes()
    status, headers, body = ask(url, method="HEAD")
    assert (status, body, headers["accept-ranges"]) == (200, b"", "bytes")
    assert int(headers["content-length"]) == len(whole)
    tag = headers["etag"]
    status, headers, body = ask(url, Range="bytes=100-", If_Range=tag)
    assert (status, body) == (206, whole[100:])
    assert headers["content-range"] == f"bytes 100-{len(whole) - 1}/{len(whole)}"
    assert ask(url, Range="bytes=5-9")[2] == whole[5:10]
    assert ask(url, Range="bytes=-22")[2] == whole[-22:]
    assert ask(url, Range="bytes=100-", If_Range='"other"')[::2] == (200, whole)
    assert ask(url, Range=f"bytes={len(whole)}-")[0] == 416


def test_the_log_tells_what_was_asked(index: Index) -> None:
    ask(f"{index.origin}/files/demo_lib-2.1-py3-none-any.whl", Range="bytes=0-99")
    ask(f"{index.url}demo-app/", Accept="text/html")
    first, second = index.requests()
    assert (first.path, first.status, first.sent) == (
        "/files/demo_lib-2.1-py3-none-any.whl",
        206,
        100,
    )
    assert first.range == "bytes=0-99"
    assert (second.path, second.accept) == ("/simple/demo-app/", "text/html")
    assert index.asked("demo-app") == [second]


def test_what_comes_and_goes_is_seen_after_a_refresh(index: Index, files: Path) -> None:
    wheel(files, "demo-late", "1.0")
    (files / "demo-source-0.2.2.tar.gz").unlink()
    pages = [f"{index.url}{name}/" for name in ("demo-late", "demo-source")]
    assert [ask(page)[0] for page in pages] == [404, 200]
    index.refresh()
    assert [ask(page)[0] for page in pages] == [200, 404]


def test_an_index_that_tells_little(files: Path, tmp_path: Path) -> None:
    yanked = {"demo_lib-3.0-py3-none-any.whl": "it is <broken>"}
    offer = Offer(json=False, metadata=False, hashes=False, yanked=yanked)
    with serve(files, tmp_path / "index", offer=offer) as index:
        _, headers, body = ask(f"{index.url}demo-lib/", Accept=JSON_TYPE)
        assert headers["content-type"].startswith("text/html")
        assert b"sha256" not in body and b"metadata" not in body
        assert b'data-yanked="it is &lt;broken&gt;"' in body
        assert ask(f"{index.origin}/files/demo_lib-2.1-py3-none-any.whl.metadata")[0] == 404


def test_an_account_is_asked_for(files: Path, tmp_path: Path) -> None:
    access = Access(user="someone", password="a secret:/@")
    with serve(files, tmp_path / "index", access=access) as index:
        status, headers, _ = ask(f"{index.url}demo-lib/")
        assert (status, headers["www-authenticate"]) == (401, 'Basic realm="index"')
        assert ask(f"{index.origin}/files/demo_lib-3.0-py3-none-any.whl")[0] == 401
        name = "someone:a%20secret%3A%2F%40"
        assert f"//{name}@127.0.0.1" in index.url_with_credentials
        install(tmp_path, index.url_with_credentials, "demo-lib")


def test_tls_with_an_authority_of_its_own(files: Path, tmp_path: Path) -> None:
    tls = certificates.make(tmp_path / "tls")
    with serve(files, tmp_path / "index", access=Access(tls=tls)) as index:
        assert index.url.startswith("https://")
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            ask(f"{index.url}demo-lib/")
        trusting = ssl.create_default_context(cafile=str(tls.authority))
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trusting)
        )
        assert b"demo_lib" in opener.open(f"{index.url}demo-lib/", timeout=10).read()


def install(tmp_path: Path, url: str, *requirements: str) -> Path:
    """Into a new environment, by uv: its Python."""
    clean = environment(UV_CACHE_DIR=str(tmp_path / "uv"), HOME=str(tmp_path))
    python = tmp_path / "env" / "bin" / "python"
    program = uv.find_uv_bin()
    subprocess.run(
        [program, "--no-config", "venv", "-q", "--python", sys.executable, tmp_path / "env"],
        check=True,
        env=clean,
    )
    subprocess.run(
        [program, "--no-config", "pip", "install", "-q", "--python", python, "--default-index",
         url, *requirements],
        check=True,
        env=clean,
    )  # fmt: skip
    return python


def test_uv_installs_from_it(index: Index, tmp_path: Path) -> None:
    python = install(tmp_path, index.url, "demo-app")
    told = subprocess.run(
        [python.with_name("demo")], capture_output=True, text=True, check=True, env=environment()
    )
    assert told.stdout == "works\n"
    # Metadata alone for the resolver, and the newest one was not what was wanted.
    assert index.asked("demo_lib-2.1-py3-none-any.whl.metadata")
    assert not index.asked("demo_lib-3.0-py3-none-any.whl")


def test_pip_downloads_from_it_with_hashes(index: Index, files: Path, tmp_path: Path) -> None:
    name = "Demo_App-1.0+nv23.03-7-py3-none-any.whl"
    wanted = tmp_path / "requirements.txt"
    wanted.write_text(f"demo-app==1.0+nv23.3 --hash=sha256:{sha256(files / name)}\n")
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--require-hashes",
         "--index-url", index.url, "--dest", tmp_path / "got", "-r", wanted],
        check=True,
        env=environment(PIP_CACHE_DIR=str(tmp_path / "pip"), PIP_DISABLE_PIP_VERSION_CHECK="1"),
    )  # fmt: skip
    assert [path.name for path in (tmp_path / "got").iterdir()] == [name]
