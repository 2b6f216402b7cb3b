"""The command line under limits of the shell: one sentence that names the limit."""

from __future__ import annotations

import re
import resource
from pathlib import Path

import pytest
from cli import PYTHON, environment
from processes import ran

from envcheck.exit_codes import ExitCode


@pytest.mark.parametrize(
    ("what", "limit", "sentence"),
    [
        (
            resource.RLIMIT_NOFILE,
            6,
            "may have \\(6\\)|at most 6 open files|Too many open files",
        ),
        (resource.RLIMIT_AS, 60 << 20, "may use only 60 MiB of memory, and needs more"),
    ],
)
def test_a_limit_is_one_sentence(what: int, limit: int, sentence: str, tmp_path: Path) -> None:
    done = ran(
        [PYTHON, "-m", "envcheck", "install", "--plan"],
        env=environment(HOME=str(tmp_path)),
        preexec_fn=lambda: resource.setrlimit(what, (limit, limit)),
    )
    error = done.stderr.decode()
    assert re.search(sentence, error) and "Traceback" not in error
    assert "internal error" not in error
    assert done.returncode == ExitCode.COULD_NOT_LOOK
