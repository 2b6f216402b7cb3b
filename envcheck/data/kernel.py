"""The tables that judge the kernel side of the driver: Xids, and which module flavour a GPU needs."""

from __future__ import annotations

import re
from functools import cache

import msgspec

from . import rows

_OF_APPLICATIONS = ("CHECK_APP/CUDA", "WORKFLOW_XID_13", "WORKFLOW_XID_31")


class Xid(msgspec.Struct, frozen=True):
    """What an Xid means and asks for. ``severity`` is "fail", "warn" or "info".

    nonfatal_severity: where the message itself says that the error was not fatal; "" where it never
    does. settled_by: facts of a GPU that, being false, say that nothing is left to do. shown_by: facts
    of a GPU that, being true or above zero, say the same, so that the GPU's own checks tell of it.
    story: Xids of one story on one GPU are one problem. repeats: how often it has to come, on one of
    several GPUs alone, to say something of that GPU; 0 where it never does.
    action: "reset", "reboot", "off", "report" or "". immediate, investigate: the catalog's own words for
    what to do, now and if it comes back; "" where it names nothing.
    """

    code: int
    meaning: str
    severity: str
    nonfatal_severity: str
    settled_by: tuple[str, ...]
    shown_by: tuple[str, ...]
    story: str
    action: str
    immediate: str
    investigate: str
    remedy: str
    source: str
    repeats: int = 0

    @property
    def of_application(self) -> bool:
        """Whether an application's own fault is what the catalog looks for first."""
        return self.severity != "info" and self.investigate in _OF_APPLICATIONS


class NvlinkXid(msgspec.Struct, frozen=True):
    """What an Xid of the 5th generation of NVLink asks for, by the unit, event and status in its message."""

    code: int
    units: tuple[str, ...]
    events: tuple[str, ...]  # decimal; any where empty
    statuses: tuple[str, ...]  # hexadecimal; any where empty
    immediate: str
    investigate: str


# "149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x026001c6 0x00000000 …": unit, information, status
_NVLINK = re.compile(r"\): (1\d\d), (\w{1,40}) .{0,60}?\((0x[0-9a-f]{1,8}) (0x[0-9a-f]{1,8})\b")


class _Action(msgspec.Struct, frozen=True):
    bucket: str
    text: str


class Flavour(msgspec.Struct, frozen=True):
    """What drives the GPUs in a range of PCI device ids: a flavour of the module, branches of the driver."""

    first_device_id: str  # four hexadecimal digits
    last_device_id: str
    flavour: str  # "open", "proprietary", "either"
    gpus: str
    first_branch: int | None = None
    last_branch: int | None = None

    def lacks(self, branch: str) -> str:
        """Why a driver of this branch does not drive these GPUs: "too old", "too new", "" if it does."""
        if not branch:
            return ""
        if self.first_branch is not None and int(branch) < self.first_branch:
            return "too old"
        return "too new" if self.last_branch is not None and int(branch) > self.last_branch else ""


@cache
def xids() -> dict[int, Xid]:
    """Every known Xid by its code; a code that is not in it is not known."""
    return {row.code: row for row in rows("xids", Xid)}


def nvlink_xid(message: str) -> NvlinkXid | None:
    """The catalog's row for a message of Xid 144 to 150; None where it has none."""
    found = _NVLINK.search(message)
    if found is None:
        return None
    code, unit, information, status = found.groups()
    event, bits = str(int(information, 16) >> 20 & 0x3F), hex(int(status, 16))
    for row in rows("nvlink_xids", NvlinkXid):
        fits = row.code == int(code) and unit in row.units
        if fits and event in (row.events or [event]) and bits in (row.statuses or [bits]):
            return row
    return None


def steps(*buckets: str) -> str:
    """What the catalog's words for actions ask for, in sentences."""
    texts = {row.bucket: row.text for row in rows("xid_actions", _Action)}
    return " ".join(filter(None, (texts.get(bucket, "") for bucket in buckets)))


def flavour_for(device_id: str) -> Flavour | None:
    """The module flavour for a device "10de:2330"; None for what is no NVIDIA device id."""
    vendor, _, device = device_id.lower().partition(":")
    if vendor != "10de" or not re.fullmatch("[0-9a-f]{1,4}", device):
        return None
    every = rows("kernel_flavours", Flavour)
    device = device.zfill(4)
    return next((row for row in every if row.first_device_id <= device <= row.last_device_id), None)
