"""A GPU that this release of the driver does not support, by the driver's lines in the kernel log."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...data.kernel import flavour_for
from ..driver_on_disk import installed_version
from ..driver_state import REBOOT
from ..nvidia_devices import event_evidence, kernel_facts
from ..on_the_bus import NVIDIA_DEVICES
from ..reading import KernelEvent, SnapshotView, known
from ..system_commands import on_system
from ..verdicts import Cause, Finding, fail
from .events import subjects_at

_WORDS = re.compile(r"Legacy drivers|not supported by the (?:\d[\d.]{2,20} )?NVIDIA")
_RELEASE = re.compile(r"(?:supported by the (?:NVIDIA )?|[Tt]he )(\d{2,4}\.\d[\d.]{0,10}\d)\b")
_LEGACY = re.compile(r"NVIDIA (\d{2,3}\.[\dx.]{1,10}) Legacy")
_DEVICE = re.compile(r"PCI ID: ?(10de:[0-9a-f]{4})", re.I)
_BEFORE_TURING = "proprietary"


def _cause(key: str, why: str, install: str) -> Cause:
    return fail(
        key,
        "is not supported by {driver}",
        f"This GPU is not supported by {{driver}}: {why}. Nothing can use it.",
        f"{install} Where the list of this release has it, the GPU may have been asleep when the"
        " driver looked: boot with pcie_port_pm=off.",
    )


LEGACY = _cause(
    "needs-legacy-branch",
    "it is supported by the legacy branch {legacy} alone",
    "Install the driver of branch {branch} instead of this one.",
)
TOO_OLD = _cause(
    "driver-too-old-for-gpu",
    "it is too old for this GPU",
    "Install a newer driver, whose list of supported products has this GPU.",
)
UNSUPPORTED = _cause(
    "gpu-not-supported",
    "the GPU is newer than it, or so old that a legacy branch alone supports it",
    "Install a driver whose list of supported products has this GPU: a newer one, or for an old GPU the"
    " legacy branch.",
)
CAUSES = (LEGACY, TOO_OLD, UNSUPPORTED)


def is_unsupported(event: KernelEvent) -> bool:
    return event.kind == "nvrm" and bool(_WORDS.search(event.text))


def unsupported(view: SnapshotView, events: Sequence[KernelEvent]) -> Iterator[Finding]:
    """One finding for each GPU."""
    kernel = kernel_facts(view)
    for address, event in {known(event.pci_address): event for event in events}.items():
        release, legacy, device = (
            pattern.search(event.text) for pattern in (_RELEASE, _LEGACY, _DEVICE)
        )
        driver = release[1] if release else known(kernel.driver_version)
        driver = driver or installed_version(kernel)
        row = flavour_for(device[1].lower()) if device else None
        number = legacy[1].partition(".")[0] if legacy else None
        cause, commands = UNSUPPORTED, on_system(view, "update-driver")
        if number:
            cause, commands = LEGACY, on_system(view, "legacy-driver", branch=number)
        elif row is not None and row.flavour != _BEFORE_TURING:
            cause = TOO_OLD
        yield cause.found(
            subjects_at(view, address),
            [event_evidence(view, event)],
            commands=[NVIDIA_DEVICES, *commands, REBOOT],
            driver=f"driver {driver}" if driver else "this release of the driver",
            branch=number,
            legacy=legacy[1] if legacy else None,
        )
