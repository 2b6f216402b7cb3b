"""How the doctor gets into a container: a new one of an image, or one that runs."""

from __future__ import annotations

import secrets
import shutil

import msgspec

from ...collection import Inside
from ...exit_codes import Cannot, CouldNotLook, UsageError
from ...facts.snapshot import Snapshot
from ...findings.shell import word
from ..engine import ENGINES, Start
from . import command, engine_storage, starting
from .choose import answering
from .client import ask, no_answer, words
from .command import Here

# What the choice of an engine and of its wiring needs.
NEEDED = ("host", "pci", "kernel", "nvml", "nvidia_smi", "containers")


def of_start(start: Start, location: str = "", entrypoint: str | None = None) -> Inside:
    """A new container without a network, as the image's own user; it is removed afterwards.

    GPUs are not checked: one that is missing is a fact. location: "image:REF" as its user wrote it; "": the
    start's reference. entrypoint: instead of the start's, "" for none.
    """
    if entrypoint is not None:
        start = msgspec.structs.replace(start, entrypoint=entrypoint)
    start = starting.with_devices(start)
    name = f"envcheck-doctor-{secrets.token_hex(6)}"
    here = Here(
        uid=0, gid=0, interactive=True, network="none", check=False, own_user=True, name=name
    )
    # The engine needs a command to run the image's entrypoint; the collector appends its own.
    argv = command.argv(start, ["sh"], here)[:-1]
    at_once = ["--time", "0"] if start.engine == "podman" else []  # docker does not wait
    ending = [start.program, "rm", "--force", *at_once, name]
    return Inside(location=location or f"image:{start.reference}", argv=argv, ending=ending)


def of_image(
    reference: str, snapshot: Snapshot, engine: str = "", entrypoint: str | None = None
) -> Inside:
    """A new container of an image that an engine of this machine has; nothing is pulled.

    engine: one of ENGINES; "": the first that works. It starts also without a way to the GPUs, which the
    checks then report. Raises UsageError if no engine has the image, CouldNotLook if none works.
    """
    if not reference or reference.startswith("-"):
        raise UsageError(f"--target image:{reference}: that is not an image's name")
    try:
        choices = answering(engine, snapshot)
    except Cannot as error:
        raise CouldNotLook(str(error), error.hint) from None
    for choice in choices:
        if stored := engine_storage.find(choice.program, reference):
            start = starting.start(choice, reference, reference, stored.entrypoint, snapshot, {})
            return of_start(start, f"image:{reference}", entrypoint)
    raise UsageError(
        f"--target image:{reference}: no such image in {' or '.join(one.name for one in choices)}, and the"
        " doctor pulls none",
        "; or: ".join(f"{one.name} pull {word(reference)}" for one in choices),
    )


def of_container(container: str, engine: str = "") -> Inside:
    """The running container of that name or id.

    Raises UsageError if no engine has it, it does not run, or two have one of that name; CouldNotLook if an
    engine did not answer.
    """
    if not container or container.startswith("-"):
        raise UsageError(f"--target container:{container}: that is not a container's name or id")
    found: list[tuple[str, str, str, str]] = []  # engine, its path, the container's id and state
    failed: list[CouldNotLook] = []
    form = ["container", "inspect", "--format", "{{.Id}} {{.State.Status}}", container]
    unknown = ("no such container", "no container with name or id")
    programs = [(name, shutil.which(name)) for name in ENGINES if engine in ("", name)]
    for name, program in programs:
        if program is None:
            continue
        result = ask(program, form)
        if result.ok:
            identity, state = result.stdout.decode("utf-8", "replace").split()
            found.append((name, program, identity, state))
        elif result.outcome != "exited" or not any(one in words(result).lower() for one in unknown):
            failed.append(no_answer(name, program, result))
    if len(found) > 1:
        raise UsageError(
            f"container {container}: {' and '.join(one[0] for one in found)} both have one of that name",
            f"name its id: {', '.join(f'{one[2][:12]} ({one[0]})' for one in found)}",
        )
    for engine, program, identity, state in found:
        if state == "running":
            # By its id: the name may be given to another container meanwhile.
            argv = [program, "exec", "-i", identity]
            return Inside(location=f"container:{container}", argv=argv)
        raise UsageError(
            f"container {container} does not run: {engine} reports that it is {state}",
            f"{engine} {'unpause' if state == 'paused' else 'start'} {word(container)}",
        )
    if failed:
        raise failed[0]
    there = " or ".join(name for name, program in programs if program) or "podman or docker"
    raise UsageError(
        f"container {container}: no such container in {there}",
        "podman ps or docker ps lists those that run",
    )
