"""What is said where a process gets no more files or memory."""

from __future__ import annotations

import errno
import os
import resource

import pytest

from envcheck.cli.main import limit_explained


def explained(error: BaseException, monkeypatch: pytest.MonkeyPatch, limit: int) -> str:
    monkeypatch.setattr(resource, "getrlimit", lambda what: (limit, limit))
    found = limit_explained(error)
    return " | ".join(found) if found else ""


@pytest.mark.parametrize(
    ("error", "limit", "sentence"),
    [
        (
            OSError(errno.EMFILE, os.strerror(errno.EMFILE)),
            16,
            "more open files than it may have (16)",
        ),
        (OSError(errno.ENFILE, ""), 16, "more open files"),
        (  # tempfile's, of no directory that can be written, or of no file that may be opened
            FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']"),
            6,
            "no temporary file can be made, with at most 6 open files | set TMPDIR",
        ),
        (MemoryError(), 400 << 20, "may use only 400 MiB of memory"),
        (OSError(errno.ENOMEM, ""), resource.RLIM_INFINITY, "not enough memory or threads |"),
        (RuntimeError("can't start new thread"), resource.RLIM_INFINITY, "memory or threads"),
        (
            ImportError("x.so: failed to map segment from shared object"),
            1 << 20,
            "may use only 1 MiB",
        ),
    ],
)
def test_a_limit_is_named(
    error: BaseException, limit: int, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sentence in explained(error, monkeypatch, limit)


@pytest.mark.parametrize("error", [OSError(errno.EACCES, ""), RuntimeError("x"), ValueError("x")])
def test_another_error_is_none_of_a_limit(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert explained(error, monkeypatch, 16) == ""
