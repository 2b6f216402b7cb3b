"""The open index for the resolver, and the closed one for the installer."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from index_fakes import PUBLIC, Fetcher, Session, Store, digest, wheel

from envcheck.exit_codes import CouldNotLook
from envcheck.install.catalogue.model import Index, Sdist, Stack
from envcheck.install.index.routes import Routes
from envcheck.install.index.simple import IndexBroken
from envcheck.install.index.views import ClosedIndex, OpenIndex
from envcheck.install.lockfile import LockedFile, LockedPackage, Lockfile
from envcheck.install.request import Request

NVIDIA = "https://nvidia.example/simple"
STACK = Stack(
    name="nvidia-tf1",
    title="",
    distribution="demo",
    requirement="",
    gpu=True,
    architectures=["x86_64"],
    source="",
    indexes=[Index(name="nvidia", urls=[NVIDIA], packages=["nvidia-*"], source="")],
    otherwise=["tensorflow"],
)
REAL = wheel("nvidia-tensorrt", "8.5.1")
NAME = "nvidia_tensorrt-8.5.1-py3-none-any.whl"
DIGEST = digest(REAL)


def page(*files: tuple[str, str]) -> tuple[bytes, str]:
    return "".join(f'<a href="{n}#{f}">x</a>' for n, f in files).encode(), "text/html"


def pages(**more: Any) -> dict[str, Any]:
    return {
        f"{NVIDIA}/nvidia-tensorrt/": page((NAME, f"sha256={DIGEST}")),
        f"{NVIDIA}/nvidia-tensorrt/{NAME}": (REAL, ""),
        "https://public.example/simple/nvidia-tensorrt/": page(
            ("nvidia_tensorrt-99.0.0-py3-none-any.whl", "sha256=" + "ee" * 32)
        ),
        "https://public.example/simple/nvidia-cublas-cu117/": page(
            ("nvidia_cublas_cu117-11.10.1.25-py3-none-any.whl", "sha256=" + "ee" * 32)
        ),
        **more,
    }


def opened(session: Session, store: Store, stack: Stack = STACK) -> OpenIndex:
    routes = Routes(stack, Request(), PUBLIC)
    fetcher: Any = Fetcher(session, store)
    return OpenIndex(routes, session, store, stack, fetcher)  # type: ignore[arg-type]


def test_a_claimed_project_is_seen_at_its_index_alone(tmp_path: Path) -> None:
    session = Session(pages())
    index = opened(session, Store(tmp_path))
    (file,) = index.project("nvidia-tensorrt") or []
    assert str(file.version) == "8.5.1" and file.metadata == "true"
    assert index.project("NVIDIA_cublas.cu117") is None
    assert not [url for url, _ in session.asked if url.startswith("https://public.example")]
    assert "is taken from no other index" in index.explain("nvidia-cublas-cu117")


def test_a_project_is_asked_for_once(tmp_path: Path) -> None:
    session = Session(pages())
    index = opened(session, Store(tmp_path))
    for name in ("nvidia-tensorrt", "nvidia_tensorrt", "missing", "missing"):
        index.project(name)
    assert len(session.asked) == 2


def test_links_are_relative_to_where_an_index_redirects(tmp_path: Path) -> None:
    body, kind = page((NAME, f"sha256={DIGEST}"))
    moved = "https://redist.example/compute/nvidia-tensorrt/"
    index = opened(Session({f"{NVIDIA}/nvidia-tensorrt/": (body, kind, moved)}), Store(tmp_path))
    assert [file.url for file in index.project("nvidia-tensorrt") or []] == [f"{moved}{NAME}"]


def test_a_failure_is_remembered_too(tmp_path: Path) -> None:
    session = Session({f"{NVIDIA}/nvidia-dali/": 503})
    index = opened(session, Store(tmp_path))
    for _ in range(2):
        with pytest.raises(CouldNotLook):
            index.project("nvidia-dali")
    assert len(session.asked) == 1 and index.explain("nvidia-dali") == ""


def test_an_own_index_that_fails_is_told_with_what_can_be_had_instead(tmp_path: Path) -> None:
    session = Session({f"{NVIDIA}/nvidia-dali/": 503, "https://public.example/simple/six/": 503})
    index = opened(session, Store(tmp_path))
    with pytest.raises(CouldNotLook, match="the nvidia index does not answer") as caught:
        index.project("nvidia-dali")
    assert "--stack tensorflow" in caught.value.hint
    with pytest.raises(CouldNotLook) as caught:
        index.project("six")
    assert "nvidia" not in str(caught.value) and not caught.value.hint


def test_a_size_that_came_with_the_metadata_is_not_asked_for_again(tmp_path: Path) -> None:
    session = Session(pages())
    index = opened(session, Store(tmp_path))
    index.project("nvidia-tensorrt")
    index.metadata(DIGEST)
    asked = len(session.asked)
    assert index.pin([DIGEST])[DIGEST].file.size == len(REAL)
    assert len(session.asked) == asked


def test_a_size_that_was_asked_for_is_kept(tmp_path: Path) -> None:
    beside = f"{NVIDIA}/nvidia-tensorrt/{NAME}.metadata"
    store = Store(tmp_path)
    sizes, asked = [], []
    for _ in range(2):
        session = Session(pages(**{beside: (b"Metadata-Version: 2.1\n", "")}))
        announced = f'<a href="{NAME}#sha256={DIGEST}" data-core-metadata="true">x</a>'
        session.pages[f"{NVIDIA}/nvidia-tensorrt/"] = (announced.encode(), "text/html")
        index = opened(session, store)
        index.project("nvidia-tensorrt")
        assert index.metadata(DIGEST) == b"Metadata-Version: 2.1\n"
        sizes.append(index.pin([DIGEST])[DIGEST].file.size)
        asked.append([url.rpartition("/")[2] for url, _ in session.asked])
    assert sizes == [len(REAL)] * 2
    assert asked == [["", f"{NAME}.metadata", NAME], [""]]


def test_a_size_is_known_where_the_resolver_asks_for_no_metadata(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first = opened(Session(pages()), store)
    first.project("nvidia-tensorrt")
    first.metadata(DIGEST)
    session = Session(pages())
    index = opened(session, store)
    index.project("nvidia-tensorrt")
    assert index.pin([DIGEST])[DIGEST].file.size == len(REAL)
    assert len(session.asked) == 1


def test_refusals_are_kept_and_explained(tmp_path: Path) -> None:
    session = Session(
        {"https://public.example/simple/demo/": page(("demo-1.tar.gz", "sha256=" + "ee" * 32))}
    )
    index = opened(session, Store(tmp_path))
    assert index.project("demo") == []
    assert [refused.filename for refused in index.refusals["demo"]] == ["demo-1.tar.gz"]
    assert index.explain("Demo").startswith("of demo at the public index (https://public.example/")
    assert index.explain("never-asked-for") == ""


def test_metadata_and_file_of_a_shown_wheel(tmp_path: Path) -> None:
    index = opened(Session(pages()), Store(tmp_path))
    assert index.metadata(DIGEST) is None and index.file(DIGEST) is None
    index.project("nvidia-tensorrt")
    assert b"Version: 8.5.1" in (index.metadata(DIGEST) or b"")
    transfer = index.file(DIGEST)
    assert transfer is not None and transfer.total == len(REAL)


def test_an_allowed_sdist_is_a_file_without_metadata(tmp_path: Path) -> None:
    url = "https://public.example/simple/gast/"
    session = Session({url: page(("gast-0.2.2.tar.gz", f"sha256={DIGEST}"))})
    allowed = Sdist(name="gast", version="0.2.2", sha256=DIGEST, why="", source="")
    index = opened(session, Store(tmp_path), msgspec.structs.replace(STACK, sdists=[allowed]))
    (file,) = index.project("gast") or []
    assert file.metadata == "" and index.metadata(DIGEST) is None


def test_a_second_resolution_asks_no_wheel(tmp_path: Path) -> None:
    store = Store(tmp_path)
    index = opened(Session(pages()), store)
    index.project("nvidia-tensorrt")
    index.metadata(DIGEST)
    session = Session(pages())
    again = opened(session, store)
    again.project("nvidia-tensorrt")
    assert again.metadata(DIGEST)
    assert [url for url, _ in session.asked] == [f"{NVIDIA}/nvidia-tensorrt/"]


def test_pinning_asks_for_the_size_that_the_index_does_not_say(tmp_path: Path) -> None:
    index = opened(Session(pages()), Store(tmp_path))
    index.project("nvidia-tensorrt")
    pinned = index.pin([DIGEST, DIGEST])
    url = f"{NVIDIA}/nvidia-tensorrt/{NAME}"
    assert list(pinned) == [DIGEST]
    assert pinned[DIGEST].file == LockedFile(name=NAME, url=url, sha256=DIGEST, size=len(REAL))
    assert pinned[DIGEST].index == f"{NVIDIA}/" and not pinned[DIGEST].learnt
    with pytest.raises(KeyError):
        index.pin(["ff" * 32])


def hashless(fragment: str = "") -> tuple[dict[str, Any], str]:
    url = f"{NVIDIA}/nvidia-tensorrt/{NAME}"
    key = f"url-{hashlib.sha256(url.encode()).hexdigest()}"
    return pages(**{f"{NVIDIA}/nvidia-tensorrt/": page((NAME, fragment))}), key


def test_a_file_without_sha256_is_fetched_once_to_learn_it(tmp_path: Path) -> None:
    world, key = hashless("md5=" + hashlib.md5(REAL, usedforsecurity=False).hexdigest())
    store = Store(tmp_path)
    index = opened(Session(world), store)
    assert [file.sha256 for file in index.project("nvidia-tensorrt") or []] == [""]
    assert b"Version: 8.5.1" in (index.metadata(key) or b"")
    assert not store.has(DIGEST)  # resolving takes its tail alone
    pinned = index.pin([key])[key]
    assert pinned.learnt and (pinned.file.sha256, pinned.file.size) == (DIGEST, len(REAL))
    assert store.has(DIGEST)
    assert sorted(path.name for path in tmp_path.iterdir()) == [DIGEST]


def test_what_was_learnt_is_remembered(tmp_path: Path) -> None:
    world, key = hashless()
    store = Store(tmp_path)
    first = opened(Session(world), store)
    first.project("nvidia-tensorrt")
    first.pin([key])
    session = Session(world)
    again = opened(session, store)
    again.project("nvidia-tensorrt")
    assert again.pin([key])[key].file.sha256 == DIGEST
    assert len(session.asked) == 1


def test_a_file_that_has_not_the_md5_that_the_index_says(tmp_path: Path) -> None:
    world, key = hashless("md5=" + "0" * 32)
    store = Store(tmp_path)
    index = opened(Session(world), store)
    index.project("nvidia-tensorrt")
    with pytest.raises(IndexBroken, match="md5"):
        index.pin([key])
    assert not list(tmp_path.iterdir())


def test_a_lock_is_all_there_is(tmp_path: Path) -> None:
    session, store = Session({"https://x/a.whl": (REAL, "")}), Store(tmp_path)
    file = LockedFile(name=NAME, url="https://x/a.whl", sha256=DIGEST, size=len(REAL))
    package = LockedPackage(name="nvidia_tensorrt", version="8.5.1", index="https://x/", file=file)
    lock = Lockfile(
        stack="",
        release="",
        python="3.8",
        architecture="x86_64",
        packages=[package],
        building=[package],
    )
    fetcher: Any = Fetcher(session, store)
    index = ClosedIndex(lock, fetcher)
    (shown,) = index.project("nvidia-tensorrt") or []
    assert (shown.filename, shown.sha256, shown.metadata) == (NAME, DIGEST, "")
    assert str(shown.version) == "8.5.1"
    assert index.project("pip") is None and index.file("ff" * 32) is None
    assert index.metadata(DIGEST) is None
    transfer = index.file(DIGEST)
    assert transfer is not None and fetcher.wanted == [file]
