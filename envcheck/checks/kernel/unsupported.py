"""A GPU that this release of the driver does not support, by the driver's own words in the kernel log."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...data.kernel import flavour_for
from ...facts.base import known
from ...facts.kernel import KernelEvent
from ...facts.view import SnapshotView
from ...findings.model import Finding, Remedy
from ..driver_on_disk import installed_version
from ..driver_state import REBOOT
from ..nvidia_devices import event_evidence, kernel_facts
from ..on_the_bus import NVIDIA_DEVICES
from ..system_commands import on_system
from .events import subjects_at

_WORDS = re.compile(r"Legacy drivers|not supported by the (?:\d[\d.]{2,20} )?NVIDIA")
_RELEASE = re.compile(r"(?:supported by the (?:NVIDIA )?|[Tt]he )(\d{2,4}\.\d[\d.]{0,10}\d)\b")
_LEGACY = re.compile(r"NVIDIA (\d{2,3}\.[\dx.]{1,10}) Legacy")
_DEVICE = re.compile(r"PCI ID: ?(10de:[0-9a-f]{4})", re.I)
_BEFORE_TURING = "proprietary"


def is_unsupported(event: KernelEvent) -> bool:
    return event.kind == "nvrm" and bool(_WORDS.search(event.text))


def unsupported(view: SnapshotView, events: Sequence[KernelEvent]) -> Iterator[Finding]:
    """One finding for each GPU."""
    latest = {known(event.pci_address): event for event in events}
    for address, event in latest.items():
        yield _of(view, address, event)


def _of(view: SnapshotView, address: str | None, event: KernelEvent) -> Finding:
    kernel = kernel_facts(view)
    told, legacy, device = (pattern.search(event.text) for pattern in (_RELEASE, _LEGACY, _DEVICE))
    driver = told[1] if told else known(kernel.driver_version) or installed_version(kernel)
    named = f"driver {driver}" if driver else "this release of the driver"
    row = flavour_for(device[1].lower()) if device else None
    if legacy:
        why = f"it is supported by the legacy branch {legacy[1]} alone"
        text = f"Install the driver of branch {legacy[1].partition('.')[0]} in this one's place."
        commands = on_system(view, "legacy-driver", branch=legacy[1].partition(".")[0])
    elif row is not None and row.flavour != _BEFORE_TURING:
        why = "it is too old for this GPU"
        text = "Install a newer driver, whose list of supported products has this GPU."
        commands = on_system(view, "update-driver")
    else:
        why = "the GPU is newer than it, or so old that a legacy branch alone supports it"
        text = (
            "Install a driver whose list of supported products has this GPU: a newer one, or for an old GPU"
            " the legacy branch."
        )
        commands = on_system(view, "update-driver")
    return Finding(
        "fail",
        f"This GPU is not supported by {named}: {why}. Nothing can use it.",
        subjects=subjects_at(view, address),
        evidence=[event_evidence(view, event)],
        remedy=Remedy(
            f"{text} Where the list of this release has it, the GPU may have been asleep when the driver"
            " looked: boot with pcie_port_pm=off.",
            [NVIDIA_DEVICES, *commands, REBOOT],
        ),
        headline=f"is not supported by {named}",
    )
