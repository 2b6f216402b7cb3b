"""Starting a command in a fresh container of the image that the container mode installed."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import msgspec

from ... import safe_text
from ...exit_codes import NotFound, NotStarted
from ..engine import Start, Wiring
from ..engines import command as engine_commands
from ..engines import gpu_choice, inside, starting
from ..engines.command import Here
from ..transaction import engine_images
from ..transaction.layout import Version
from . import start_file
from .exec import become
from .options import Options
from .printed import Form, refuse, text

_NO_GPU = Wiring(kind="none", arguments=[], environment={"NVIDIA_VISIBLE_DEVICES": "void"})

# bash where the image has it.
_SHELL = ["sh", "-c", "command -v bash >/dev/null 2>&1 && exec bash; exec sh"]


def printed(version: Version, command: Sequence[str], options: Options, form: Form) -> str:
    """What starts the command, to copy. Raises NotStarted, UsageError."""
    refuse(form, options)
    start = wished(start_file.read(version.start), options)
    image = engine_images.of(version)
    pinned = start.reference if image is None else image.reference
    return text(form, start, pinned, command, where(options))


def run_shell(version: Version, options: Options) -> NoReturn:
    """The same for the image's own shell."""
    if not start_file.read(version.start).shell:
        raise NotStarted(
            f"the image of {version.id} has no shell", hint="envcheck run python3 starts its Python"
        )
    run(version, _SHELL, options)


def run(version: Version, command: Sequence[str], options: Options) -> NoReturn:
    """Become the engine, which starts the command. Raises NotStarted, NotExecutable, UsageError."""
    start = wished(start_file.read(version.start), options)
    here = where(options)
    try:
        become(engine_commands.argv(start, command, here), os.environ)
    except NotFound:
        raise NotStarted(
            f"{start.program}: {start.engine}, which {version.id} was installed with, no longer exists",
            hint=f"install {start.engine} again, or have envcheck install look for another engine",
        ) from None


def wished(start: Start, options: Options) -> Start:
    """The start with what the user asks for in place of what was installed. Raises NotStarted, UsageError,
    Cannot, CouldNotLook."""
    _refuse_options(start, options)
    start = starting.with_devices(start)
    changes: dict[str, Any] = {}
    if options.no_gpu:
        options.refuse("--no-gpu leaves none to choose from", "gpus")
        changes |= {"wiring": _NO_GPU, "gpus": 0}
    elif options.gpus == gpu_choice.ALL:
        pass
    elif options.gpus:
        # As it is now, and not as it was at installation.
        from ... import collection

        seen = collection.collect(redact=False, only=inside.NEEDED).snapshot
        chosen = gpu_choice.choose(options.gpus, start.engine, start.wiring, seen)
        changes |= {"wiring": chosen.wiring, "gpus": chosen.nodes}
    elif start.chosen is not None:
        changes |= {"wiring": start.chosen, "gpus": start.chosen_gpus}
    if options.entrypoint is not None:
        changes["entrypoint"] = options.entrypoint
    if options.shm_size:
        changes["shm_mib"] = options.shm_size
    return msgspec.structs.replace(start, **changes)


def _refuse_options(start: Start, options: Options) -> None:
    """apptainer and enroot share /dev/shm and the network with the machine."""
    networks = {"apptainer": ("", "host", "none"), "enroot": ("", "host")}
    if start.engine not in networks:
        return
    options.refuse(f"{start.engine} gives its containers the machine's /dev/shm", "shm_size")
    options.refuse(f"{start.engine} gives its containers the machine's devices", "device")
    options.refuse(f"{start.engine} gives its containers the machine's network", "port")
    if start.engine == "enroot":
        options.refuse(f"{start.engine} cannot start an image with another one", "entrypoint")
    if options.network not in networks[start.engine]:
        options.refuse(f"{start.engine} gives its containers the machine's network", "network")


def where(options: Options) -> Here:
    """By whom, from where, and with what it is started. Raises NotStarted."""
    try:
        cwd = os.getcwd()  # noqa: PTH109
    except OSError as error:
        raise NotStarted(
            f"the working directory cannot be mounted: {error.strerror}; it was removed or is out of reach",
            hint="cd to a directory that is there",
        ) from None
    covered = any(engine_commands.covers(m.target, cwd) for m in options.volume)
    if not engine_commands.mountable(cwd) and not covered:
        told = f"{cwd} is not mounted, since the container has its own: the command starts in the image's"
        print(f"envcheck: {safe_text.one_line(told)} directory", file=sys.stderr)
    return Here(
        uid=os.getuid(),
        gid=os.getgid(),
        cwd=cwd,
        home=os.environ.get("HOME", ""),
        interactive=True,
        tty=all(os.isatty(number) for number in (0, 1, 2)),
        mounts=list(options.volume),
        environment=dict(options.env),
        network=options.network,
        devices=list(options.device),
        ports=list(options.port),
        arguments=list(options.engine_arg),
    )
