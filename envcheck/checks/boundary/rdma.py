"""The check on the host's RDMA devices in a container."""

from __future__ import annotations

from ..reading import Skip, SnapshotView, facts_of, is_absent, known, need
from ..registry import check
from ..verdicts import Passed, Remedy, Verdicts, about, warn
from .common import engine, image

RDMA = warn(
    "rdma-devices-missing",
    "RDMA devices did not arrive in the container",
    "{devices} of the host did not arrive in the container: NCCL between machines falls back to TCP.",
)


@check(
    "BND-009",
    title="The host's RDMA devices arrived in the container",
    causes=[RDMA],
    about="NCCL and MPI open /dev/infiniband/uverbs* to talk to InfiniBand and RoCE adapters. A container has"
    " no device that is not passed to it; without them traffic between machines falls back to TCP.",
    sources=["NCCL user guide, environment variables: NCCL_IB_DISABLE; rdma-core: libibverbs"],
)
def rdma_devices(view: SnapshotView) -> Verdicts:
    outside = facts_of(view.machine.host, "the host's devices")
    nodes = [name for name in known(outside.rdma_nodes) or [] if name.startswith("uverbs")]
    if not nodes:
        raise Skip("the host has no /dev/infiniband/uverbs*")
    value = facts_of(view.inside.host, "the container's devices").rdma_nodes
    inside = [] if is_absent(value) else need(value, "/dev/infiniband inside")
    missing = [f"/dev/infiniband/{name}" for name in nodes if name not in inside]
    if not missing:
        yield Passed(", ".join(nodes))
        return
    name = "podman" if engine(view) == "podman" else "docker"
    command = f"{name} run --device /dev/infiniband --ulimit memlock=-1 {image(view)}"
    yield RDMA.found(
        about("container", view.inside.location),
        [view.evidence("machine.host.rdma_nodes"), view.evidence("target.host.rdma_nodes")],
        advice=Remedy(
            "Start the container with them; they cannot be added from inside.", [command]
        ),
        devices=", ".join(missing),
    )
