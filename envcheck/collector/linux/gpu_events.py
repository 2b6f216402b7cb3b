"""Finds the lines of a kernel log that are about a GPU, and takes them apart."""

import re

from ..addresses import pci_address
from ..facts import unavailable
from .event_kinds import KERNELS_OWN, WORDS, kind_of

LIMIT = 200  # events
ERRORS = 40  # of them that no table knows
TEXT_LIMIT = 400  # characters of an event
LINE_LIMIT = 4096  # characters of a line that are looked at

ADDRESS = r"(?:PCI:)?((?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)"
XID = re.compile(r"NVRM: (?:GPU\d{1,3} )?Xid \(" + ADDRESS + r"[^)]{0,80}\): (\d{1,6})\b")
# A switch writes each error in several lines; these say how bad it is.
SXID = re.compile(
    r"nvidia-nvswitch\d*: SXid \(" + ADDRESS + r"\): (\d{1,6}), (?:Fatal|Non-fatal|Severity [01])\b"
)
DEVICE = re.compile(r"(?:GPU|nvidia|probe of|PCI)[ :(]+(?:at )?" + ADDRESS)
# Of a line that the kernel itself writes on a device: its driver and address come first.
ON_BUS = re.compile(r"(?:[\w-]{1,40} |.{0,60}?\b(?:Request device|device) \[)" + ADDRESS)
RECORD = re.compile(r"(\d{1,9}),\d+,(\d{1,18}),[^;]*;(.*)\Z", re.S)
ESCAPE = re.compile(r"\\x([0-9a-f]{2})")
# "Nov 20 18:24:52 host kernel: [ 12.345678] text", "[ 12.345678] host kernel: text", "[ 12.345] text",
# "[Fri Nov 20 18:24:52 2026] text", "kern  :err   : [ 12.345] text" (dmesg -T, -x), "<4>[ 12.345][ T7] text"
LINE = re.compile(
    r"(?:<\d{1,4}>)?(?:\w{2,8} *:\w{2,8} *: )?"
    r"(?:\[(?: *(?P<first>\d{1,12}\.\d{1,12})| *\+\d+\.\d+|\w{3} \w{3} [ \d]\d [\d:]{8} \d{4})\] ?)?"
    r"(?:[^\[\]]{0,120}?\bkernel(?:\[\d{1,6}\])?: )?"
    r"(?:\[ *(?P<seconds>\d{1,12}\.\d{1,12})\] ?)?(?:\[ *[TC]\d+\] )?(?P<text>.*)\Z",
    re.S,
)
CONTINUED = re.compile(r"\s+NVRM:")
SEVERAL = re.compile(r"NVRM: (?:The NVIDIA GPU|API mismatch|This PCI I/O region)")
NEXT = re.compile(r"NVRM: +(?:[a-z(]|BAR\d|NVIDIA )")
TOGETHER = 10.0  # seconds; the lines of one message
BOOT = re.compile(r"Linux version \d")
BACKWARDS = (
    600.0  # seconds; where the time since boot falls by more, the machine was booted between
)


def parse_kmsg(data, events):
    """Append the events in records of /dev/kmsg (bytes) to ``events``.

    Returns the first record's time in seconds since boot, or None where there is no record.
    """
    first = None
    messages = []  # type: list
    for raw in data.split(b"\n"):
        if first is not None and not WORDS.search(raw):
            continue
        record = RECORD.match(raw.decode("utf-8", "replace"))
        if not record:
            continue  # a continuation line with a record's properties
        seconds = int(record.group(2)) / 1e6
        first = seconds if first is None else first
        text = ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), record.group(3)[:LINE_LIMIT])
        if messages and _continues(messages[-1], seconds, text):
            messages[-1][1] += " " + text
        else:
            messages.append([seconds, text, int(record.group(1)) >> 3])
    for seconds, text, facility in messages:
        event = parse_event(text, seconds)
        # Programs may write into the log too (facility above 0); of theirs only the module loader's
        # refusals count.
        if event and (facility == 0 or event["kind"] == "module-rejected"):
            events.append(event)
    return first


