"""Resolving with uv: constraints, named sdists, Pythons that are not here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from index_server import Index, serve
from index_site import Offer
from resolving import MINOR, choice, isolate, locked, stack, versions
from wheel_maker import sdist, sha256, wheel

from envcheck.install.catalogue.model import Build, Sdist
from envcheck.install.wheels import resolve

ALPHA = "alpha=={version}"


_autouse = pytest.fixture(autouse=True)(isolate)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    wheel(folder, "alpha", "1.0", requires=["beta>=1", "gamma; extra == 'gpu'"], extras={"gpu": []})
    for version in ("1.0", "1.5", "2.0"):
        wheel(folder, "beta", version)
    wheel(folder, "beta", "4.0", tags="py3-none-win_amd64")
    wheel(folder, "beta", "5.0", requires_python=">=3.99")
    wheel(folder, "beta", "6.0")
    sdist(folder, "beta", "7.0")
    return folder


@pytest.fixture
def index(files: Path, tmp_path: Path) -> Iterator[Index]:
    offer = Offer(yanked={"beta-6.0-py3-none-any.whl": "broken"})
    with serve(files, tmp_path / "index", offer=offer) as site:
        yield site


def test_the_newest_that_the_pins_allow_is_locked(
    files: Path, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(files, "pip", "26.3")
    index.refresh()
    monkeypatch.setattr(resolve, "seed", lambda minor: ["pip==26.3"])
    lock = locked(choice(stack(ALPHA), constraints=["beta<2"]), index.url)
    assert versions(lock) == {"alpha": "1.0", "beta": "1.5", "pip": "26.3"}
    beta = lock.packages[1]
    assert (beta.index, beta.needed_by) == (index.url, ["alpha"])
    assert beta.file.sha256 == sha256(files / beta.file.name)
    assert beta.file.size == (files / beta.file.name).stat().st_size
    assert beta.file.url == f"{index.origin}/files/{beta.file.name}"
    assert (lock.stack, lock.release, lock.python) == ("test", "23.03", MINOR)
    assert lock.provided == {"nvidia-pyindex": "pip.conf"} and lock.building == []


def named(path: Path, *requires: str) -> Sdist:
    """The old-thing 0.2 in this file."""
    return Sdist(
        name="old-thing",
        version="0.2",
        sha256=sha256(path),
        why="has no wheel",
        source="made up",
        requires_dist=list(requires),
        build=Build(requires=["setuptools==70.0"]),
    )


@pytest.mark.parametrize("wanted", ["old-thing", "old-thing==0.2"])
@pytest.mark.parametrize("python_to_get", ["", "3.8"])
def test_a_named_sdist_is_locked_with_what_builds_it_and_nothing_is_built(
    files: Path, index: Index, wanted: str, python_to_get: str, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    path = sdist(files, "old-thing", "0.2", setup=f"open({str(mark)!r}, 'w')\n")
    sdist(files, "old-thing", "0.3", setup=f"open({str(mark)!r}, 'w')\n")
    for version in ("70.0", "999.0"):  # a newer one that must not be taken for building
        wheel(files, "setuptools", version)
    index.refresh()
    of = stack(ALPHA, sdists=[named(path, "beta<2")])
    chosen = choice(of, extra_requirements=[wanted], python_to_get=python_to_get)
    lock = locked(chosen, index.url)
    assert versions(lock)["old-thing"] == "0.2" and versions(lock)["beta"] == "1.5"
    assert [f"{tool.name}=={tool.version}" for tool in lock.building] == ["setuptools==70.0"]
    assert lock.building[0].needed_by == ["old-thing"]
    assert not mark.exists()
