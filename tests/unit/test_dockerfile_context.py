"""The directory that an image is built from: lists that are a lock, and nothing of others' written over."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from planned import GAST, SETUPTOOLS, lock, stack

from envcheck.cli.terminal import Terminal
from envcheck.exit_codes import Cannot, UsageError
from envcheck.install import pylock
from envcheck.install.catalogue import load as catalogue
from envcheck.install.export import build_context, context_writer, requirement_lists
from envcheck.install.export.dockerfile import render
from envcheck.install.lockfile import Lockfile
from envcheck.install.registry.client import RegistryClient
from envcheck.install.request import InstallOptions, Request

DOCKERFILES = Path(__file__).resolve().parents[2] / "Dockerfiles"


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "load", lambda name: stack())


def put(folder: Path, locked: Lockfile) -> None:
    for name, text in requirement_lists.of_lock(stack(), locked).texts.items():
        (folder / name).write_text(text)


def test_what_is_read_back_gives_the_same_dockerfile(tmp_path: Path, known: None) -> None:
    locked = lock(*lock().packages, GAST, building=[SETUPTOOLS], provided={"nvidia-pyindex": "x"})
    put(tmp_path, locked)
    kept = requirement_lists.read(tmp_path)
    assert kept is not None
    assert kept.of.digest == pylock.digest(locked)
    made = requirement_lists.of_lock(stack(), locked)
    assert kept == made and kept.texts == made.texts
    assert render(kept) == render(made)


def test_no_address_is_in_a_list() -> None:
    for text in requirement_lists.of_lock(stack(), lock()).texts.values():
        assert "://" not in text and text.count("sha256:") == text.count("==")


def test_lists_of_two_locks_are_refused(tmp_path: Path, known: None) -> None:
    put(tmp_path, lock())
    other = requirement_lists.of_lock(stack(), lock(release="23.02")).texts
    (tmp_path / "requirements.txt").write_text(other["requirements.txt"])
    with pytest.raises(UsageError, match="of several locks"):
        requirement_lists.read(tmp_path)


def test_a_line_without_a_hash_is_refused_by_its_number(tmp_path: Path, known: None) -> None:
    put(tmp_path, lock())
    with (tmp_path / "requirements.txt").open("a") as file:
        file.write("numpy\n")
    with pytest.raises(UsageError, match=r"requirements.txt:4: this is not NAME==VERSION"):
        requirement_lists.read(tmp_path)


def test_a_directory_without_lists_is_no_lock(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("numpy\n")
    assert requirement_lists.read(tmp_path) is None


@pytest.mark.parametrize("name", ["Dockerfile", "requirements-dev.txt", "pylock.toml"])
def test_what_is_somebody_elses_is_not_written_over(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("FROM scratch\n")
    with pytest.raises(UsageError, match=f"{name} exists, and envcheck did not make it"):
        context_writer.write(tmp_path, {"Dockerfile": b"# envcheck\n"})
    assert (tmp_path / name).read_text() == "FROM scratch\n"
    assert len(list(tmp_path.iterdir())) == 1


def test_what_envcheck_wrote_before_goes_and_the_rest_stays(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    old = {"requirements-nvidia.txt": b"# written by envcheck\n", "Dockerfile": b"# envcheck\n"}
    context_writer.write(folder, {**old, "envcheck_gpu-0.0.9-py3-none-any.whl": b"old"})
    (folder / "train.py").write_text("pass\n")
    context_writer.write(folder, {"Dockerfile": b"# envcheck, again\n"})
    assert sorted(p.name for p in folder.iterdir()) == ["Dockerfile", "train.py"]
    assert (folder / "Dockerfile").read_bytes() == b"# envcheck, again\n"
    assert (folder / "Dockerfile").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda at: at.write_text(""), "this is not a directory"),
        (lambda at: None, "there is no directory"),
    ],
)
def test_a_place_that_cannot_be(tmp_path: Path, make: Callable[[Path], object], words: str) -> None:
    make(tmp_path / "file")
    place = tmp_path / "file" if (tmp_path / "file").exists() else tmp_path / "a" / "b"
    with pytest.raises(UsageError, match=words):
        context_writer.check(place)


def test_a_tag_becomes_the_digest_that_it_has_today(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolved = SimpleNamespace(name="registry.example/team/tf", digest="sha256:" + "ab" * 32)
    monkeypatch.setattr(RegistryClient, "resolve", lambda self, reference, machine: resolved)
    needs = DOCKERFILES / "ngc" / requirement_lists.ENVCHECK  # no index is asked
    (tmp_path / needs.name).write_bytes(needs.read_bytes())
    request = Request(mode="container", image="registry.example/team/tf:1")
    build_context.make_over(request, tmp_path, InstallOptions(), Terminal())
    told = (tmp_path / "Dockerfile").read_text()
    assert f"\nARG BASE=registry.example/team/tf@{resolved.digest}\n" in told
    assert f"\nARG BASE_DIGEST={resolved.digest}\n" in told


def test_a_python_that_uv_makes_no_environment_for_is_refused(tmp_path: Path, known: None) -> None:
    put(tmp_path, lock(python="3.6"))
    before = sorted(tmp_path.iterdir())
    with pytest.raises(Cannot, match=r"Python 3\.8 and newer, and this lock is for 3\.6"):
        build_context.make(nullcontext(), Request(), tmp_path, InstallOptions(), Terminal())  # type: ignore[arg-type]
    assert sorted(tmp_path.iterdir()) == before
