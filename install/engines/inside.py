"""How the doctor gets into a container: a fresh one of an image, one that runs, an installed one."""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path

import msgspec

from ...collection import Inside
from ...exit_codes import Cannot, CouldNotLook, UsageError
from ...facts.snapshot import Snapshot
from ...findings.shell import word
from ..engine import EngineImage, EngineName, Start
from . import command, image_inspect, starting
from .choose import EngineChoice, answering
from .client import ask, no_answer, words
from .command import Here

# What the choice of an engine and of its wiring rests on.
NEEDED = ("host", "pci", "kernel", "nvml", "nvidia_smi", "containers")
_EXEC: tuple[EngineName, ...] = ("podman", "docker")
_FILES: dict[str, EngineName] = {".sif": "apptainer", ".sqsh": "enroot"}


def of_start(start: Start, location: str = "", entrypoint: str | None = None) -> Inside:
    """A fresh container without a network, by the image's own user; it is removed afterwards.

    The GPUs are not checked, for one that did not arrive is a fact. location: "image:REF" as its user wrote
    it; "": by the start's own reference. entrypoint: in place of the start's, "" for none.
    """
    if entrypoint is not None:
        start = msgspec.structs.replace(start, entrypoint=entrypoint)
    start = starting.with_devices(start)
    named = start.engine in _EXEC
    name = f"envcheck-doctor-{secrets.token_hex(6)}" if named else ""
    here = Here(
        uid=0, gid=0, interactive=True, network="none", check=False, own_user=True, name=name
    )
    # The engine needs a command in order to run the image's entrypoint; the collector appends its own.
    argv = command.argv(start, ["sh"], here)[:-1]
    at_once = ["--time", "0"] if start.engine == "podman" else []  # docker does not wait
    ending = [start.program, "rm", "--force", *at_once, name] if named else []
    return Inside(location=location or f"image:{start.reference}", argv=argv, ending=ending)


def of_image(
    reference: str, snapshot: Snapshot, engine: str = "", entrypoint: str | None = None
) -> Inside:
    """A fresh container of an image that an engine of this machine has; nothing is pulled.

    engine: one of ENGINES; "": those that work here, in that order. Without a way to the GPUs it is started
    without them, and the checks tell. Raises UsageError where no engine has the image, CouldNotLook where
    none works.
    """
    if not reference or reference.startswith("-"):
        raise UsageError(f"--target image:{reference}: that is not an image's name")
    try:
        choices = answering(_FILES.get(Path(reference).suffix, engine), snapshot)
    except Cannot as error:
        raise CouldNotLook(str(error), error.hint) from None
    for choice in choices:
        held = EngineImage(
            engine=choice.name,
            program=choice.program,
            image_id=reference,
            tag="",
            reference=reference,
            before=True,
        )
        its_own = _entrypoint_of(choice, held)
        if its_own is not None:
            start = starting.start(choice, held, reference, its_own, snapshot, {})
            return of_start(start, f"image:{reference}", entrypoint)
    names = " and ".join(choice.name for choice in choices)
    raise UsageError(
        f"--target image:{reference}: {names} {'has' if len(choices) == 1 else 'have'} no such image here,"
        " and the doctor pulls none",
        "; or: ".join(f"{one.name} pull {word(reference)}" for one in choices if not one.files)
        or "name the image's file (.sif, .sqsh)",
    )


def _entrypoint_of(choice: EngineChoice, held: EngineImage) -> list[str] | None:
    """The image's; [] where it has none, or its file does not say. None: there is no such image."""
    if choice.files:
        return [] if Path(held.image_id).is_file() else None
    stored = image_inspect.find(held, held.image_id)
    return None if stored is None else stored.entrypoint


def of_container(container: str, engine: str = "") -> Inside:
    """The container of that name or id that runs.

    Raises UsageError: no engine has it, it does not run, or two have one of that name. Raises CouldNotLook:
    none has it, and one did not answer.
    """
    if not container or container.startswith("-"):
        raise UsageError(f"--target container:{container}: that is not a container's name or id")
    if engine and engine not in _EXEC:
        raise UsageError(f"--engine {engine}: envcheck cannot enter a container of {engine}")
    engines = {name: shutil.which(name) for name in _EXEC if engine in ("", name)}
    program, identity = _running(container, {n: path for n, path in engines.items() if path})
    # By its id: a name may be given to another container meanwhile.
    return Inside(location=f"container:{container}", argv=[program, "exec", "-i", identity])


def _running(container: str, engines: dict[EngineName, str]) -> tuple[str, str]:
    """(the path of the engine that has it, its id)"""
    if not engines:
        raise UsageError(
            f"container {container}: there is no podman and no docker here.",
            "apptainer and enroot start processes that nothing else can enter",
        )
    found: dict[EngineName, list[str]] = {}
    silent: list[CouldNotLook] = []
    form = ["container", "inspect", "--format", "{{.Id}} {{.State.Status}}", container]
    for name, program in engines.items():
        result = ask(program, form)
        if result.ok:
            found[name] = result.stdout.decode("utf-8", "replace").split()
        elif result.outcome != "exited" or not _unknown(words(result)):
            silent.append(no_answer(name, program, result))
    if len(found) > 1:
        ids = ", ".join(f"{identity[:12]} ({name})" for name, (identity, _) in found.items())
        raise UsageError(
            f"container {container}: {' and '.join(found)} both have one of that name.",
            f"say its id: {ids}",
        )
    for name, (identity, state) in found.items():
        if state == "running":
            return engines[name], identity
        raise UsageError(
            f"container {container} does not run: {name} says that it is {state}.",
            f"{name} {'unpause' if state == 'paused' else 'start'} {word(container)}",
        )
    if silent:
        raise silent[0]
    raise UsageError(
        f"container {container}: {' and '.join(engines)} {'knows' if len(engines) == 1 else 'know'} no such"
        " container.",
        "; ".join(f"{name} ps shows those that run" for name in engines),
    )


def _unknown(said: str) -> bool:
    lower = said.lower()
    return "no such container" in lower or "no container with name or id" in lower
