"""How an installed image is started on this machine: what frameworks need, where the engine may set it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import PurePath

import msgspec

from ...facts.base import known
from ...facts.host import Host
from ...facts.snapshot import Snapshot
from ...facts.view import SnapshotView
from ..engine import EngineImage, Start
from .choose import EngineChoice

# As NVIDIA's release notes of its TensorFlow containers recommend: `--shm-size=1g --ulimit memlock=-1
# --ulimit stack=67108864`. NCCL and data loaders pass data through /dev/shm, and 1 GiB is the least.
_SHM_LEAST_MIB = 1024
_STACK = 67108864  # bytes
# What NCCL and MPI talk to InfiniBand and RoCE by; a container has no device that is not passed.
_RDMA = "/dev/infiniband"
_ULIMITS = {"memlock": "-1", "stack": str(_STACK)}


def start(
    choice: EngineChoice,
    held: EngineImage,
    reference: str,
    entrypoint: Sequence[str],
    snapshot: Snapshot,
    environment: Mapping[str, str],
) -> Start:
    """The Start of the image that ``held`` names. reference: its name, for people. entrypoint: the image's.

    environment: the stack's. What could not be set is in ``remarks``.
    """
    host = SnapshotView(snapshot).machine.host
    facts = host.facts if host is not None and host.facts is not None else Host()
    engine, rootless = choice.engine, known(choice.engine.rootless) is True
    entrypoint_remark = "" if choice.name == "enroot" else _swallows(entrypoint)
    whole = Start(
        engine=choice.name,
        program=choice.program,
        image=held.image_id,
        reference=reference,
        entrypoint="" if entrypoint_remark else None,
        wiring=choice.wiring,
        gpus=0 if choice.wiring.kind == "none" else choice.gpus,
        environment=dict(environment),
        remarks=[entrypoint_remark] if entrypoint_remark else [],
    )
    if choice.files:
        return whole
    shm, shm_remark = _shm(facts)
    ulimits, limit_remark = _ulimits(choice, facts)
    init = known(engine.init_path) is not None
    remarks = [shm_remark, limit_remark, "" if init else _no_init(choice), entrypoint_remark]
    return msgspec.structs.replace(
        whole,
        shm_mib=shm,
        ulimits=ulimits,
        init=init,
        keep_id=rootless and choice.name == "podman",
        root_is_caller=rootless and choice.name == "docker",
        # A rootless podman sets limits in control groups of version 2 alone, and refuses to start elsewhere.
        pids_unlimited=choice.name == "podman"
        and (not rootless or known(facts.cgroup_version) == 2),
        # SELinux would keep the container from what is mounted into it.
        unlabelled=known(facts.selinux) == "enforcing" and known(engine.selinux) is not False,
        remarks=list(filter(None, remarks)),
    )


def with_devices(start: Start) -> Start:
    """With the devices that are there now: an InfiniBand driver may have come since the installation."""
    here = start.engine in ("podman", "docker") and os.path.exists(_RDMA)  # noqa: PTH110
    return msgspec.structs.replace(start, devices=[_RDMA] if here else [])


# Programs that take a command for arguments of their own.
_SWALLOWING = ("ipython", "jupyter", "jupyter-lab", "jupyter-notebook", "tritonserver")


def _swallows(entrypoint: Sequence[str]) -> str:
    """Why commands are started without the image's entrypoint; "" where they are started with it."""
    program = PurePath(entrypoint[0]).name if entrypoint else ""
    if not program.startswith("python") and program not in _SWALLOWING:
        return ""
    return (
        f"Its entrypoint, {program}, would take a command for arguments of its own: commands are started"
        f" without it, and envcheck run --entrypoint={program} is with it."
    )


def _shm(host: Host) -> tuple[int, str]:
    """Half of the memory, which is Linux's own rule for /dev/shm; it is a limit, and takes nothing by itself.

    (MiB, what there is to say of it)
    """
    limits = [known(host.memory_total_mib), known(host.cgroup_memory_limit_mib)]
    least = min((limit for limit in limits if limit), default=0)
    if not least:
        return _SHM_LEAST_MIB, "/dev/shm has 1 GiB inside: this machine's memory is not known."
    return max(least // 2, min(_SHM_LEAST_MIB, least)), ""


def _ulimits(choice: EngineChoice, host: Host) -> tuple[dict[str, str], str]:
    """memlock and stack, where the engine may raise them: a start with others ends in an error."""
    if known(choice.engine.raises_limits) is True:
        return dict(_ULIMITS), ""
    may = {}
    # Rootless podman starts containers as the caller, whose own hard limits count. One that runs as root
    # and may not raise limits would lose containers.conf's own by any --ulimit, and start nothing.
    if choice.name == "podman" and known(choice.engine.rootless) is True:
        if known(host.memlock_hard_kib) == -1:
            may["memlock"] = _ULIMITS["memlock"]
        stack = known(host.stack_hard_kib)
        if stack is not None and (stack == -1 or stack * 1024 >= _STACK):
            may["stack"] = _ULIMITS["stack"]
    missing = [name for name in _ULIMITS if name not in may]
    if not missing:
        return may, ""
    asked = " and ".join(f"{name}={_ULIMITS[name]}" for name in missing)
    meaning = "RDMA, and so NCCL between machines, may not register its buffers"
    return may, (
        f"{choice.name} may not raise resource limits here, so containers are started without --ulimit"
        f" {asked}{f': {meaning}' if 'memlock' in missing else ''}."
    )


def _no_init(choice: EngineChoice) -> str:
    package = "catatonit" if choice.name == "podman" else "docker-init (tini)"
    return (
        f"{choice.name} has no init program here ({package}): the command is process 1 of its container, and"
        " one that does not handle SIGTERM has to be killed."
    )
