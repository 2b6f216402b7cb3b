"""The tables that judge the kernel side of the driver: Xids, and which module flavour a GPU needs."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from . import table


class Xid(NamedTuple):
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


class Flavour(NamedTuple):
    """Which flavour of the kernel module drives the GPUs in a range of PCI device ids."""

    first: int
    last: int
    flavour: str  # "open", "proprietary", "either"
    gpus: str


@cache
def xids() -> dict[int, Xid]:
    """Every known Xid by its code; a code that is not in it is not known."""
    return {
        int(row["code"]): Xid(
            int(row["code"]),
            row["meaning"],
            row["severity"],
            row["nonfatal_severity"],
            tuple(row["settled_by"].split()),
            tuple(row["shown_by"].split()),
            row["action"],
            row["remedy"],
            row["source"],
        )
        for row in table("xids")
    }


@cache
def flavours() -> tuple[Flavour, ...]:
    return tuple(
        Flavour(
            int(row["first_device_id"], 16),
            int(row["last_device_id"], 16),
            row["flavour"],
            row["gpus"],
        )
        for row in table("kernel_flavours")
    )


def flavour_for(device_id: str) -> Flavour | None:
    """The module flavour for a device "10de:2330"; None for what is no NVIDIA device id."""
    vendor, _, device = device_id.partition(":")
    try:
        number = int(device, 16)
    except ValueError:
        return None
    if vendor != "10de":
        return None
    return next((row for row in flavours() if row.first <= number <= row.last), None)
