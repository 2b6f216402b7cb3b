"""Whose failure it was where nothing came back from a container: the runtime's, or its entrypoint's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from envcheck.collector import inside_troubles
from envcheck.collector.runtime.process import Result
from envcheck.collector.worker import messages
from envcheck.collector.worker.parent import Limits, Worker


def explained(code: int, errors: str) -> str:
    return str(reason(Result(["podman"], "exited", code, b"", errors.encode(), 0.1)))


def reason(result: Result, *sent: Any) -> Any:
    """Why there is no answer; sent: messages that came before."""
    child = SimpleNamespace(
        poll=lambda: result, new_stdout=lambda: b"".join(messages.encode(one) for one in sent)
    )
    worker = Worker(child, Limits(), lambda *_message: None)
    worker.step()
    return inside_troubles.explain("image:x", worker)


BEGUN: dict[str, Any] = {"begin": {"pid": 5}}


@pytest.mark.parametrize(
    ("code", "done", "words"),
    [
        (93, None, "no Python"),
        (94, None, "older than 3.6"),
        (95, None, "does not start"),
        (94, {"outcome": "old", "reason": "3.5.2 /usr/bin/python3"}, "/usr/bin/python3 is Python 3.5.2"),
        (95, {"outcome": "broken", "reason": "/b/python"}, "/b/python does not start"),
    ],
)  # fmt: skip
def test_the_shell_s_last_words_may_be_lost_on_the_way(code: int, done: Any, words: str) -> None:
    result = [BEGUN] + ([{"done": done}] if done else [])
    error = reason(Result(["podman"], "exited", code, b"", b"", 0.1), *result)
    assert isinstance(error, inside_troubles.NotATarget) and words in str(error)


@pytest.mark.parametrize(
    "errors",
    [
        'Error: runc: runc create failed: unable to start container process: exec: "/entry": stat /entry: no'
        " such file or directory: OCI runtime attempted to invoke a command that was not found",
        "Error: crun: executable file `nosuch` not found in $PATH: No such file or directory: OCI runtime"
        " attempted to invoke a command that was not found",
        "docker: Error response from daemon: failed to create shim: OCI runtime create failed: container_"
        'linux.go:380: starting container process caused: exec: "/etc": permission denied: unknown.',
        "exec /entry.sh: no such file or directory",
    ],
)
@pytest.mark.parametrize("code", [126, 127])
def test_an_entrypoint_that_is_not_there_is_the_image_s(code: int, errors: str) -> None:
    assert "its entrypoint cannot be started: " in explained(code, errors)
