"""Who holds the GPUs that are to be reset is named, and stopped before."""

from __future__ import annotations

import pytest
from h100 import ADDRESSES, VICTIM, gpu, kernel, machine
from judged import judged_alone
from msgspec.structs import replace

from envcheck.facts.gpu import GpuProcess
from envcheck.facts.kernel import Kernel, KernelModule, Service
from envcheck.facts.snapshot import Snapshot
from envcheck.findings.model import Remedy

RESET = f"sudo nvidia-smi --gpu-reset -i {ADDRESSES[VICTIM]}"
GNOME = GpuProcess(pid=99, kind="G", name="/usr/bin/gnome-shell")


def pending(processes: list[GpuProcess], services: str = "", modules: str = "") -> Snapshot:
    facts: Kernel = kernel(
        services=[Service(name=name, running=True) for name in services.split()],
        modules=[KernelModule(name=name) for name in modules.split()],
    )
    own = {"remap_pending": True, "processes": processes}
    return machine([gpu(n, **(own if n == VICTIM else {})) for n in range(8)], kernel=facts)


def remedy(snapshot: Snapshot) -> Remedy:
    (finding,) = judged_alone(snapshot, "GPU-003").findings
    assert finding.remedy is not None
    return finding.remedy


@pytest.mark.parametrize(
    ("processes", "services", "modules", "words", "before", "after"),
    [
        ([], "", "nvidia", "", [], []),
        (
            [],
            "nvidia-persistenced nvidia-dcgm",
            "",
            "nvidia-persistenced, nvidia-dcgm",
            ["sudo systemctl stop nvidia-persistenced", "sudo systemctl stop nvidia-dcgm"],
            ["sudo systemctl start nvidia-persistenced", "sudo systemctl start nvidia-dcgm"],
        ),
        ([], "", "nvidia_drm", "nvidia_drm", ["sudo modprobe -r nvidia_drm"],
         ["sudo modprobe nvidia_drm"]),
        ([GNOME], "", "", "process 99 (gnome-shell)", [], []),
        ([replace(GNOME, pid=n) for n in range(1, 8)], "", "", "3 more processes", [], []),
    ],
)  # fmt: skip
def test_a_reset_names_its_holders(
    processes: list[GpuProcess],
    services: str,
    modules: str,
    words: str,
    before: list[str],
    after: list[str],
) -> None:
    found = remedy(pending(processes, services, modules))
    assert ("What holds GPUs here" in found.text) is bool(words)
    assert words in found.text
    at = found.commands.index(RESET)
    assert found.commands[at - len(before) : at] == before
    assert found.commands[at + 1 :] == after


def test_a_desktop_ends_before_its_module_is_unloaded() -> None:
    commands = remedy(pending([GNOME], "", "nvidia_drm")).commands
    at = commands.index("sudo modprobe -r nvidia_drm")
    assert "isolate multi-user.target" in commands[at - 1]
