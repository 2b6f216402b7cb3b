"""The argv of an engine for one start of an image: pure, and all of what `envcheck run` needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ..engine import EngineName, Start
from . import gpu_count_check

# Directories of the image that a working directory of this machine must not hide.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/dev", "/proc", "/sys")
_SYSTEM_ITSELF = ("/", "/boot", "/opt", "/run", "/var", "/opt/nvidia")


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """A directory or file of this machine inside."""

    source: str
    target: str
    read_only: bool = False


class Here(msgspec.Struct, frozen=True, kw_only=True):
    """Where and by whom a command is started."""

    uid: int  # the caller's
    gid: int
    cwd: str = ""  # mounted at its own path, and the working directory inside; "": neither
    home: str = ""  # HOME inside, where a mount covers it; else /tmp for all but root
    interactive: bool = False  # stdin is passed on
    tty: bool = False  # a terminal inside
    mounts: list[Mount] = []
    environment: dict[str, str | None] = {}  # None: as the engine's own process has it
    network: str = ""  # "none", "host"; "": the engine's own choice
    name: str = ""  # of the container
    check: bool = True  # that the GPUs arrive, inside the same start
    own_user: bool = False  # the image's user, not the caller
    devices: list[str] = []  # "/dev/fuse", "/dev/fuse:/dev/fuse:rwm"
    ports: list[str] = []  # as --publish has them: "8888:8888"
    arguments: list[str] = []  # for the engine's own command line, before the image


def argv(start: Start, command: Sequence[str], here: Here) -> list[str]:
    """What to exec, so that ``command`` runs in a fresh container that is removed afterwards.

    The image's own entrypoint comes first, then the check that the GPUs arrived (exit 125 where not), then
    the command: 127 where the image has no such program, 126 where it may not be run. An empty command is
    the image's own, with no check.
    """
    words = list(command)
    if start.entrypoint:  # the check comes before it
        words = [start.entrypoint, *words]
        start = msgspec.structs.replace(start, entrypoint="")
    if words and here.check and start.gpus:
        words = gpu_count_check.checked(start.gpus, words, shell=start.shell)
    return _FORMS[start.engine](start, words, here)


def mountable(directory: str) -> bool:
    """Whether a directory may stand in a container at its own path without hiding the image's system."""
    path = directory.rstrip("/") or "/"
    return path not in _SYSTEM_ITSELF and not any(
        path == system or path.startswith(system + "/") for system in _SYSTEM
    )


def _docker(start: Start, command: list[str], here: Here) -> list[str]:
    podman = start.engine == "podman"
    words = [start.program, "run", "--rm", "--pull=never", "--log-driver=none"]
    words += ["--interactive"] if here.interactive else []
    words += ["--tty"] if here.tty else []
    words += ["--detach-keys="] if here.tty and podman else []  # ctrl-p is the shell's
    words += ["--init"] if start.init else []
    words += [f"--shm-size={start.shm_mib}m"] if start.shm_mib else []
    for name, limit in start.ulimits.items():
        words += ["--ulimit", f"{name}={limit}"]
    words += ["--pids-limit=-1"] if start.pids_unlimited else []
    for device in [*start.devices, *here.devices]:
        words += ["--device", device]
    words += ["--security-opt", "label=disable"] if start.unlabelled else []
    words += [f"--network={here.network}"] if here.network else []
    for port in here.ports:
        words += ["--publish", port]
    words += [f"--name={here.name}"] if here.name else []
    words += start.wiring.arguments
    words += [] if here.own_user else _user(start, here)
    for mount in mounts(here):
        words += ["--mount", bind(mount)]
    words += [f"--workdir={here.cwd}"] if _at_home(here) else []
    for name, value in environment(start, here).items():
        words += ["--env", name if value is None else f"{name}={value}"]
    words += [] if start.entrypoint is None else [f"--entrypoint={start.entrypoint}"]
    return [*words, *here.arguments, start.image, *command]


def _user(start: Start, here: Here) -> list[str]:
    if start.keep_id:
        return ["--userns=keep-id", f"--user={here.uid}:{here.gid}"]
    return ["--user=0:0"] if start.root_is_caller else [f"--user={here.uid}:{here.gid}"]


def _apptainer(start: Start, command: list[str], here: Here) -> list[str]:
    # "exec" skips the image's runscript, which runs its entrypoint.
    form = "exec" if start.entrypoint == "" and command else "run"
    words = [start.program, form, "--cleanenv", "--no-home"]
    words += start.wiring.arguments
    if here.network == "none":
        words += ["--net", "--network=none"]
    for mount in mounts(here):
        words += ["--mount", bind(mount)]
    words += ["--pwd", here.cwd] if _at_home(here) else []
    for name, value in environment(start, here).items():
        words += [] if value is None else ["--env", field(f"{name}={value}")]
    return [*words, *here.arguments, start.image, *command]


def _enroot(start: Start, command: list[str], here: Here) -> list[str]:
    words = [start.program, "start"]
    words += start.wiring.arguments
    for mount in mounts(here):
        options = "x-create=auto,bind,ro" if mount.read_only else "x-create=auto,bind"
        words += ["--mount", f"{mount.source}:{mount.target}:{options}"]
    for name, value in environment(start, here).items():
        words += ["--env", name if value is None else f"{name}={value}"]
    if _at_home(here) and command:  # it has no option for the working directory
        command = ["sh", "-c", 'cd -- "$1" && shift && exec "$@"', "envcheck", here.cwd, *command]
    return [*words, *here.arguments, start.image, *command]


_FORMS: dict[EngineName, Callable[[Start, list[str], Here], list[str]]] = {
    "podman": _docker,
    "docker": _docker,
    "apptainer": _apptainer,
    "enroot": _enroot,
}


def _at_home(here: Here) -> bool:
    return bool(here.cwd) and mountable(here.cwd)


def mounts(here: Here) -> list[Mount]:
    """The working directory, where it may stand in a container, and the user's."""
    own = [Mount(source=here.cwd, target=here.cwd)] if _at_home(here) else []
    return own + here.mounts


def environment(start: Start, here: Here) -> dict[str, str | None]:
    """The wiring's, the stack's, HOME, TERM, the caller's; the latter win."""
    whole: dict[str, str | None] = {**start.wiring.environment, **start.environment}
    if not here.own_user:
        whole.update(_home(start, here))
    if here.tty:
        whole["TERM"] = None
    return {**whole, **here.environment}


def _home(start: Start, here: Here) -> dict[str, str | None]:
    """A uid that the image does not know has "/" for its home, and cannot write there."""
    covered = any(covers(mount.target, here.home) for mount in mounts(here))
    if here.home and covered:
        return {"HOME": here.home}
    return {} if here.uid == 0 or start.root_is_caller else {"HOME": "/tmp"}


def covers(mounted: str, path: str) -> bool:
    """Whether a path lies in what is mounted there."""
    return path == mounted or path.startswith(mounted.rstrip("/") + "/")


def bind(mount: Mount) -> str:
    """The value of --mount: comma-separated fields, as CSV writes them."""
    fields = ["type=bind", f"source={mount.source}", f"target={mount.target}"]
    return ",".join(map(field, fields + (["readonly"] if mount.read_only else [])))


def field(text: str) -> str:
    """One field of a CSV line."""
    if any(letter in text for letter in ',"\n'):
        return '"' + text.replace('"', '""') + '"'
    return text
