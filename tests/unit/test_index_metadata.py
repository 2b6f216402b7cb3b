"""A wheel's METADATA: from the store, beside the wheel, by ranges, from the whole wheel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from index_fakes import Refused, Session, Store, digest, wheel

from envcheck.install.index import metadata as subject
from envcheck.install.index.simple import IndexBroken, ProjectFile

URL = "https://files.example/demo-1.0-py3-none-any.whl"
SMALL = wheel("demo", "1.0", requires=("numpy<2",))
LARGE = wheel("demo", "1.0", padding=300_000)


def file(data: bytes, metadata: str = "", url: str = URL) -> ProjectFile:
    return ProjectFile(
        filename="demo-1.0-py3-none-any.whl", url=url, sha256=digest(data), metadata=metadata
    )


def never() -> Any:
    raise AssertionError("the whole wheel was asked for")


def ask(session: Session, store: Store, wanted: ProjectFile, whole: Any = never) -> bytes:
    return subject.metadata(session, store, wanted, whole)  # type: ignore[arg-type]


def test_a_small_wheel_takes_one_range(tmp_path: Path) -> None:
    session = Session({URL: (SMALL, "")})
    data = ask(session, Store(tmp_path), file(SMALL))
    assert data.startswith(b"Metadata-Version: 2.1\nName: demo\n") and b"numpy<2" in data
    assert session.asked == [(URL, "bytes=-65536")]


def test_a_large_wheel_takes_two(tmp_path: Path) -> None:
    session = Session({URL: (LARGE, "")})
    assert b"Name: demo" in ask(session, Store(tmp_path), file(LARGE))
    assert len(session.asked) == 2


def test_it_is_asked_for_once_in_a_lifetime(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first = ask(Session({URL: (SMALL, "")}), store, file(SMALL))
    assert ask(Session({}), store, file(SMALL)) == first


def test_without_a_sha256_nothing_is_kept(tmp_path: Path) -> None:
    store = Store(tmp_path)
    bare = ProjectFile(filename="demo-1.0-py3-none-any.whl", url=URL)
    assert ask(Session({URL: (SMALL, "")}), store, bare)
    assert store.kept == {}


def test_a_wheel_in_the_store_is_read_there(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.path(digest(SMALL)).write_bytes(SMALL)
    assert b"Name: demo" in ask(Session({}), store, file(SMALL))


def test_the_file_beside_the_wheel(tmp_path: Path) -> None:
    body = b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n"
    url = URL + "?token=1"
    session = Session({f"{URL}.metadata?token=1": (body, "")})
    assert ask(session, Store(tmp_path), file(SMALL, digest(body), url)) == body


def test_the_file_beside_the_wheel_with_other_bytes(tmp_path: Path) -> None:
    body = b"Metadata-Version: 2.1\n"
    session = Session({f"{URL}.metadata": (body, "")})
    with pytest.raises(IndexBroken) as caught:
        ask(session, Store(tmp_path), file(SMALL, "ab" * 32))
    assert digest(body) in str(caught.value) and "ab" * 32 in str(caught.value)


def test_metadata_that_is_announced_and_missing(tmp_path: Path) -> None:
    session = Session({URL: (SMALL, "")})
    assert b"Name: demo" in ask(session, Store(tmp_path), file(SMALL, "true"))


def test_what_the_index_says_is_not_swallowed(tmp_path: Path) -> None:
    with pytest.raises(Refused):
        ask(Session({f"{URL}.metadata": 503}), Store(tmp_path), file(SMALL, "true"))
    with pytest.raises(Refused):
        ask(Session({URL: 403}), Store(tmp_path), file(SMALL))


@pytest.mark.parametrize("status", [405, 416, 501])
def test_a_server_that_refuses_ranges(tmp_path: Path, status: int) -> None:
    path = tmp_path / "whole"
    path.write_bytes(SMALL)
    opened = lambda: path.open("rb")  # noqa: E731
    assert b"Name: demo" in ask(Session({URL: status}), Store(tmp_path), file(SMALL), opened)


def test_a_server_that_ignores_ranges(tmp_path: Path) -> None:
    path = tmp_path / "whole"
    path.write_bytes(SMALL)
    session = Session({URL: (SMALL, "")}, ranges=False)
    assert b"Name: demo" in ask(session, Store(tmp_path), file(SMALL), lambda: path.open("rb"))


def test_a_file_that_changes_in_between(tmp_path: Path) -> None:
    class Changing(Session):
        def get(self, url: str, **more: Any) -> Any:
            answer = super().get(url, **more)
            self.pages[url] = (LARGE + b"more", "")
            return answer

    with pytest.raises(IndexBroken, match="changed at the index"):
        ask(Changing({URL: (LARGE, "")}), Store(tmp_path), file(LARGE))


@pytest.mark.parametrize(
    "data",
    [b"", b"no zip", SMALL[:-30], SMALL.replace(b"METADATA", b"METABASE"), SMALL[:40]],
    ids=["empty", "no zip", "no end", "no metadata", "a head alone"],  # a zip knows the time of day
)
def test_what_is_no_wheel_is_said(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "whole"
    path.write_bytes(data)
    for ranges in (True, False):
        session = Session({URL: (data, "")}, ranges=ranges)
        with pytest.raises(IndexBroken, match=r"demo-1\.0-py3-none-any\.whl"):
            ask(session, Store(tmp_path), file(data), lambda: path.open("rb"))


def test_damaged_metadata_is_found_by_its_checksum(tmp_path: Path) -> None:
    data = SMALL.replace(b"Name: demo", b"Name: evil")
    with pytest.raises(IndexBroken, match="broken wheel"):
        ask(Session({URL: (data, "")}), Store(tmp_path), file(data))


def test_metadata_that_is_none(tmp_path: Path) -> None:
    session = Session({f"{URL}.metadata": (b"<html>login</html>", "")})
    with pytest.raises(IndexBroken, match=r"is none"):
        ask(session, Store(tmp_path), file(SMALL, "true"))
