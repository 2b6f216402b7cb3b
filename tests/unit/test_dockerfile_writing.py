"""A directory that an image is built from: whole or as it was, and nothing of anybody else's."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from envcheck.exit_codes import Cannot, UsageError
from envcheck.install.export import context_writer

OLD = {"Dockerfile": b"# envcheck 1\n", "requirements.txt": b"# envcheck 1\n"}
NEW = {"Dockerfile": b"# envcheck 2\n", "requirements-pip.txt": b"# envcheck 2\n"}


class Killed(BaseException):
    """As by kill -9: nothing is cleaned up in what raises it here but the staging folder."""


def there(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
def test_a_disk_that_refuses_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    folder = tmp_path / "context"
    context_writer.write(folder, OLD)

    def refuse(path: Path, data: bytes) -> int:
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr(Path, "write_bytes", refuse)
    for place in (folder, tmp_path / "new"):
        with pytest.raises((Cannot, UsageError), match=f"--dockerfile {place}: ") as refused:
            context_writer.write(place, NEW)
        assert isinstance(refused.value, Cannot) == (number == errno.ENOSPC)
    assert there(folder) == OLD and not (tmp_path / "new").exists()


@pytest.mark.parametrize("after", range(3))
def test_where_the_dockerfile_is_the_rest_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    folder = tmp_path / "context"
    context_writer.write(folder, OLD)
    moved: list[str] = []
    replace = Path.replace

    def kill(path: Path, target: Path) -> Path:
        if len(moved) == after:
            raise Killed
        moved.append(path.name)
        return replace(path, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", kill)
        try:
            context_writer.write(folder, NEW)
        except Killed:
            assert "Dockerfile" not in there(folder)
    (folder / ".envcheck-left").mkdir()
    context_writer.write(folder, NEW)
    assert there(folder) == NEW


def test_a_name_that_is_no_file_is_somebody_elses(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "Dockerfile")
    with pytest.raises(UsageError, match="envcheck did not make it"):
        context_writer.check(tmp_path)
