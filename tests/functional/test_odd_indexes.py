"""Indexes that redirect, trickle or send too much: what the resolver sees of them."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from bad_server import BadServer, Way
from index_server import Access, serve
from resolving import choice, isolate, locked, stack
from wheel_maker import wheel

from envcheck.exit_codes import CouldNotLook
from envcheck.install import processes
from envcheck.install.wheels import uv, uv_watch

_autouse = pytest.fixture(autouse=True)(isolate)
NAME = "app-1.0-py3-none-any.whl"
PAGE = "/simple/app/"


@pytest.fixture
def odd() -> Iterator[BadServer]:
    with BadServer() as server:
        yield server


def test_an_index_that_redirects(odd: BadServer, tmp_path: Path) -> None:
    """As NVIDIA's first address does: links are relative to where the page came from."""
    data = wheel(tmp_path / "files", "app", "1.0", payload=200_000).read_bytes()
    link = f'<a href="{NAME}#sha256={hashlib.sha256(data).hexdigest()}">{NAME}</a>'.encode()
    odd.behave(PAGE, Way(redirect="/redist/app/", times=None))
    odd.file("/redist/app/", link, content_type="text/html")
    odd.file(f"/redist/app/{NAME}", data)
    (package,) = locked(choice(stack("app")), f"{odd.url}/simple/").packages
    assert package.file.url == f"{odd.url}/redist/app/{NAME}"


def test_credentials_reach_uv_by_the_environment_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(tmp_path / "files", "app", "1.0", requires=["lib"])
    wheel(tmp_path / "files", "lib", "1.0")
    asked = uv.run_online
    started: list[str] = []

    def noted(arguments: list[object], env: dict[str, str], settings: Path, whose: str) -> object:
        folder = settings.parent
        started.append(" ".join(map(str, arguments)))
        started.extend(path.read_text() for path in folder.iterdir())
        return asked(arguments, env, settings, whose)  # type: ignore[arg-type]

    monkeypatch.setattr(uv, "run_online", noted)
    access = Access(user="joe", password="s3cret/word")
    with serve(tmp_path / "files", tmp_path / "index", access=access) as site:
        found = locked(choice(stack("app")), site.url_with_credentials)
        assert [package.index for package in found.packages] == [site.url] * 2
        assert not [text for text in started if "s3cret" in text]
        (tmp_path / ".netrc").write_text("machine 127.0.0.1 login joe password s3cret/word\n")
        monkeypatch.setenv("HOME", str(tmp_path))
        assert locked(choice(stack("app")), site.url).packages == found.packages


def test_a_page_that_trickles_comes_to_an_end(
    odd: BadServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """uv waits for ever: each byte is within its timeout."""
    monkeypatch.setattr(uv_watch, "SILENCE", 3.0)
    odd.file(PAGE, b" " * (1 << 20), content_type="text/html")
    odd.behave(PAGE, Way(rate=5, times=None))
    with pytest.raises(
        CouldNotLook, match=r"the index 127\.0\.0\.1:\d+ sent no complete page in 3 s"
    ):
        locked(choice(stack("app")), f"{odd.url}/simple/")


def test_a_page_that_needs_gigabytes_is_refused(
    odd: BadServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1 MB of gzip; uv takes 2.5 GiB before it refuses that itself."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = packer.compress(b"<!DOCTYPE html>") + b"".join(
        packer.compress(bytes(b" " * (1 << 20))) for _ in range(1024)
    )
    odd.file(PAGE, packed + packer.flush(), content_type="text/html")
    odd.behave(PAGE, Way(headers={"Content-Encoding": "gzip"}, times=None))
    seen: list[int] = []
    resident = processes.resident
    monkeypatch.setattr(processes, "resident", lambda pid: seen.append(resident(pid)) or seen[-1])
    with pytest.raises(
        CouldNotLook, match=r"the index 127\.0\.0\.1:\d+ answers is too large: uv needs"
    ):
        locked(choice(stack("app")), f"{odd.url}/simple/")
    assert max(seen[:-1]) <= uv_watch.MEMORY < seen[-1]
