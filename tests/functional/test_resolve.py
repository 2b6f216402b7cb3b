"""Resolving with uv against envcheck's own index: constraints, sdists, and what an error says."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from folder_view import INDEX, FolderView, bundled
from wheel_maker import sdist, sha256, wheel

from envcheck.exit_codes import Cannot, CouldNotLook
from envcheck.install.catalogue.model import Build, Release, Sdist, Stack
from envcheck.install.fit.models import Candidate, Choice
from envcheck.install.index.simple import ProjectFile
from envcheck.install.index.views import OpenIndex
from envcheck.install.lockfile import Lockfile
from envcheck.install.pythons.interpreter import Interpreter
from envcheck.install.request import Request
from envcheck.install.wheels import resolve, uv

MINOR = "{}.{}".format(*sys.version_info)
PYTHON = Interpreter(path=sys.executable, version=f"{MINOR}.0", found_in="PATH")


@pytest.fixture(autouse=True)
def _places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "files"
    wheel(folder, "pip", "26.3")
    monkeypatch.setattr(resolve, "seed", lambda minor: ["pip==26.3"])
    wheel(
        folder,
        "alpha",
        "1.0+nv23.3",
        requires=["beta>=1", "gamma; extra == 'gpu'"],
        extras={"gpu": []},
    )
    for version in ("1.0", "1.5", "2.0"):
        wheel(folder, "beta", version)
    return folder


def choice(*, python_to_get: str = "", **changes: Any) -> Choice:
    fields: dict[str, Any] = {
        "name": "test",
        "title": "a test's",
        "distribution": "alpha",
        "requirement": "alpha=={version}",
        "gpu": False,
        "architectures": ["x86_64"],
        "source": "made up",
        "provides": {"nvidia-pyindex": "pip.conf"},
    }
    release = {"release": "23.03", "version": "1.0+nv23.03", "python": [MINOR], "source": "made up"}
    mine = {k: changes.pop(k) for k in ("extra_requirements", "constraints") if k in changes}
    return Choice(
        stack=Stack(**(fields | changes)),
        candidate=Candidate(release=Release(**(release | mine)), python_to_get=python_to_get),
    )


def locked(view: FolderView, chosen: Choice, interpreter: Interpreter | None = PYTHON) -> Lockfile:
    return resolve.resolve(
        chosen, indexes=cast("OpenIndex", view), interpreter=interpreter, request=Request()
    )


def versions(lock: Lockfile) -> dict[str, str]:
    return {package.name: package.version for package in lock.packages}


def test_the_newest_that_the_pins_allow_is_locked(files: Path) -> None:
    lock = locked(FolderView(files), choice(constraints=["beta<2"]))
    assert versions(lock) == {"alpha": "1.0+nv23.3", "beta": "1.5", "pip": "26.3"}
    beta = lock.packages[1]
    assert (beta.index, beta.needed_by) == (INDEX, ["alpha"])
    assert beta.file.sha256 == sha256(files / beta.file.name)
    assert beta.file.size == (files / beta.file.name).stat().st_size
    assert (lock.stack, lock.release, lock.python) == ("test", "23.03", MINOR)
    assert lock.provided == {"nvidia-pyindex": "pip.conf"} and lock.building == []


def test_the_same_question_has_the_same_answer(files: Path) -> None:
    first = locked(FolderView(files), choice())
    second = locked(FolderView(files), choice())
    assert first.packages == second.packages


def allowed_sdist(path: Path, pin: str) -> Sdist:
    """The old-thing 0.2 in this file, built with ``pin``."""
    return Sdist(
        name="old-thing",
        version="0.2",
        sha256=sha256(path),
        why="has no wheel",
        source="made up",
        build=Build(requires=[pin]),
    )


def test_an_allowed_sdist_is_locked_with_what_builds_it(files: Path) -> None:
    path = sdist(files, "old-thing", "0.2", requires=["beta<2"])
    pin = "setuptools==" + bundled("setuptools", files).name.split("-")[1]
    allowed = allowed_sdist(path, pin)
    # A newer one that must not be taken for building.
    wheel(files, "setuptools", "999.0")
    chosen = choice(sdists=[allowed], extra_requirements=["old-thing"])
    lock = locked(FolderView(files), chosen)
    assert versions(lock)["old-thing"] == "0.2" and versions(lock)["beta"] == "1.5"
    assert [f"{tool.name}=={tool.version}" for tool in lock.building] == [pin]
    assert lock.building[0].needed_by == ["old-thing"]


def test_for_a_python_that_is_not_here_yet(files: Path) -> None:
    wheel(files, "beta", "3.0", tags="cp38-cp38-manylinux2014_x86_64")
    wheel(files, "beta", "4.0", tags="cp39-cp39-manylinux2014_x86_64")
    lock = locked(FolderView(files), choice(python_to_get="3.8"), None)
    assert (versions(lock)["beta"], lock.python) == ("3.0", "3.8")


def test_an_sdist_for_a_python_that_is_not_here_yet(files: Path) -> None:
    path = sdist(files, "old-thing", "0.2", requires=["beta<2"])
    bundled("setuptools", files)
    wheel(files, "setuptools", "0.5", modules={"setuptools/__init__.py": "import gone_from_3_12\n"})
    allowed = Sdist(
        name="old-thing",
        version="0.2",
        sha256=sha256(path),
        why="has no wheel",
        source="made up",
        build=Build(requires=["setuptools==0.5"]),
    )
    chosen = choice(python_to_get="3.8", sdists=[allowed], extra_requirements=["old-thing"])
    lock = locked(FolderView(files), chosen, None)
    assert versions(lock)["beta"] == "1.5"
    assert [f"{tool.name}=={tool.version}" for tool in lock.building] == ["setuptools==0.5"]


def test_what_cannot_be_met_is_told_with_what_was_kept_out(files: Path) -> None:
    view = FolderView(files, {"beta": "of beta, 9.0 is a placeholder", "alpha": ""})
    with pytest.raises(Cannot) as caught:
        locked(view, choice(constraints=["beta>=9"]))
    told = str(caught.value)
    assert told.startswith(f"test 23.03 cannot be resolved for Python {MINOR}: Because ")
    assert "beta>=9" in told and told.endswith("; of beta, 9.0 is a placeholder")
    assert "\n" not in told and "envcheck.invalid" not in told


class Failing(FolderView):
    def project(self, name: str) -> list[ProjectFile] | None:
        if name == "beta":
            raise CouldNotLook("https://index.example/simple/beta/ answered 503")
        return super().project(name)


def test_an_index_that_fails_is_told_as_such(files: Path) -> None:
    with pytest.raises(CouldNotLook, match="answered 503"):
        locked(Failing(files), choice())


def test_an_sdist_whose_metadata_cannot_be_built_is_no_refusal_of_the_machine(files: Path) -> None:
    path = sdist(files, "old-thing", "0.2", setup="raise SystemExit('no metadata today')\n")
    pin = "setuptools==" + bundled("setuptools", files).name.split("-")[1]
    allowed = allowed_sdist(path, pin)
    with pytest.raises(CouldNotLook, match=r"could not resolve .*no metadata today"):
        locked(FolderView(files), choice(sdists=[allowed], extra_requirements=["old-thing"]))


def test_nothing_of_the_users_reaches_the_resolver(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(tmp_path / "other", "beta", "99.0")
    (tmp_path / ".config" / "uv").mkdir(parents=True)
    (tmp_path / ".config" / "uv" / "uv.toml").write_text(f'find-links = ["{tmp_path}/other"]\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path / "other"))
    monkeypatch.setenv("UV_CONSTRAINT", str(tmp_path / "no such file"))
    monkeypatch.setenv("UV_OFFLINE", "1")
    assert versions(locked(FolderView(files), choice()))["beta"] == "2.0"


def test_without_uv_it_says_what_to_do(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uv, "_candidates", lambda: [Path("/bin/false"), Path("/nowhere/uv")])
    uv.binary.cache_clear()
    try:
        with pytest.raises(Cannot, match="none runs on this machine") as caught:
            locked(FolderView(files), choice())
        assert "pip install uv" in caught.value.hint
        assert uv.described() == ""
    finally:
        uv.binary.cache_clear()
