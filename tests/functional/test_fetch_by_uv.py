"""uv fetches the lock's files from their own addresses: once, and none with other bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from demo_stack import Demo, demo
from index_server import Access
from installing import Home
from wheel_maker import wheel


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Demo]:
    with demo(tmp_path / "shop", payload=3 << 20) as running:
        yield running


def fetched(shop: Demo) -> list[str]:
    return [request.path.rpartition("/")[2] for request in shop.index.asked(".whl")]


def test_a_second_environment_fetches_nothing(home: Home, shop: Demo, tmp_path: Path) -> None:
    home.install(*shop.selection, "--path", tmp_path / "one")
    before = fetched(shop)
    assert "demo_lib-1.5-py3-none-any.whl" in before
    second = home.install(*shop.selection, "--path", tmp_path / "two")
    assert fetched(shop) == before
    assert second.report["plan"]["download_bytes"] == 0
    (payload,) = (tmp_path / "two").rglob("bytes.bin")
    assert payload.stat().st_nlink >= 3  # linked from the cache, as in the first


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda file: wheel(file.parent, "demo-lib", "1.5", payload=9), "Hash mismatch"),
        (Path.unlink, "404 Not Found"),
    ],
    ids=["other bytes", "gone"],
)
def test_what_is_not_the_locked_file_is_not_installed(
    home: Home, shop: Demo, change: Callable[[Path], object], sentence: str
) -> None:
    change(shop.files / "demo_lib-1.5-py3-none-any.whl")
    result = home.envcheck("install", *shop.selection, "--yes", "--format", "json")
    assert result.returncode == 5
    assert sentence in json.loads(result.stdout)["error"]["sentence"]
    assert not (home.root("demo") / "current").exists()


def test_credentials_of_the_index_reach_its_files(home: Home, tmp_path: Path) -> None:
    access = Access(user="someone", password="secret-word")
    with demo(tmp_path / "shop", access=access) as shop:
        secrets = {"UV_INDEX_PUBLIC_USERNAME": "someone", "UV_INDEX_PUBLIC_PASSWORD": "secret-word"}
        made = home.install(*shop.selection, **secrets)
        assert made.installed()["demo-lib"]
    logs = [path.read_text() for path in (made.prefix / ".envcheck").rglob("*") if path.is_file()]
    assert "secret-word" not in made.progress + json.dumps(made.report) + "".join(logs)
