"""The check on NVLinks: as many up as on the GPU's peers and on its product, and clean."""

from __future__ import annotations

from ...data.products import product
from ..declared import declared_causes
from ..driver_state import on_wsl
from ..gpus import found, gpu_path, judge_gpus
from ..peer_groups import is_vgpu
from ..reading import Gpu, Maybe, Skip, SnapshotView, Unavailable, known, need
from ..verdicts import Evidence, Finding, Passed, Verdicts, check
from .fabric import has_nvswitch
from .link import in_virtual_machine

CAUSE = declared_causes(__name__)

# Errors since the driver was loaded, of which a few are normal on a link; recoveries retrain it.
_LINK_LIMITS = {"crc_errors": 1000, "replay_errors": 1000, "recovery_errors": 10}
# GPUs on a baseboard whose NVLinks go from GPU to GPU: a machine with all of them has all the links.
_WHOLE_BOARDS = (4, 8, 16)

# Cards whose links all go to one bridge have no more; of others a part may lead nowhere.
_ONE_BRIDGE = 4


@check("GPU-013")
def nvlinks_are_up(view: SnapshotView) -> Verdicts:
    named: dict[Maybe[str], dict[int, int | None]] = {}
    for gpu in view.gpus:
        if not known(gpu.mig_enabled):
            named.setdefault(gpu.name, {})[id(gpu)] = _count(view, gpu)
    return judge_gpus(view, lambda gpu: _links(view, gpu, named.get(gpu.name, {})))


def _links(view: SnapshotView, gpu: Gpu, peers: dict[int, int | None]) -> Verdicts:
    """peers: the number of links up of each GPU of this name, itself included, by its id."""
    if known(gpu.mig_enabled):
        raise Skip("MIG is on: its instances do not use NVLink")
    if is_vgpu(gpu):
        raise Skip("a virtual GPU's NVLinks are its host's")
    up, counts = peers[id(gpu)], list(peers.values())
    if up is None:
        need(gpu.nvlinks, "the NVLinks")
        return
    most = max(count for count in counts if count is not None)
    wired = _wired(view, gpu, len(counts))
    # A bridge joins two cards, and both have as many links for that.
    bridged = up > 0 and not _built_in(gpu) and counts.count(up) % 2 == 0
    if up < max(most, wired) and not bridged:
        if up or _built_in(gpu) or _on_switches(view, gpu, peers):
            yield _too_few(view, gpu, up, most, wired)
            return
    elif not most:
        raise Skip("no NVLink is in use")
    links = known(gpu.nvlinks) or []
    states = [known(link.active) for link in links]
    if not _built_in(gpu) and 0 < up < len(links) <= _ONE_BRIDGE and None not in states:
        shown = [_evidence(view, gpu, f"{states.count(False)} down")]
        yield found(view, CAUSE["bridge-half-up"], gpu, "", evidence=shown, up=up, links=len(links))
        return
    noisy = [
        f"link {link.link}: {known(getattr(link, counter))} {counter.replace('_', ' ')}"
        for link in known(gpu.nvlinks) or []
        for counter, limit in _LINK_LIMITS.items()
        if (known(getattr(link, counter)) or 0) >= limit
    ]
    if noisy:
        yield found(
            view,
            CAUSE["nvlink-errors"],
            gpu,
            "",
            evidence=[_evidence(view, gpu, "; ".join(noisy[:6]))],
        )
    else:
        yield Passed(f"{up} links up" if up else "no NVLink in use")


def _too_few(view: SnapshotView, gpu: Gpu, up: int, most: int, wired: int) -> Finding:
    down = [str(link.link) for link in known(gpu.nvlinks) or [] if known(link.active) is False]
    word = "link" if len(down) == 1 else "links"
    text = f"down: {word} {', '.join(down)}" if down else "no link is listed"
    shown = [_evidence(view, gpu, text)]
    beside = f"{most} on its peers" if most > up else f"{wired} on this product"
    cause = CAUSE["nvlinks-down"] if up else CAUSE["no-nvlink"]
    if not up and not most and in_virtual_machine(view, gpu):
        cause = CAUSE["no-nvlink-in-guest"]
    none = isinstance(gpu.nvlinks, Unavailable)
    state = "NVML says that NVLink is not supported here" if none else "No NVLink is up"
    return found(view, cause, gpu, "", evidence=shown, up=up, beside=beside, state=state)


def _evidence(view: SnapshotView, gpu: Gpu, text: str) -> Evidence:
    path = f"{gpu_path(view, gpu)}.nvlinks"
    if known(gpu.nvlinks) is not None:
        path = view.gpu_evidence(gpu, "nvlinks").fact
    return view.evidence(path, text)


def _count(view: SnapshotView, gpu: Gpu) -> int | None:
    """The number of links up; None if that is not known."""
    links = gpu.nvlinks
    if not isinstance(links, Unavailable):
        return sum(known(link.active) is True for link in links)
    # NVML's plain "not supported" of a baseboard's GPU: it has links, and none of them is there.
    none = links.unavailable == "not-supported" and not links.detail and not on_wsl(view)
    return 0 if none and _built_in(gpu) else None


def _built_in(gpu: Gpu) -> bool:
    name = known(gpu.name) or ""
    sold = product(name)
    return "-SXM" in name or (sold is not None and sold.board == "module")


def _on_switches(view: SnapshotView, gpu: Gpu, peers: dict[int, int | None]) -> bool:
    """Whether this GPU's peers are joined by NVSwitches, which join all of them or none."""
    return has_nvswitch(view) or any(
        known(peer.fabric_state) == "Completed" and peers.get(id(peer))
        for peer in view.gpus
        if peer is not gpu
    )


def _wired(view: SnapshotView, gpu: Gpu, count: int) -> int:
    """The links that a baseboard's GPU must have by its product, with ``count`` in all; 0 if not known."""
    sold = product(known(gpu.name) or "")
    if not _built_in(gpu) or count < 2:
        return 0
    if sold is None or not sold.nvlinks:
        return 1  # some of them
    part = count not in _WHOLE_BOARDS
    if part and (not sold.nvswitch or in_virtual_machine(view, gpu)):
        return 1  # those to GPUs that are not here may stay down
    return sold.nvlinks
