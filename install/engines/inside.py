"""How the doctor gets into a container: a fresh one of an image, one that runs, an installed one."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from ...collection import Inside
from ...exit_codes import Cannot, CouldNotLook, UsageError
from ...facts.containers import Engine
from ...facts.snapshot import Snapshot
from ...facts.view import known
from ...findings.shell import word
from ..engine import ENGINES, EngineImage, EngineName, Start
from . import command, image_inspect, running, starting, wiring
from .choose import EngineChoice, choose, install_one

# What the choice of an engine and of its wiring rests on.
NEEDED = ("host", "pci", "kernel", "nvml", "nvidia_smi", "containers")
_EXEC: tuple[EngineName, ...] = ("podman", "docker")
_FILES: dict[str, EngineName] = {".sif": "apptainer", ".sqsh": "enroot"}


def of_start(start: Start, location: str = "") -> Inside:
    """A fresh container, started as ``envcheck run`` starts it; it is removed afterwards.

    location: "image:REF" as its user wrote it; "": by the start's own reference.
    """
    name = f"envcheck-doctor-{secrets.token_hex(6)}"
    # The engine needs a command in order to run the image's entrypoint; the collector appends its own.
    argv = command.doctor_argv(start, ["sh"], name=name if start.engine in _EXEC else "")
    assert argv[-1] == "sh"
    at_once = ["--time", "0"] if start.engine == "podman" else []  # docker does not wait
    ending = [start.program, "rm", "--force", *at_once, name] if start.engine in _EXEC else []
    return Inside(location=location or f"image:{start.reference}", argv=argv[:-1], ending=ending)


def of_image(reference: str, snapshot: Snapshot, engine: str = "") -> Inside:
    """A fresh container of an image that an engine of this machine has; nothing is pulled.

    engine: one of ENGINES; "": those that work here, in that order. Without a way to the GPUs it is started
    without them, and the checks tell. Raises UsageError where no engine has the image, CouldNotLook where
    none works.
    """
    if not reference or reference.startswith("-"):
        raise UsageError(f"--target image:{reference}: that is not an image's name")
    asked = []
    for choice in _choices(_by_file(reference) or engine, snapshot):
        held = _held(choice, reference)
        entrypoint = _entrypoint_of(choice, held)
        if entrypoint is not None:
            start = starting.start(choice, held, reference, entrypoint, snapshot, {})
            return of_start(start, f"image:{reference}")
        asked.append(choice)
    names = " and ".join(choice.name for choice in asked)
    raise UsageError(
        f"--target image:{reference}: {names} {'has' if len(asked) == 1 else 'have'} no such image here, and"
        " the doctor pulls none",
        "; or: ".join(f"{one.name} pull {word(reference)}" for one in asked if not one.files)
        or "name the image's file (.sif, .sqsh)",
    )


def of_container(container: str, engine: str = "") -> Inside:
    """The container of that name or id that runs. Raises UsageError, CouldNotLook as running.find."""
    if not container or container.startswith("-"):
        raise UsageError(f"--target container:{container}: that is not a container's name or id")
    if engine and engine not in _EXEC:
        raise UsageError(f"--engine {engine}: envcheck cannot enter a container of {engine}")
    engines = [
        (name, path)
        for name in _EXEC
        if (not engine or name == engine) and (path := shutil.which(name)) is not None
    ]
    found = running.find(container, engines)
    # By its id: a name may be given to another container meanwhile.
    argv = command.exec_argv(found.engine, found.program, found.id, [])
    return Inside(location=f"container:{container}", argv=argv)


def _choices(engine: str, snapshot: Snapshot) -> Iterator[EngineChoice]:
    """Every engine that would start a container here; raises CouldNotLook where there is none."""
    containers = snapshot.machine.containers
    if containers is None or containers.facts is None:
        try:
            choose(engine, snapshot)
        except Cannot as error:
            raise CouldNotLook(str(error), error.hint) from None
        return
    there = containers.facts.engines
    trouble: Cannot | None = None
    one = False
    for name in [engine] if engine else ENGINES:
        mine = [
            e
            for e in there
            if e.name in ((name, "singularity") if name == "apptainer" else (name,))
        ]
        if not mine and not engine:
            continue
        try:
            choice: EngineChoice | None = choose(name, snapshot)
        except Cannot as error:
            trouble = trouble or error
            choice = _unwired(mine)
        if choice is not None:
            one = True
            yield choice
    if not one:
        trouble = trouble or Cannot("there is no container engine here", install_one(snapshot))
        raise CouldNotLook(str(trouble), trouble.hint)


def _unwired(engines: list[Engine]) -> EngineChoice | None:
    """An engine that answers, without GPUs: what is missing is for the checks to tell."""
    for engine in engines:
        if engine.name in _EXEC and known(engine.server_version) is not None:
            name: EngineName = "podman" if engine.name == "podman" else "docker"
            return EngineChoice(
                engine=engine, name=name, program=engine.path, wiring=wiring.NONE, gpus=0
            )
    return None


def _entrypoint_of(choice: EngineChoice, held: EngineImage) -> list[str] | None:
    """The image's; [] where it has none, or its file does not say. None: there is no such image."""
    if choice.files:
        return [] if Path(held.image_id).is_file() else None
    stored = image_inspect.find(held, held.image_id)
    return None if stored is None else stored.entrypoint


def _by_file(reference: str) -> str:
    return _FILES.get(Path(reference).suffix, "")


def _held(choice: EngineChoice, reference: str) -> EngineImage:
    return EngineImage(
        engine=choice.name,
        program=choice.program,
        image_id=reference,
        tag="",
        reference=reference,
        before=True,
    )
