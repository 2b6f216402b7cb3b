"""Who holds GPUs that are to be reset, so that the reset is refused, and how they are stopped."""

from __future__ import annotations

from msgspec.structs import replace

from ..facts.base import known
from ..facts.missing import CannotJudge
from ..facts.view import SnapshotView, fact
from ..findings.model import Finding, Remedy
from .driver_state import container, service
from .system_commands import systemctl

# What takes back a command that stops something else.
_BACK = {
    "sudo modprobe -r nvidia_drm": "sudo modprobe nvidia_drm",
    "echo quit | sudo nvidia-cuda-mps-control": "sudo nvidia-cuda-mps-control -d",
}
_MOST = 4  # processes that are named
_SERVICES = ("nvidia-persistenced", "nvidia-dcgm")


def with_holders(view: SnapshotView, finding: Finding) -> Finding:
    """The finding; where its remedy resets GPUs, with who holds them: stopped before, started again after."""
    remedy = finding.remedy
    places = [n for n, one in enumerate(remedy.commands if remedy else []) if _resets(one)]
    if remedy is None or not places or container(view):
        return finding
    held = _services(view)
    names, stops = _others(view, {one.address for one in finding.subjects if one.address})
    names, stops = held + names, [systemctl("stop", name) for name in held] + stops
    if not names:
        return finding
    first, last = places[0], places[-1] + 1
    starts = [_BACK[stop] for stop in stops if stop in _BACK]
    starts += [systemctl("start", name) for name in held]
    old = remedy.commands
    commands = [*old[:first], *stops, *old[first:last], *starts, *old[last:]]
    text = f"{remedy.text} What holds GPUs here: {', '.join(names)}."
    return replace(finding, remedy=Remedy(text, list(dict.fromkeys(commands))))


def _resets(command: str) -> bool:
    return "nvidia-smi " in command and (" --gpu-reset" in command or " -mig " in command)


def _services(view: SnapshotView) -> list[str]:
    return [name for name in _SERVICES if (s := service(view, name)) and known(s.running) is True]


def _others(view: SnapshotView, addresses: set[str]) -> tuple[list[str], list[str]]:
    """(names, commands) of processes on these GPUs, of MPS and of the display's module."""
    try:
        gpus = [g for g in view.gpus if not addresses or known(g.pci_address) in addresses]
    except CannotJudge:
        gpus = []
    processes = {one.pid: one for gpu in gpus for one in known(gpu.processes) or []}
    names, stops = [], []
    for pid, one in list(processes.items())[:_MOST]:
        names.append(f"process {pid} ({(known(one.name) or '?').rpartition('/')[2]})")
    if len(processes) > _MOST:
        names.append(f"{len(processes) - _MOST} more processes")
    mps = service(view, "nvidia-cuda-mps-control")
    if mps is not None and known(mps.running) is True:
        names.append("the MPS daemon")
        stops.append("echo quit | sudo nvidia-cuda-mps-control")
    if any(one.name == "nvidia_drm" for one in fact(view.machine.kernel, "modules") or []):
        names.append("the module nvidia_drm (displays)")
        if any("G" in one.kind for one in processes.values()):
            stops.append(systemctl("isolate", "multi-user.target") + "  # ends the desktop")
        stops.append("sudo modprobe -r nvidia_drm")
    return names, stops