def parse_text(text):
    """The events in a log file's or a journal's lines, from the last boot that stands in it."""
    events, last = [], 0.0
    for seconds, message in _messages(text):
        if BOOT.match(message) or (seconds is not None and seconds + BACKWARDS < last):
            events, last = [], 0.0
        last = last if seconds is None else seconds
        if WORDS.search(message.encode("utf-8", "replace")):
            event = parse_event(message, seconds)
            if event:
                events.append(event)
    return events


def _messages(text):
    """[seconds since boot or None, message]: the driver writes some messages in several lines."""
    messages = []  # type: list
    for line in text.replace("#012", "\n ").split("\n"):
        line = line[:LINE_LIMIT]
        if messages and CONTINUED.match(line):
            seconds, continued = messages[-1][0], line.strip()
        else:
            match = LINE.match(line)
            stamp = match.group("seconds") or match.group("first")
            seconds, continued = float(stamp) if stamp else None, match.group("text")
            if not (messages and _continues(messages[-1], seconds, continued)):
                messages.append([seconds, continued])
                continue
        if len(messages[-1][1]) < LINE_LIMIT:
            messages[-1][1] += " " + continued
    return messages


def _continues(message, seconds, text):
    """Whether a line with a prefix of its own is the next one of a message in several lines."""
    apart = 0.0 if None in (message[0], seconds) else abs(seconds - message[0])
    together = apart <= TOGETHER and len(message[1]) < LINE_LIMIT
    return bool(together and NEXT.match(text) and SEVERAL.match(message[1]))


def parse_event(text, seconds=None):
    """The event that a message of the kernel log is, or None where it is about something else."""
    head, driver, rest = " ".join(text.split()).partition("NVRM: ")
    text = head + driver + rest.replace("NVRM: ", "")  # each line of a message begins so
    xid, sxid = XID.search(text), SXID.search(text)
    kind = "xid" if xid else "sxid" if sxid else kind_of(text)
    if kind is None:
        return None
    event = {"kind": kind, "text": text[:TEXT_LIMIT]}
    named = xid or sxid or (ON_BUS.match(text) if kind in KERNELS_OWN else DEVICE.search(text))
    event["pci_address"] = (
        pci_address(named.group(1))
        if named
        else unavailable("absent", "the message names no device")
    )
    event["xid"] = (
        int((xid or sxid).group(2)) if xid or sxid else unavailable("absent", "not an Xid")
    )
    event["seconds"] = (
        unavailable("absent", "the log has no such time") if seconds is None else seconds
    )
    return event


def fold(events):
    """The last LIMIT different events, oldest first; each counts how often it came."""
    folded, loads = {}, 0
    for event in events:
        loads += event["kind"] == "driver-load"
        # An Xid from before the driver was loaded anew is not the one that came after.
        key = _identity(event) + ((loads,) if event["kind"] == "xid" else ())
        count = folded.pop(key, {"count": 0})["count"]
        folded[key] = dict(event, count=count + 1)
    found = list(folded.values())
    spare = [event for event in found if event["kind"] == "driver-error"][:-ERRORS]
    return [event for event in found if event not in spare][-LIMIT:]


def _identity(event):
    """What makes two events the same: all but the numbers, and for an Xid all but kind and device."""
    address, xid = event["pci_address"], event["xid"]
    if isinstance(xid, int):
        severity = re.search(r"\b(Non-?fatal|Fatal|Severity \d)\b", event["text"], re.I)
        return event["kind"], address, xid, severity.group(1).lower() if severity else ""
    return (
        event["kind"],
        address if isinstance(address, str) else "",
        re.sub(r"0x[0-9a-fA-F]+|\d+", "#", event["text"]),
    )
