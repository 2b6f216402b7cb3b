"""The command line of an engine for one start of an image. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import msgspec

from ..engine import Start
from . import gpu_count_check

# Directories of the image that a working directory of this machine must not hide.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/dev", "/proc", "/sys")
_SYSTEM_ITSELF = ("/", "/boot", "/opt", "/run", "/var", "/opt/nvidia")


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """A directory or file of this machine in the container."""

    source: str
    target: str
    read_only: bool = False


class Here(msgspec.Struct, frozen=True, kw_only=True):
    """By whom, from where and with what a command is started."""

    uid: int  # the caller's
    gid: int
    cwd: str = ""  # mounted at its own path, and the working directory inside; "": neither
    home: str = ""  # HOME inside if a mount covers it; otherwise /tmp, except for root
    interactive: bool = False  # stdin is passed on
    tty: bool = False
    mounts: list[Mount] = []
    environment: dict[str, str | None] = {}  # None: with the caller's value
    network: str = ""  # "none", "host"; "": the engine's default
    name: str = ""  # of the container
    check: bool = True  # that the GPUs are there, in the same start
    own_user: bool = False  # the image's user, not the caller
    arguments: list[str] = []  # of the engine's own command line, before the image


def argv(start: Start, command: Sequence[str], here: Here) -> list[str]:
    """Runs ``command`` in a new container that is removed afterwards.

    The image's entrypoint comes first, then the check of the GPUs (exit code 125), then the command (127 if
    the image does not have it, 126 if it cannot be executed). An empty command is the image's own, without a
    check.
    """
    words = list(command)
    if start.entrypoint:  # the check comes before it
        words = [start.entrypoint, *words]
        start = msgspec.structs.replace(start, entrypoint="")
    if words and here.check and start.gpus:
        words = gpu_count_check.checked(start.gpus, words)
    return [start.program, *_run(start, here), *here.arguments, start.image, *words]


def mountable(directory: str) -> bool:
    """Whether a directory can be mounted at its own path without hiding the image's system."""
    path = directory.rstrip("/") or "/"
    return path not in _SYSTEM_ITSELF and not any(covers(system, path) for system in _SYSTEM)


def covers(mounted: str, path: str) -> bool:
    """Whether a path is below ``mounted``."""
    return path == mounted or path.startswith(mounted.rstrip("/") + "/")


def _run(start: Start, here: Here) -> list[str]:
    """Of podman and docker."""
    podman = start.engine == "podman"
    user = "0:0" if start.root_is_caller else f"{here.uid}:{here.gid}"
    mounts, cwd = here.mounts, here.cwd if here.cwd and mountable(here.cwd) else ""
    if cwd:
        mounts = [Mount(source=cwd, target=cwd), *mounts]
    flags = {
        "--interactive": here.interactive,
        "--tty": here.tty,
        "--detach-keys=": here.tty and podman,  # ctrl-p is the shell's
        "--init": start.init,
        f"--shm-size={start.shm_mib}m": start.shm_mib,
        "--pids-limit=-1": start.pids_unlimited,
        "--security-opt=label=disable": start.unlabelled,
        f"--network={here.network}": here.network,
        f"--name={here.name}": here.name,
        "--userns=keep-id": start.keep_id and not here.own_user,
        f"--user={user}": not here.own_user,
        f"--workdir={cwd}": cwd,
        f"--entrypoint={start.entrypoint}": start.entrypoint is not None,
    }
    variables = _environment(start, here, mounts).items()
    repeated = {
        "--ulimit": [f"{name}={limit}" for name, limit in start.ulimits.items()],
        "--device": start.devices,
        "--mount": [bind(mount) for mount in mounts],
        "--env": [name if value is None else f"{name}={value}" for name, value in variables],
    }
    words = ["run", "--rm", "--pull=never", "--log-driver=none"]
    words += [flag for flag, wanted in flags.items() if wanted]
    words += [
        word for option, values in repeated.items() for one in values for word in (option, one)
    ]
    return words + start.wiring.arguments


def _environment(start: Start, here: Here, mounts: Sequence[Mount]) -> dict[str, str | None]:
    """The wiring's, the stack's, HOME, TERM, the caller's; later ones take precedence."""
    found: dict[str, str | None] = {**start.wiring.environment, **start.environment}
    if not here.own_user:
        if here.home and any(covers(mount.target, here.home) for mount in mounts):
            found["HOME"] = here.home
        elif here.uid != 0 and not start.root_is_caller:
            # A uid that the image does not know has "/", and cannot write there.
            found["HOME"] = "/tmp"
    if here.tty:
        found["TERM"] = None
    return found | here.environment


def bind(mount: Mount) -> str:
    """The value of --mount, which is a line of CSV."""
    line = io.StringIO()
    fields = ["type=bind", f"source={mount.source}", f"target={mount.target}"]
    csv.writer(line, lineterminator="\n").writerow(fields + ["readonly"] * mount.read_only)
    return line.getvalue()[:-1]
