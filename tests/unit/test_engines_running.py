"""What `container inspect` says, and what follows where no, one or more engines know a container."""

from __future__ import annotations

import json
from typing import Any

import pytest

from envcheck.collector.runtime.process import Result
from envcheck.exit_codes import CouldNotLook, UsageError
from envcheck.install.engine import EngineName
from envcheck.install.engines import running

PODMAN = {
    "Id": "3e28" * 16,
    "Image": "03dd",
    "ImageName": "localhost/base:1",
    "Name": "c1",
    "State": {"Status": "running"},
    "Config": {"Image": "localhost/base:1"},
}
DOCKER = {
    "Id": "4f39" * 16,
    "Image": "sha256:03dd",
    "Name": "/c1",
    "State": {"Status": "exited"},
    "Config": {"Image": "base:1"},
}
ENGINES: list[tuple[EngineName, str]] = [
    ("podman", "/usr/bin/podman"),
    ("docker", "/usr/bin/docker"),
]


def says(monkeypatch: pytest.MonkeyPatch, **answers: Any) -> None:
    """Each engine's answer: what it knows, or the words of its error."""

    def ask(program: str, arguments: list[str], **_: object) -> Result:
        answer = answers[program.rpartition("/")[2]]
        if isinstance(answer, str):
            return Result([program], "exited", 1, b"[]", answer.encode(), 0.1)
        return Result([program], "exited", 0, json.dumps([answer]).encode(), b"", 0.1)

    monkeypatch.setattr(running, "ask", ask)


UNKNOWN = {"podman": "Error: no such container c1", "docker": "Error: No such container: c1"}


def test_the_one_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    says(monkeypatch, podman=PODMAN, docker=UNKNOWN["docker"])
    found = running.find("c1", ENGINES)
    assert (found.engine, found.id, found.name) == ("podman", PODMAN["Id"], "c1")
    assert (found.image, found.image_id) == ("localhost/base:1", "sha256:03dd")


@pytest.mark.parametrize(
    ("answers", "error", "words", "hint"),
    [
        (UNKNOWN, UsageError, "podman and docker know no such container", "docker ps"),
        ({**UNKNOWN, "docker": DOCKER}, UsageError, "says that it is exited", "docker start c1"),
        (
            {"podman": PODMAN, "docker": DOCKER},
            UsageError,
            "both have one",
            "4f394f394f39 (docker)",
        ),
        (
            {**UNKNOWN, "docker": "Cannot connect to the Docker daemon at unix:///x"},
            CouldNotLook,
            "docker does not answer",
            "systemctl start docker",
        ),
    ],
)
def test_what_is_wrong_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
    answers: dict[str, Any],
    error: type[Exception],
    words: str,
    hint: str,
) -> None:
    says(monkeypatch, **answers)
    with pytest.raises(error, match=words) as caught:
        running.find("c1", ENGINES)
    assert hint in caught.value.hint  # type: ignore[attr-defined]


def test_no_engine_at_all() -> None:
    with pytest.raises(UsageError, match="no podman and no docker"):
        running.find("c1", [])


@pytest.mark.parametrize("text", ["", "[]", "{}", "[1]", '[{"Id": 1}]'])
def test_an_answer_that_is_none(text: str) -> None:
    with pytest.raises(CouldNotLook, match="nothing that envcheck can read"):
        running.read("podman", "/usr/bin/podman", text)
