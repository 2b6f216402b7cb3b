"""How an image is started on this machine: what frameworks need, as far as the engine may set it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import PurePath

import msgspec

from ...facts.base import known
from ...facts.host import Host
from ...facts.snapshot import Snapshot
from ...facts.view import SnapshotView
from ..engine import Start
from .choose import EngineChoice

# As NVIDIA's release notes of its TensorFlow containers recommend: `--shm-size=1g --ulimit memlock=-1
# --ulimit stack=67108864`. NCCL and data loaders pass data through /dev/shm, and 1 GiB is the least.
_SHM_LEAST_MIB = 1024
_STACK = 67108864  # bytes
_ULIMITS = {"memlock": "-1", "stack": str(_STACK)}
_RDMA = "/dev/infiniband"  # which NCCL and MPI use for InfiniBand and RoCE

# Programs that take a command for their own arguments.
_SWALLOWING = ("ipython", "jupyter", "jupyter-lab", "jupyter-notebook", "tritonserver")


def start(
    choice: EngineChoice,
    image: str,
    reference: str,
    entrypoint: Sequence[str],
    snapshot: Snapshot,
    environment: Mapping[str, str],
) -> Start:
    """The Start of an image. image: its name or id in the engine. reference: for people.

    entrypoint: the image's. environment: the stack's. What could not be set is in ``remarks``.
    """
    host = SnapshotView(snapshot).machine.host
    facts = host.facts if host is not None and host.facts is not None else Host()
    engine, rootless = choice.engine, known(choice.engine.rootless) is True
    program = PurePath(entrypoint[0]).name if entrypoint else ""
    swallows = program.startswith("python") or program in _SWALLOWING
    podman = choice.name == "podman"
    init = known(engine.init_path) is not None
    ulimits = _ulimits(choice, facts)
    missing = [f"{name}={limit}" for name, limit in _ULIMITS.items() if name not in ulimits]
    remarks = {
        f"Its entrypoint, {program}, would take a command for its own arguments: commands are started"
        f" without it; envcheck run --entrypoint={program} uses it.": swallows,
        f"{choice.name} has no init program here ({'catatonit' if podman else 'docker-init'}): a command"
        " that does not handle SIGTERM has to be killed.": not init,
        f"{choice.name} may not raise resource limits here: containers start without --ulimit"
        f" {' and '.join(missing)}, and RDMA may not register its buffers.": missing,
    }
    return Start(
        engine=choice.name,
        program=choice.program,
        image=image,
        reference=reference,
        entrypoint="" if swallows else None,
        wiring=choice.wiring,
        gpus=0 if choice.wiring.kind == "none" else choice.gpus,
        environment=dict(environment),
        shm_mib=_shm(facts),
        ulimits=ulimits,
        init=init,
        keep_id=rootless and podman,
        root_is_caller=rootless and not podman,
        # A rootless podman sets limits in control groups of version 2 alone, and refuses to start elsewhere.
        pids_unlimited=podman and (not rootless or known(facts.cgroup_version) == 2),
        # SELinux would keep the container from what is mounted into it.
        unlabelled=known(facts.selinux) == "enforcing" and known(engine.selinux) is not False,
        remarks=[remark for remark, applies in remarks.items() if applies],
    )


def with_devices(start: Start) -> Start:
    """With the devices that are there now: an InfiniBand driver may be newer than the installation."""
    present = os.path.exists(_RDMA)  # noqa: PTH110
    return msgspec.structs.replace(start, devices=[_RDMA] if present else [])


def _shm(host: Host) -> int:
    """MiB: half of the memory, Linux's own default for /dev/shm. It is a limit, not a reservation."""
    limits = [known(host.memory_total_mib), known(host.cgroup_memory_limit_mib)]
    memory = min((limit for limit in limits if limit), default=0)
    return max(memory // 2, min(_SHM_LEAST_MIB, memory)) or _SHM_LEAST_MIB


def _ulimits(choice: EngineChoice, host: Host) -> dict[str, str]:
    """memlock and stack, as far as the engine may raise them: otherwise a start with them fails."""
    if known(choice.engine.raises_limits) is True:
        return dict(_ULIMITS)
    # Rootless podman starts containers as the caller, whose own hard limits count. One that runs as root
    # and may not raise limits would lose containers.conf's own by any --ulimit, and start nothing.
    if choice.name != "podman" or known(choice.engine.rootless) is not True:
        return {}
    stack = known(host.stack_hard_kib) or 0
    allowed = {
        "memlock": known(host.memlock_hard_kib) == -1,
        "stack": stack == -1 or stack * 1024 >= _STACK,
    }
    return {name: limit for name, limit in _ULIMITS.items() if allowed[name]}
