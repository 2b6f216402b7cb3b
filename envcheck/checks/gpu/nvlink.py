"""The check on NVLinks: as many up as on the GPU's peers and on its product, and clean."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ...data.products import product
from ...facts.base import Maybe, Unavailable, known
from ...facts.gpu import Gpu, NvLink
from ...facts.missing import Skip
from ...facts.view import SnapshotView, need
from ...findings.model import Finding, Passed, Remedy, Verdict
from ..driver_state import NO_GPUS, on_wsl
from ..gpus import address_of, finding, gpu_path, judge_gpus
from ..nvidia_devices import known_kernel
from ..on_the_bus import BRIDGES
from ..peer_groups import is_vgpu
from ..registry import check
from .fabric import has_nvswitch
from .link import in_virtual_machine

# Errors since the driver was loaded, of which a few are normal on a link; recoveries retrain it.
_LINK_LIMITS = {"crc_errors": 1000, "replay_errors": 1000, "recovery_errors": 10}
_DISABLED = "NvLinkDisable"  # a parameter of the nvidia module
# GPUs on a baseboard whose NVLinks go from GPU to GPU: whoever has all of them has all of the links.
_WHOLE_BOARDS = (4, 8, 16)


@check(
    "GPU-013",
    title="Every NVLink is up and clean",
    problem="has NVLinks that are down or have errors",
    about="An NVLink that is down among others that are up, or that counts errors by the thousand, costs"
    " bandwidth between GPUs, and may make collectives hang. A GPU is compared with the others of its"
    " name and with its product. GPUs on a baseboard (SXM) have all of their links wired: without any they"
    " exchange data over PCIe, many times slower, which is what a virtual machine gets whose host did not"
    " pass the NVSwitches on or made no partition of the fabric. Cards have links only where a bridge joins"
    " two, so one without any is no fault; nor is a baseboard's GPU that a machine was given alone. All are"
    " warnings.",
    sources=(
        "nvidia-smi nvlink -s, -e",
        "NVSentinel#890",
        "stanford_alpaca#32 (A100-SXM without NVLink in a virtual machine)",
        "vllm#16336 (one of eight B200 without any)",
        "NVIDIA Fabric Manager User Guide, Shared NVSwitch Virtualization Model",
    ),
    follows=(*NO_GPUS, "GPU-012"),
)
def nvlinks_are_up(view: SnapshotView) -> Iterator[Verdict]:
    named: dict[Maybe[str], dict[int, int | None]] = {}
    for gpu in view.gpus:
        if not known(gpu.mig_enabled):
            named.setdefault(gpu.name, {})[id(gpu)] = _count(view, gpu)
    return judge_gpus(view, lambda gpu: _links(view, gpu, named.get(gpu.name, {})))


def _links(view: SnapshotView, gpu: Gpu, peers: dict[int, int | None]) -> Iterator[Verdict]:
    """peers: how many links are up of each GPU of this name, itself among them, by its id."""
    if known(gpu.mig_enabled):
        raise Skip("MIG is on: its instances do not use NVLink")
    if is_vgpu(gpu):
        raise Skip("a virtual GPU's NVLinks are its host's")
    told = peers[id(gpu)]
    if told is None:
        need(gpu.nvlinks, "the NVLinks")
        return
    most = max(count for count in peers.values() if count is not None)
    wired = _wired(view, gpu, most, list(peers.values()))
    if told < max(most, wired) and not _bridged(gpu, told, list(peers.values())):
        if told or _built_in(gpu) or _on_switches(view, gpu, peers):
            yield from _too_few(view, gpu, told, most, wired)
            return
    elif not most:
        raise Skip("no NVLink is in use")
    yield from _noisy(view, gpu, told)


def _too_few(view: SnapshotView, gpu: Gpu, told: int, most: int, wired: int) -> Iterator[Verdict]:
    links = known(gpu.nvlinks) or []
    down = [str(link.link) for link in links if known(link.active) is False]
    evidence = f"links {', '.join(down)} are down" if down else "no link is listed"
    if most > told:
        beside = f"{most} on its peers"
    else:
        beside = f"{wired} on this product" if wired else "a baseboard wires all of them"
    if told:
        message = f"{told} NVLinks are up, {beside}: exchange with other GPUs is slower."
    else:
        message = (
            f"No NVLink is up, {beside}: it exchanges data with other GPUs over PCIe, many times"
            " slower."
        )
    yield _link_finding(
        view, gpu, message, evidence, _remedy(view, gpu, none_at_all=not most), not told
    )


def _noisy(view: SnapshotView, gpu: Gpu, active: int) -> Iterator[Verdict]:
    noisy = [
        f"link {link.link}: {known(getattr(link, counter))} {counter.replace('_', ' ')}"
        for link in known(gpu.nvlinks) or []
        for counter, limit in _LINK_LIMITS.items()
        if (known(getattr(link, counter)) or 0) >= limit
    ]
    if noisy:
        yield _link_finding(
            view,
            gpu,
            "NVLink counts many errors: bandwidth is lost, and collectives may hang.",
            "; ".join(noisy[:6]),
            _remedy(view, gpu),
        )
    else:
        yield Passed(f"{active} links up" if active else "no NVLink in use")


def _count(view: SnapshotView, gpu: Gpu) -> int | None:
    """The links that are up; None where that is not known."""
    links = gpu.nvlinks
    if not isinstance(links, Unavailable):
        return len(_active(links))
    # NVML's plain "not supported" of a baseboard's GPU: it has links, and none of them is there.
    none = links.unavailable == "not-supported" and not links.detail and not on_wsl(view)
    return 0 if none and _built_in(gpu) else None


def _active(links: list[NvLink]) -> list[NvLink]:
    return [link for link in links if known(link.active)]


def _built_in(gpu: Gpu) -> bool:
    """Whether the GPU sits on a baseboard that wires its NVLinks."""
    name = known(gpu.name) or ""
    sold = product(name)
    return "-SXM" in name or (sold is not None and sold.board == "module")


def _bridged(gpu: Gpu, told: int, counts: list[int | None]) -> bool:
    """Whether it is a card that a bridge joins to another one, which has as many links for that."""
    return told > 0 and not _built_in(gpu) and _is_card(gpu) and counts.count(told) % 2 == 0


def _is_card(gpu: Gpu) -> bool:
    name = known(gpu.name) or ""
    sold = product(name)
    words = ("PCIe", "PCIE", "NVL", "RTX", "Quadro", "TITAN")
    return (sold is not None and sold.board == "card") or any(word in name for word in words)


def _on_switches(view: SnapshotView, gpu: Gpu, peers: dict[int, int | None]) -> bool:
    """Whether this GPU's peers are joined by NVSwitches, which join all of them or none."""
    return has_nvswitch(view) or any(
        known(peer.fabric_state) == "Completed" and peers.get(id(peer))
        for peer in view.gpus
        if peer is not gpu
    )


