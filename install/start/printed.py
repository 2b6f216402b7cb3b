"""What `envcheck run --print` prints: the start of a container for an engine, compose, pyxis, apptainer.

Pure. None has the check that the GPUs arrive, which `envcheck run` and the doctor make.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from ...exit_codes import NotStarted
from ..engine import Start
from ..engines import command as engine_commands
from ..engines.command import Here
from .options import Options

Form = Literal["engine", "compose", "srun", "apptainer"]


def text(form: Form, start: Start, pinned: str, command: Sequence[str], here: Here) -> str:
    """Lines to copy. pinned: the image by its digest, as a registry knows it. Raises NotStarted."""
    return _FORMS[form](start, pinned, list(command), here)


def refuse(form: Form, options: Options) -> None:
    """Raises NotStarted for an option that this form cannot carry."""
    why = f"--print={form} cannot say this"
    if form != "engine":
        options.refuse(why, "engine_arg")
    if form == "srun":  # Slurm hands out GPUs
        options.refuse(why, "gpus")
    if form in ("srun", "apptainer"):
        options.refuse(why, "port", "device", "network", "shm_size")
        if options.entrypoint:
            options.refuse(why, "entrypoint")


def _engine(start: Start, pinned: str, command: list[str], here: Here) -> str:
    words = engine_commands.argv(start, command, msgspec.structs.replace(here, check=False))
    return shlex.join(words) + "\n"


def _apptainer(start: Start, pinned: str, command: list[str], here: Here) -> str:
    gpus = ["--nv"] if start.wiring.kind != "none" else []
    chosen = ",".join(start.wiring.chosen)
    there = msgspec.structs.replace(
        start,
        engine="apptainer",
        program="apptainer",
        image=start.image if start.engine == "apptainer" else f"docker://{pinned}",
        wiring=msgspec.structs.replace(
            start.wiring,
            arguments=gpus,
            environment={"CUDA_VISIBLE_DEVICES": chosen} if chosen else {},
        ),
    )
    return _engine(there, pinned, command, here)


def _srun(start: Start, pinned: str, command: list[str], here: Here) -> str:
    """For Slurm with pyxis, whose mounts are parted by "," and ":" without a way to quote them."""
    mounts = engine_commands.mounts(here)
    for path in (path for mount in mounts for path in (mount.source, mount.target)):
        if any(letter in path for letter in ",:"):
            raise NotStarted(f"{path}: pyxis cannot mount a path with a comma or a colon in it")
    words = ["srun", f"--container-image={_enroot_name(pinned)}"]
    words += [f"--gpus-per-node={start.gpus}"] if start.gpus else []
    if mounts:
        parts = [f"{m.source}:{m.target}" + (":ro" if m.read_only else "") for m in mounts]
        words += [f"--container-mounts={','.join(parts)}"]
    words += [f"--container-workdir={here.cwd}"] if here.cwd else []
    words += ["--no-container-entrypoint"] if start.entrypoint == "" else []
    variables = {**start.environment, **here.environment}
    passed = [name for name, value in variables.items() if value is None]
    words += [f"--container-env={','.join(passed)}"] if passed else []
    given = [f"{name}={value}" for name, value in variables.items() if value is not None]
    words += ["env", *given] if given else []
    return f"# {pinned}\n" + shlex.join([*words, *command]) + "\n"


def _enroot_name(reference: str) -> str:
    """ "nvcr.io/nvidia/tensorflow@sha256:…" → "nvcr.io#nvidia/tensorflow:sha256:…": in enroot's URIs a digest
    stands where the tag does."""
    bare, at, digest = reference.partition("@")
    if at:
        head, slash, last = bare.rpartition("/")
        reference = f"{head}{slash}{last.partition(':')[0]}:{digest}"
    first, slash, rest = reference.partition("/")
    is_registry = slash and ("." in first or ":" in first or first == "localhost")
    return f"{first}#{rest}" if is_registry else reference


def _compose(start: Start, pinned: str, command: list[str], here: Here) -> str:
    if start.entrypoint:
        command, start = (
            [start.entrypoint, *command],
            msgspec.structs.replace(start, entrypoint=""),
        )
    variables = engine_commands.environment(start, here)
    service: dict[str, Any] = {
        "image": pinned,
        "entrypoint": [] if start.entrypoint == "" else None,
        "command": command,
        "user": None if start.root_is_caller else f"{here.uid}:{here.gid}",
        "userns_mode": "keep-id" if start.keep_id else None,
        "working_dir": here.cwd if engine_commands.mountable(here.cwd) else None,
        "volumes": [
            {"type": "bind", "source": m.source, "target": m.target, "read_only": m.read_only}
            for m in engine_commands.mounts(here)
        ],
        "environment": variables,
        "shm_size": f"{start.shm_mib}m" if start.shm_mib else None,
        "ulimits": {name: int(value) for name, value in start.ulimits.items()},
        "pids_limit": -1 if start.pids_unlimited else None,
        "init": start.init or None,
        "security_opt": ["label=disable"] if start.unlabelled else [],
        "network_mode": here.network or None,
        "ports": here.ports,
        "devices": _devices(start, here),
        "runtime": "nvidia" if start.wiring.kind == "runtime" else None,
        "deploy": _reserved(start.wiring.chosen) if start.wiring.kind == "gpus" else None,
        "stdin_open": True,
        "tty": here.tty or None,
    }
    lines = ["services:", "  envcheck:"]
    for name, value in service.items():
        if value is not None and (value or name == "entrypoint"):
            lines.append(f"    {name}: {_yaml(value)}")
    return "\n".join(lines) + "\n"


def _reserved(chosen: list[str]) -> dict[str, Any]:
    which: dict[str, Any] = {"device_ids": chosen} if chosen else {"count": "all"}
    device = {"driver": "nvidia", **which, "capabilities": ["gpu"]}
    return {"resources": {"reservations": {"devices": [device]}}}


def _devices(start: Start, here: Here) -> list[str]:
    """CDI's names are devices to compose, too."""
    gpus = start.wiring.arguments[1::2] if start.wiring.kind == "cdi" else []
    return [*gpus, *(d if ":" in d else f"{d}:{d}" for d in [*start.devices, *here.devices])]


def _yaml(value: Any) -> str:
    """JSON, which is YAML but for characters that JSON escapes in two halves; compose puts variables in the
    place of a "$" that is not doubled."""
    text = re.sub(r"\\\\|\\ud[89ab]\w\w\\ud[c-f]\w\w", _one_escape, json.dumps(value))
    return text.replace("$", "$$")


def _one_escape(found: re.Match[str]) -> str:
    if found[0] == r"\\":
        return found[0]
    character: str = json.loads('"' + found[0] + '"')
    return f"\\U{ord(character):08x}"


_FORMS: dict[Form, Callable[[Start, str, list[str], Here], str]] = {
    "engine": _engine,
    "compose": _compose,
    "srun": _srun,
    "apptainer": _apptainer,
}
