"""Finds the lines of a kernel log that are about a GPU, and takes them apart."""

import re

from ..addresses import pci_address
from ..facts import unavailable

LIMIT = 200  # events
TEXT_LIMIT = 400  # characters of an event
LINE_LIMIT = 4096  # characters of a line that are looked at

ADDRESS = r"(?:PCI:)?((?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)"
XID = re.compile(r"NVRM: Xid \(" + ADDRESS + r"[^)]{0,80}\): (\d{1,6})\b")
# A switch tells each error in several lines; only this one says how bad it is.
SXID = re.compile(
    r"nvidia-nvswitch\d*: SXid \(" + ADDRESS + r"\): (\d{1,6}), (?:Fatal|Non-fatal)\b"
)
DEVICE = re.compile(r"(?:GPU|nvidia|probe of|PCI)[ :(]+(?:at )?" + ADDRESS)
# Of each kind: a word, and what comes somewhere behind it. In one pattern, "NVRM:.*failed" would look through
# the rest of the line at each "NVRM:".
KINDS = (
    ("fallen-off-bus", "NVRM:", re.compile(r"fallen off the bus")),
    (
        "module-rejected",
        "nvidia",
        re.compile(r"Key was rejected by service|Required key not available"),
    ),
    (
        "module-rejected",
        "Loading of ",
        re.compile(r"(?:unsigned module|module with un\w{1,20} (?:key|hash|crypto)) is rejected"),
    ),
    ("module-rejected", "Lockdown: ", re.compile(r"unsigned module loading is restricted")),
    (
        "module-error",
        "",
        re.compile(
            r"^nvidia[\w-]*: (?:version magic|Unknown symbol|disagrees about version of symbol"
            r"|exports duplicate symbol|module verification failed|Invalid module|unknown relocation)"
        ),
    ),
    (
        "nvrm",
        "NVRM:",
        re.compile(
            r"RmInitAdapter failed|API mismatch|PCI I/O region assigned to your NVIDIA device"
            r"|requires use of the NVIDIA open kernel modules|not supported by open nvidia\.ko"
            r"|not supported by the NVIDIA|Legacy drivers|No NVIDIA (?:GPU|devices|graphics adapter)"
            r"|probe routine (?:failed|was not called)"
        ),
    ),
    (
        "nvrm",
        "",
        re.compile(r"^nvidia(?: [0-9a-f:.]+)?: probe (?:of \S+ failed|with driver nvidia failed)"),
    ),
)
# Most lines of a log have none of these words: they are not looked at any further.
WORDS = re.compile(rb"NVRM|nvidia|is rejected|unsigned module")
RECORD = re.compile(r"(\d+),\d+,(\d+),[^;]*;(.*)\Z", re.S)
ESCAPE = re.compile(r"\\x([0-9a-f]{2})")
# "Nov 20 18:24:52 host kernel: [ 12.345678] text", "[ 12.345678] host kernel: text", "[ 12.345] text"
LINE = re.compile(
    r"(?:\[ *(?P<first>\d+\.\d+)\] )?(?:[^\[\]]{0,120}?\bkernel: )?"
    r"(?:\[ *(?P<seconds>\d+\.\d+)\] )?(?P<text>.*)\Z",
    re.S,
)
CONTINUED = re.compile(r"\s+NVRM:")
BOOT = re.compile(r"Linux version \d")


def parse_kmsg(data, events):
    """Append the events in records of /dev/kmsg (bytes) to ``events``.

    Returns the first record's time in seconds since boot, or None where there is no record.
    """
    first = None
    for raw in data.split(b"\n"):
        if first is not None and not WORDS.search(raw):
            continue
        record = RECORD.match(raw.decode("utf-8", "replace"))
        if not record:
            continue  # a continuation line with a record's properties
        seconds = int(record.group(2)) / 1e6
        first = seconds if first is None else first
        text = ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), record.group(3)[:LINE_LIMIT])
        event = parse_event(text, seconds)
        # Programs may write into the log too (facility above 0); of theirs only the module loader's
        # refusals count.
        if event and (int(record.group(1)) >> 3 == 0 or event["kind"] == "module-rejected"):
            events.append(event)
    return first


def parse_text(text):
    """The events in a log file's or a journal's lines, from the last boot that stands in it."""
    events = []
    for line in _logical_lines(text):
        match = LINE.match(line)
        if BOOT.match(match.group("text")):
            events = []
        elif WORDS.search(line.encode("utf-8", "replace")):
            seconds = match.group("seconds") or match.group("first")
            event = parse_event(match.group("text"), float(seconds) if seconds else None)
            if event:
                events.append(event)
    return events


def _logical_lines(text):
    """Lines, each with those that continue it: the driver writes some messages in several."""
    lines = []
    for line in text.replace("#012", "\n ").split("\n"):
        if lines and CONTINUED.match(line) and len(lines[-1]) < LINE_LIMIT:
            lines[-1] += " " + line[:LINE_LIMIT].strip()
        else:
            lines.append(line[:LINE_LIMIT])
    return lines


def parse_event(text, seconds=None):
    """The event that a message of the kernel log is, or None where it is about something else."""
    xid, sxid = XID.search(text), SXID.search(text)
    kind = (
        "xid"
        if xid
        else "sxid"
        if sxid
        else next((kind for kind, word, words in KINDS if words.search(_after(word, text))), None)
    )
    if kind is None:
        return None
    event = {"kind": kind, "text": " ".join(text.split())[:TEXT_LIMIT]}
    named = xid or sxid or DEVICE.search(text)
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


def _after(word, text):
    """What comes after the word; "" where it does not come."""
    return text.partition(word)[2] if word else text


def fold(events):
    """The last LIMIT different events, oldest first; each counts how often it came."""
    folded = {}
    for event in events:
        key = _identity(event)
        count = folded.pop(key, {"count": 0})["count"]
        folded[key] = dict(event, count=count + 1)
    return list(folded.values())[-LIMIT:]


def _identity(event):
    """What makes two events the same: all but the numbers, and for an Xid all but kind and device."""
    address, xid = event["pci_address"], event["xid"]
    if isinstance(xid, int):
        severity = re.search(r"\b(Non-?fatal|Fatal)\b", event["text"], re.I)
        return event["kind"], address, xid, severity.group(1).lower() if severity else ""
    return (
        event["kind"],
        address if isinstance(address, str) else "",
        re.sub(r"0x[0-9a-fA-F]+|\d+", "#", event["text"]),
    )
