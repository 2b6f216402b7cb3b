"""Which engine has a container that runs, and what follows where none, one or two know it."""

from __future__ import annotations

import shutil

import pytest

from envcheck.collector.runtime.process import Result
from envcheck.exit_codes import CouldNotLook, UsageError
from envcheck.install.engines import inside

PODMAN, DOCKER = "3e28" * 16 + " running", "4f39" * 16 + " exited"


def says(monkeypatch: pytest.MonkeyPatch, **answers: str) -> None:
    """Each engine's answer: what it prints of a container, or the words of its error."""

    def ask(program: str, arguments: list[str], **_: object) -> Result:
        answer = answers[program.rpartition("/")[2]].encode()
        knows = answer in (PODMAN.encode(), DOCKER.encode())
        result = (answer, b"") if knows else (b"[]", answer)
        return Result([program], "exited", 0 if knows else 1, *result, 0.1)

    monkeypatch.setattr(inside, "ask", ask)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")


UNKNOWN = {"podman": "Error: no such container c1", "docker": "Error: No such container: c1"}


@pytest.mark.parametrize(
    ("answers", "error", "words", "hint"),
    [
        (UNKNOWN, UsageError, "no such container in podman or docker", "docker ps"),
        ({**UNKNOWN, "docker": DOCKER}, UsageError, "reports that it is exited", "docker start c1"),
        (
            {"podman": PODMAN, "docker": DOCKER},
            UsageError,
            "both have one",
            "4f394f394f39 (docker)",
        ),
        (
            {**UNKNOWN, "docker": "Cannot connect to the Docker daemon at unix:///x"},
            CouldNotLook,
            "docker.* does not answer",
            "systemctl start docker",
        ),
    ],
)
def test_what_is_wrong_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
    answers: dict[str, str],
    error: type[Exception],
    words: str,
    hint: str,
) -> None:
    says(monkeypatch, **answers)
    with pytest.raises(error, match=words) as caught:
        inside.of_container("c1")
    assert hint in caught.value.hint  # type: ignore[attr-defined]
