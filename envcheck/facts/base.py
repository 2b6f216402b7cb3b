"""What every fact is made of: a value, or the reason why there is none."""

from __future__ import annotations

from typing import Annotated, Generic, Literal, TypeVar, Union

import msgspec

T = TypeVar("T")

Reason = Literal[
    "not-collected",  # nobody asked: this kind of document cannot know it
    "absent",  # asked, and the thing is not there
    "not-supported",  # the device, driver or kernel does not have this fact
    "no-permission",  # there, but not for this user
    "error",  # asked, and the answer was an error
    "lost",  # asked, and the device did not answer any more
    "timeout",  # asked, and no answer came within the deadline
]


class Facts(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    gc=False,
):
    """Base of every record in a Snapshot: immutable, strict about types, and lenient about fields that a
    newer collector adds.

    What is read from JSON refers to nothing above it, so the garbage collector need not look at it.
    """


class Unavailable(Facts, frozen=True, kw_only=True):
    """A fact that could not be had: why, and what was seen instead (the evidence)."""

    unavailable: Reason
    detail: str = ""
    code: int | None = None  # nvmlReturn_t, of an error of NVML's


Maybe = Union[T, Unavailable]

# "0000:01:00.0". Addresses stand in commands to paste: in a Snapshot that a stranger sent, too, they
# hold nothing that a shell would act upon.
Address = Annotated[str, msgspec.Meta(pattern="^[0-9A-Fa-f:.]{4,32}$")]

NOT_COLLECTED = Unavailable(unavailable="not-collected")


class ProgramSetting(Facts, frozen=True, kw_only=True):
    """A setting of a program; of several places the one that counts."""

    name: str
    value: str
    source: str  # "environment", or the file
    missing: bool = False  # it names a file that is not there
    digest: str = ""  # of the file that it names


def known(value: T | Unavailable) -> T | None:
    """The value, or None where there is none, whatever the reason."""
    return None if isinstance(value, Unavailable) else value


def is_absent(value: object) -> bool:
    """Whether somebody looked, and the thing is not there."""
    return isinstance(value, Unavailable) and value.unavailable == "absent"


class StuckProcess(Facts, frozen=True, kw_only=True):
    """A process that a probe started, that cannot be killed, and that had to be left behind."""

    pid: int
    command: str
    state: str = ""


class Probe(Facts, Generic[T], frozen=True, kw_only=True):
    """One probe's outcome. ``facts`` is null unless the outcome is "ok".

    ``sources`` maps a field of ``facts`` to where its value came from (a file, a command, a library
    call); the key "*" stands for every field without an entry of its own.
    """

    outcome: Literal["ok", "timeout", "crashed", "refused"]
    seconds: float = 0.0
    reason: str = ""
    evidence: str = ""
    stuck: list[StuckProcess] = []
    sources: dict[str, str] = {}
    facts: T | None = None
