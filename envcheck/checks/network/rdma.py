"""Checks on what RDMA between GPUs of several machines needs: libraries, nodes and a module."""

from __future__ import annotations

import re

from packaging.version import Version

from ...facts.host import Host
from ..declared import declared_causes, declared_rows
from ..kernel.events import from_log
from ..nvidia_devices import host_facts, is_loaded, kernel_facts
from ..reading import Skip, SnapshotView, Unavailable, facts_or, known, need
from ..system_commands import in_engine, in_image, on_system
from ..target import installed_if_known, pip_install
from ..verdicts import Passed, Remedy, Verdicts, about, about_file, check
from . import common
from .known_bad import nccl_here

CAUSE = declared_causes(__name__)
_LINES = declared_rows(__name__)
_BY_PEERMEM = ("mlx5_core", "mlx4_core")  # whose adapters NVIDIA's own module serves
_DMABUF_KERNEL = (5, 12)


@check("NET-005")
def libraries(view: SnapshotView) -> Verdicts:
    ports = common.serving_ports(view)
    facts = common.network(view)
    inside = view.seen is not view.machine and view.seen.network is not view.machine.network
    where = "in the container" if inside else "here"
    advice = (
        Remedy(
            "Install them in the image, or start from one of NVIDIA's.",
            in_image(view, "rdma-libraries"),
        )
        if inside
        else Remedy("Install the RDMA libraries.", on_system(view, "rdma-libraries"))
    )
    library = facts.libibverbs
    rdma = view.evidence("machine.network.rdma", common.named(ports))
    if isinstance(library, Unavailable) and library.unavailable == "absent":
        yield CAUSE["libibverbs-missing"].found(
            about("library", "libibverbs.so.1"),
            [view.evidence("seen.network.libibverbs"), rdma],
            advice=advice,
            where=where,
            ports=common.named(ports),
        )
        return
    confined = inside or known(facts_or(view.seen.host, Host).container) is not None
    if known(facts.verbs_nodes) == [] and confined:
        yield CAUSE["rdma-nodes-not-given"].found(
            about_file("/dev/infiniband"),
            [view.evidence("seen.network.verbs_nodes"), rdma],
            commands=in_engine(view, "rdma"),
            ports=common.named(ports),
        )
        return
    yield Passed(need(library, "libibverbs"))


_SEES_PEERMEM = Version("2.23")


@check("NET-006")
def peer_memory(view: SnapshotView) -> Verdicts:
    yield from from_log(view, _LINES)
    ports = [one for one in common.serving_ports(view) if known(one[0].driver) in _BY_PEERMEM]
    if not ports:
        raise Skip("the RDMA adapters are not NVIDIA's")
    if not common.for_data_centres(view):
        raise Skip("no data-centre GPU")
    kernel = kernel_facts(view)
    modules = {one.name for one in need(kernel.modules, "the loaded modules")}
    loaded = sorted(modules & {"nvidia_peermem", "nv_peer_mem"})
    old = next((one for one in nccl_here(view) if one.version < _SEES_PEERMEM), None)
    unseen = known(common.network(view).memory_peers) == [] and loaded == ["nvidia_peermem"]
    if loaded and not (old and unseen):
        yield Passed(loaded[0])
        return
    if is_loaded(kernel) is False:
        raise Skip("the nvidia module is not loaded")
    release = known(kernel.release) or known(host_facts(view).kernel)
    version = re.match(r"(\d+)\.(\d+)", release or "")
    flavour = need(kernel.driver_flavour, "whether the modules are the open ones")
    off = common.setting(common.network(view), "NCCL_DMABUF_ENABLE")
    if flavour == "open" and (off is None or off.value != "0"):
        if version is None:
            raise Skip("the kernel's version is not known")
        if (int(version[1]), int(version[2])) >= _DMABUF_KERNEL:
            yield Passed(f"by DMA-BUF (open modules, Linux {version[0]})")
            return
    if old and unseen:
        wanted = f"{old.package}>={_SEES_PEERMEM}" if old.package else ""
        if "torch" in installed_if_known(view):
            wanted = "torch>=2.7"
        yield CAUSE["nccl-ignores-nvidia-peermem"].found(
            about("package", old.package) if old.package else [],
            [
                old.evidence,
                view.evidence("machine.kernel.modules", loaded[0]),
                view.evidence("machine.network.memory_peers", "none"),
            ],
            commands=[pip_install(view, wanted)] if wanted else [],
            version=str(old.version),
            ports=common.named(ports),
        )
        return
    yield CAUSE["gpudirect-unavailable"].found(
        evidence=[
            view.evidence("machine.kernel.modules", ", ".join(sorted(modules))),
            view.evidence("machine.kernel.driver_flavour"),
            view.evidence("machine.network.rdma", common.named(ports)),
        ],
        kernel=f"Linux {version[0]}" if version else "this kernel",
        flavour=flavour,
        ports=common.named(ports),
    )
