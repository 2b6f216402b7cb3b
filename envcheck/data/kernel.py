"""The tables that judge the kernel side of the driver: Xids, and which module flavour a GPU needs."""

from __future__ import annotations

import re
from functools import cache

import msgspec

from . import rows


class Xid(msgspec.Struct, frozen=True):
    """What an Xid means and asks for. ``severity`` is "fail", "warn" or "info".

    nonfatal_severity: where the message itself says that the error was not fatal; "" where it never
    does. settled_by: facts of a GPU that, being false, say that nothing is left to do. shown_by: facts
    of a GPU that, being true or above zero, say the same, so that the GPU's own checks tell of it.
    action: "reset", "reboot", "off", "report" or "".
    """

    code: int
    meaning: str
    severity: str
    nonfatal_severity: str
    settled_by: tuple[str, ...]
    shown_by: tuple[str, ...]
    action: str
    remedy: str
    source: str


class Flavour(msgspec.Struct, frozen=True):
    """Which flavour of the kernel module drives the GPUs in a range of PCI device ids."""

    first_device_id: str  # four hexadecimal digits
    last_device_id: str
    flavour: str  # "open", "proprietary", "either"
    gpus: str


@cache
def xids() -> dict[int, Xid]:
    """Every known Xid by its code; a code that is not in it is not known."""
    return {row.code: row for row in rows("xids", Xid)}


def flavour_for(device_id: str) -> Flavour | None:
    """The module flavour for a device "10de:2330"; None for what is no NVIDIA device id."""
    vendor, _, device = device_id.lower().partition(":")
    if vendor != "10de" or not re.fullmatch("[0-9a-f]{1,4}", device):
        return None
    every = rows("kernel_flavours", Flavour)
    device = device.zfill(4)
    return next((row for row in every if row.first_device_id <= device <= row.last_device_id), None)
