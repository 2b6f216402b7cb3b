"""A container that runs already: which engine has it, and what it is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from ...exit_codes import CouldNotLook, UsageError
from ..engine import EngineName
from .client import ask, words
from .troubles import told


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """A running container."""

    engine: EngineName
    program: str  # the engine's path
    id: str  # 64 hex digits
    name: str
    image: str  # as it was asked for: "nvcr.io/nvidia/tensorflow:23.03-tf1-py3"
    image_id: str  # "sha256:…"


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine says of a container, whether it runs or not."""

    running: Running
    state: str  # "running", "exited", "created", "paused"


def find(container: str, engines: Sequence[tuple[EngineName, str]]) -> Running:
    """The running container of that name or id, in whichever of these engines (name, path) has it.

    Raises UsageError: none has it, it does not run, more than one has it. Raises CouldNotLook: none has it,
    and one did not answer.
    """
    if not engines:
        raise UsageError(
            f"container {container}: there is no podman and no docker here.",
            "apptainer and enroot start processes that nothing else can enter",
        )
    found, silent = [], []
    for name, program in engines:
        result = ask(program, ["container", "inspect", container])
        if result.ok:
            found.append(read(name, program, result.stdout.decode("utf-8", "replace")))
        elif result.outcome != "exited" or not _unknown(words(result)):
            silent.append((name, result))
    return _only(container, found, silent, [name for name, _ in engines])


def _only(
    container: str,
    found: list[Found],
    silent: list[tuple[EngineName, Any]],
    names: Sequence[EngineName],
) -> Running:
    if len(found) > 1:
        both = " and ".join(one.running.engine for one in found)
        raise UsageError(
            f"container {container}: {both} both have one of that name.",
            "say its id: "
            + ", ".join(f"{one.running.id[:12]} ({one.running.engine})" for one in found),
        )
    if found:
        (one,) = found
        if one.state != "running":
            raise UsageError(
                f"container {container} does not run: {one.running.engine} says that it is {one.state}.",
                f"{one.running.engine} {'unpause' if one.state == 'paused' else 'start'} {container}",
            )
        return one.running
    if silent:
        name, result = silent[0]
        sentence, hint = told(name, words(result))
        raise CouldNotLook(f"container {container}: {name} does not answer: {sentence}.", hint)
    raise UsageError(
        f"container {container}: {' and '.join(names)} {'knows' if len(names) == 1 else 'know'} no such"
        " container.",
        "; ".join(f"{name} ps shows those that run" for name in names),
    )


def read(engine: EngineName, program: str, text: str) -> Found:
    """What `container inspect` prints. Raises CouldNotLook where that is something else."""
    try:
        (seen,) = json.loads(text)
        image_id = str(seen["Image"])
        running = Running(
            engine=engine,
            program=program,
            id=str(seen["Id"]),
            name=str(seen["Name"]).lstrip("/"),
            image=str(seen.get("ImageName") or seen["Config"]["Image"]),
            image_id=image_id if image_id.startswith("sha256:") else f"sha256:{image_id}",
        )
        return Found(running=running, state=str(seen["State"]["Status"]))
    except (ValueError, KeyError, TypeError) as error:
        raise CouldNotLook(
            f"{engine}: `{program} container inspect` prints nothing that envcheck can read."
        ) from error


def _unknown(said: str) -> bool:
    lower = said.lower()
    return "no such container" in lower or "no container with name or id" in lower