def _wired(view: SnapshotView, gpu: Gpu, most: int, counts: list[int | None]) -> int:
    """The links that a baseboard's GPU must have by its product; 0 where nothing is known of that."""
    name = known(gpu.name) or ""
    sold = product(name)
    if not _built_in(gpu) or len(counts) < 2:
        return 0
    if sold is None or not sold.nvlinks:
        return 1  # some of them
    part = len(counts) not in _WHOLE_BOARDS
    if part and (not sold.nvswitch or in_virtual_machine(view, gpu)):
        return 1  # those to GPUs that are not here may stay down
    return sold.nvlinks


def _remedy(view: SnapshotView, gpu: Gpu, none_at_all: bool = False) -> Remedy:
    see = [
        f"nvidia-smi nvlink -s -i {address_of(gpu)}",
        f"nvidia-smi nvlink -e -i {address_of(gpu)}",
    ]
    kernel = known_kernel(view)
    if none_at_all and kernel is not None and kernel.driver_parameters.get(_DISABLED, "0") != "0":
        return Remedy(
            "NVLink is switched off by a parameter of the nvidia module (NVreg_NvLinkDisable): take it out,"
            " rebuild the initial RAM disk, and reboot.",
            ["grep -rs NVreg_NvLinkDisable /etc/modprobe.d /run/modprobe.d /proc/cmdline"],
        )
    if none_at_all and in_virtual_machine(view, gpu):
        return Remedy(
            "The host decides this: its fabric manager must run and put these GPUs into one partition"
            " (shared NVSwitch model), or the NVSwitches must be passed into this machine together with all"
            " GPUs of the board; with a cloud, take the type of machine that has NVLink.",
            ["nvidia-smi topo -m", "nvidia-smi nvlink -s", BRIDGES],
        )
    if none_at_all:
        return Remedy(
            "See whether the NVSwitches are on the bus and their fabric manager runs, then reset all GPUs"
            " together or reboot; if it stays, have the baseboard looked at.",
            [
                "nvidia-smi topo -m",
                *see[:1],
                "systemctl status nvidia-fabricmanager --no-pager",
                "sudo dmesg | grep -iE 'nvlink|nvswitch|sxid'",
            ],
        )
    return Remedy(
        "See which links are down or count errors; reset the GPUs, and reseat the board or bridge if it"
        " stays.",
        see,
    )


def _link_finding(
    view: SnapshotView, gpu: Gpu, message: str, told: str, remedy: Remedy, none: bool = False
) -> Finding:
    headline = "has no NVLink" if none else ""
    found = finding(view, "warn", gpu, message, "nvlinks", remedy, headline)
    path = found.evidence[0].fact if found.evidence else f"{gpu_path(view, gpu)}.nvlinks"
    evidence = [view.evidence(path, told)]
    kernel = known_kernel(view)
    if none and kernel is not None and _DISABLED in kernel.driver_parameters:
        value = f"{_DISABLED}: {kernel.driver_parameters[_DISABLED]}"
        evidence.append(view.evidence("machine.kernel.driver_parameters", value))
    return msgspec.structs.replace(found, evidence=evidence)
