"""Why a Linux in Windows (WSL) has no GPU; where it has one, nothing on PCI shows it."""

from __future__ import annotations

import re

from ..declared import declared_causes, declared_rows
from ..driver_state import container
from ..nvidia_devices import ON_WSL, host_facts
from ..reading import Skip, SnapshotView, known
from ..settings import wrong_here
from ..verdicts import Verdicts

CAUSE = declared_causes(__name__)

_ROWS = declared_rows(__name__)
CAUSES = (CAUSE["wsl-1"], CAUSE["wsl-without-gpu"], *(row.cause for row in _ROWS))
_FIRST = re.compile(r"-Microsoft\Z")  # WSL 2's kernels end in -microsoft-standard-WSL2


def judge(view: SnapshotView) -> Verdicts:
    """Raises Skip where this WSL has its GPU, or may have it."""
    host = host_facts(view)
    if known(host.wsl_device) is not False or container(view):
        raise Skip(ON_WSL)
    shown = [view.evidence("machine.host.kernel"), view.evidence("machine.host.wsl_device")]
    settings = known(host.settings) or []
    if _FIRST.search(known(host.kernel) or ""):
        yield CAUSE["wsl-1"].found(evidence=shown, kernel=known(host.kernel))
        return
    conditions = {"no-dxg": lambda: True}
    found = list(wrong_here(view, _ROWS, "machine.host.settings", settings, conditions))
    yield from found or [CAUSE["wsl-without-gpu"].found(evidence=shown)]
