"""An index that redirects, and one that asks for a password: what the resolver sees of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from bad_server import BadServer, Way
from index_server import Access, serve
from resolving import choice, isolate, locked, stack
from wheel_maker import wheel

from envcheck.install.wheels import uv

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

    def noted(arguments: list[object], env: dict[str, str], settings: Path) -> object:
        folder = settings.parent
        started.append(" ".join(map(str, arguments)))
        started.extend(path.read_text() for path in folder.iterdir())
        return asked(arguments, env, settings)  # type: ignore[arg-type]

    monkeypatch.setattr(uv, "run_online", noted)
    access = Access(user="joe", password="s3cret/word")
    with serve(tmp_path / "files", tmp_path / "index", access=access) as site:
        found = locked(choice(stack("app")), site.url_with_credentials)
        assert [package.index for package in found.packages] == [site.url] * 2
        assert not [text for text in started if "s3cret" in text]
        (tmp_path / ".netrc").write_text("machine 127.0.0.1 login joe password s3cret/word\n")
        monkeypatch.setenv("HOME", str(tmp_path))
        assert locked(choice(stack("app")), site.url).packages == found.packages
