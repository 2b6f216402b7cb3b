"""The directory that an image is built from: lists that are a lock, and nothing of others' written over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from envcheck.exit_codes import UsageError
from envcheck.install.export import context_writer


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
