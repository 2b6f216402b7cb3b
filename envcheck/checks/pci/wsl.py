"""Why a Linux in Windows (WSL) has no GPU; where it has one, nothing on PCI shows it."""

from __future__ import annotations

import re

from ..driver_state import container
from ..nvidia_devices import ON_WSL, host_facts
from ..reading import Skip, SnapshotView, known
from ..settings import table_causes, wrong_here
from ..verdicts import Verdicts, fail

FIRST = fail(
    "wsl-1",
    "this is WSL 1, which has no GPU",
    "This Linux runs in WSL 1 ({kernel}), which has no way to a GPU: nothing here can use CUDA.",
    "Convert it to WSL 2, in Windows, under the name that the first command lists.",
    "wsl.exe --list --verbose",
    "wsl.exe --update",
    "wsl.exe --set-version Ubuntu 2",
    source="microsoft/WSL#829, #5955",
)
NO_DEVICE = fail(
    "wsl-without-gpu",
    "WSL was given no GPU",
    "There is no /dev/dxg, by which Windows gives WSL its GPU: nothing here can use CUDA.",
    "Install NVIDIA's driver in Windows (none in here), update WSL, and start it again; .wslconfig must not"
    " say gpuSupport=false. Windows 10 needs 21H2 or newer.",
    "wsl.exe --update",
    "wsl.exe --shutdown",
    source="microsoft/WSL#6809; nvidia-docker#1542; NVIDIA, CUDA on WSL user guide",
)
_ROWS = table_causes("PCI-001")
CAUSES = (FIRST, NO_DEVICE, *_ROWS.values())
_FIRST = re.compile(r"-Microsoft\Z")  # WSL 2's kernels end in -microsoft-standard-WSL2


def judge(view: SnapshotView) -> Verdicts:
    """Raises Skip where this WSL has its GPU, or may have it."""
    host = host_facts(view)
    if known(host.wsl_device) is not False or container(view):
        raise Skip(ON_WSL)
    shown = [view.evidence("machine.host.kernel"), view.evidence("machine.host.wsl_device")]
    settings = known(host.settings) or []
    if _FIRST.search(known(host.kernel) or ""):
        yield FIRST.found(evidence=shown, kernel=known(host.kernel))
        return
    conditions = {"no-dxg": lambda: True}
    found = list(wrong_here(view, _ROWS, "machine.host.settings", settings, conditions))
    yield from found or [NO_DEVICE.found(evidence=shown)]
