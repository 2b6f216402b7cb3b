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


class Sxid(NamedTuple):
    """What an NVSwitch's SXid means and asks for. action: "reset", "reboot", "cool", "report"."""

    meaning: str
    action: str
    remedy: str


class FabricManagerWords(NamedTuple):
    """What the fabric manager says in its log. severity: "fail", "warn" or "info"; action: "install",
    "reset", "reboot" or ""."""

    cause: str
    pattern: str
    severity: str
    message: str
    action: str
    remedy: str


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
def sxids() -> dict[int, Sxid]:
    """The SXids that ask for more than a look at the link, by code."""
    return {
        code: Sxid(row["meaning"], row["action"], row["remedy"])
        for row in table("sxids")
        for word in row["codes"].split()
        for code in _codes(word)
    }


def _codes(word: str) -> range:
    """ "18001-18010", or "11004" """
    first, _, last = word.partition("-")
    return range(int(first), int(last or first) + 1)


@cache
def fabric_manager_words() -> tuple[FabricManagerWords, ...]:
    return tuple(
        FabricManagerWords(*(row[field] for field in FabricManagerWords._fields))
        for row in table("fabric_manager")
    )


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
