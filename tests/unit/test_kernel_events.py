"""Lines of kernel logs, in every form in which a machine keeps them."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from envcheck.collector.facts import is_unavailable
from envcheck.collector.linux.gpu_events import fold, parse_event, parse_kmsg, parse_text
from envcheck.facts.kernel import KernelEvent

KINDS = get_args(get_type_hints(KernelEvent)["kind"])
ANYTHING = settings(max_examples=30, deadline=None)
XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


def short(event: dict[str, Any] | None) -> tuple[Any, ...] | None:
    if event is None:
        return None
    values = (event["kind"], event["xid"], event["pci_address"])
    return tuple(None if is_unavailable(value) else value for value in values)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (XID, ("xid", 79, "0000:3b:00.0")),
        ("NVRM: Xid (PCI:0000:0B:00 GPU-I:05): 13, pid=1, Graphics Exception",
         ("xid", 13, "0000:0b:00.0")),
        ("nvidia-nvswitch3: SXid (PCI:0000:04:00.0): 22013, Non-fatal, Link 44 Minion",
         ("sxid", 22013, "0000:04:00.0")),
        ("nvidia-nvswitch3: SXid (PCI:0000:04:00.0): 22013, Severity 0 Engine instance 44",
         ("sxid", 22013, "0000:04:00.0")),
        ("nvidia-nvswitch3: SXid (PCI:0000:04:00.0): 22013, Data {0x00140004}", None),
        ("NVRM: GPU 0000:29:00.0: GPU has fallen off the bus.", ("fallen-off-bus", None, "0000:29:00.0")),
        ("NVRM: GPU at PCI:0000:03:00: GPU-b850f46d-d5ea-c752-ddf3-c4453e44d3f7", None),
        (
            "NVRM: The NVIDIA GPU 0000:18:00.0\nNVRM: (PCI ID: 10de:2901) installed in this system has"
            "\nNVRM: fallen off the bus and is not responding to commands.",
            ("fallen-off-bus", None, "0000:18:00.0"),
        ),
        ("Loading of module with unavailable key is rejected", ("module-rejected", None, None)),
        ("Lockdown: modprobe: Loading of unsigned module is restricted; see man kernel_lockdown.7",
         ("module-rejected", None, None)),
        ("systemd-modules-load[1]: Failed to insert module 'nvidia': Key was rejected by service",
         ("module-rejected", None, None)),
        ("nvidia: module verification failed: signature and/or required key missing - tainting",
         ("module-error", None, None)),
        ("nvidia_uvm: Unknown symbol foo (err -2)", ("module-error", None, None)),
        ("vboxdrv: Unknown symbol foo (err -2)", None),
        (
            "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:\n"
            "NVRM: BAR1 is 0M @ 0x0 (PCI:0000:14:00.0)",
            ("nvrm", None, "0000:14:00.0"),
        ),
        ("nvidia 0000:01:00.0: probe with driver nvidia failed with error -1",
         ("nvrm", None, "0000:01:00.0")),
        ("NVRM: API mismatch: the client has the version 535.161.07, but\nNVRM: this kernel module",
         ("nvrm", None, None)),
        (
            "NVRM: The NVIDIA GPU 0000:02:00.0 (PCI ID: 10de:2c58)\n"
            "NVRM: installed in this system requires use of the NVIDIA open kernel modules.",
            ("nvrm", None, "0000:02:00.0"),
        ),
        ("NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19",
         ("driver-load", None, None)),
        ("EXT4-fs (sda1): mounted filesystem", None),
    ],
)  # fmt: skip
def test_messages(text: str, expected: tuple[Any, ...] | None) -> None:
    assert short(parse_event(text)) == expected


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        (f"Nov 20 18:24:52 host kernel: [ 12.345678] {XID}", 12.345678),
        (f"2026-11-20T18:24:52.123456+00:00 host kernel: {XID}", None),
        (f"[   12.345678] host kernel: {XID}", 12.345678),
        (f"[   12.345678] {XID}", 12.345678),
        (XID, None),
        (f"[Sun Jan 11 09:52:01 2026] {XID}", None),
        (f"kern  :err   : [   12.345678] {XID}", 12.345678),
        (f"<4>[   12.345678][ T1234] {XID}", 12.345678),
    ],
)
def test_the_forms_of_a_line(line: str, seconds: float | None) -> None:
    (event,) = parse_text(line + "\n")
    assert short(event) == ("xid", 79, "0000:3b:00.0")
    assert event["text"] == XID
    assert (None if is_unavailable(event["seconds"]) else event["seconds"]) == seconds


def test_only_the_last_boot_of_a_file_counts() -> None:
    old = "Nov 19 host kernel: [ 99.0] NVRM: Xid (PCI:0000:3b:00): 48, pid=7\n"
    boot = "Nov 20 host kernel: [  0.0] Linux version 6.8.0\n"
    new = "Nov 20 host kernel: [ 12.0] NVRM: Xid (PCI:0000:3b:00): 31, pid=7\n"
    assert [event["xid"] for event in parse_text(old + boot + new)] == [31]
    assert [event["xid"] for event in parse_text(old + new)] == [48, 31]


def kmsg(data: bytes) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    parse_kmsg(data, events)
    return events


def test_records_of_the_ring_buffer() -> None:
    data = (
        b"6,1,100,-;Linux version 6.8.0\n SUBSYSTEM=pci\n DEVICE=+pci:0000:3b:00.0\n"
        b"4,2,12345678,-,caller=T7;NVRM: The NVIDIA GPU 0000:18:00.0\\x0aNVRM: fallen off the bus\n"
    )
    (event,) = kmsg(data)
    assert short(event) == ("fallen-off-bus", None, "0000:18:00.0")
    assert event["seconds"] == 12.345678
    assert parse_kmsg(data, []) == 0.0001


def test_a_message_in_several_records_is_one() -> None:
    words = (
        "The NVIDIA GPU 0000:02:00.0 (PCI ID: 10de:2b85)",
        "installed in this system is not supported by the",
        "NVIDIA 550.144.03 driver release.",
        "Please see 'Appendix A - Supported NVIDIA GPU Products'",
    )
    lines = [f"4,{n},{n}000000,-;NVRM: {line}\n" for n, line in enumerate(words, 5)]
    (event,) = kmsg("".join(lines).encode())
    assert short(event) == ("nvrm", None, "0000:02:00.0")
    assert "not supported by the NVIDIA 550.144.03 driver" in event["text"]


def test_repeated_events_are_counted() -> None:
    lines = [
        "[ 1.0] NVRM: Xid (PCI:0000:3b:00): 31, pid=1",
        "[ 2.0] NVRM: Xid (PCI:0000:3b:00): 48, pid=1",
        "[ 3.0] NVRM: Xid (PCI:0000:3b:00): 31, pid=2",
        "[ 4.0] NVRM: Xid (PCI:0000:af:00): 31, pid=3",
        "[ 5.0] NVRM: Xid (PCI:0000:af:00): 145, RLW_RXPIPE Nonfatal XC0",
        "[ 6.0] NVRM: Xid (PCI:0000:af:00): 145, RLW_RXPIPE Fatal XC0",
        "[ 7.0] NVRM: GPU 0000:98:00.0: RmInitAdapter failed! (0x62:0x65:1792)",
        "[ 8.0] NVRM: GPU 0000:98:00.0: RmInitAdapter failed! (0x62:0xffff:1)",
    ]
    folded = fold(parse_text("\n".join(lines)))
    assert [(event["xid"], event["count"], event["seconds"]) for event in folded[:-1]] == [
        (48, 1, 2.0),
        (31, 2, 3.0),
        (31, 1, 4.0),
        (145, 1, 5.0),
        (145, 1, 6.0),
    ]
    assert (folded[-1]["count"], folded[-1]["seconds"]) == (2, 8.0)


@ANYTHING
@given(st.text())
@example("NVRM: Xid (PCI:0000:3b:00): 99999999999999999999, x")
@example("[ 1.0] kernel: [ 2.0] kernel: NVRM: Xid (00:00): 1")
@example("NVRM: Xid (PCI:FFFFFFFF:FF:FF.7): 1")
def test_any_text_gives_events_of_known_kinds(text: str) -> None:
    words = ("", "NVRM: Xid (PCI:0000:3b:00): ", "nvidia: probe of ", "[ 1.5] host kernel: NVRM: ")
    for word in words:
        for event in fold(parse_text(word + text)):
            assert event["kind"] in KINDS
            assert event["count"] >= 1
