"""What only the kernel's log tells."""

from __future__ import annotations

import re

from world.machine import Machine

from ..model import Collection

FAULTS = Collection("kernel log")
add = FAULTS.add


def xid(m: Machine, index: int, number: int, text: str, times: int = 1) -> None:
    address = m.gpu(index).address.rpartition(".")[0]
    for _ in range(times):
        m.say(f"NVRM: Xid (PCI:{address}): {number}, {text}")


def _xid(index: int, number: int, text: str, times: int = 1):  # type: ignore[no-untyped-def]
    return lambda m: xid(m, index, number, text, times)


def at(base: str, index: int) -> str:
    from world.bases import BASES

    return rf"GPU {index}\b|{re.escape(BASES[base]().gpu(index).address)}"


RESET, RMA = r"reset|reboot", r"RMA|vendor|replace|fieldiag|dcgmi diag"
# name, base, GPU, number, what the driver says, cause, remedy
XIDS = (
    (
        "48: an uncorrectable memory error",
        "h100",
        3,
        48,
        "pid='<unknown>', name=<unknown>, Double Bit ECC Error",
        r"Xid 48",
        RESET,
    ),
    (
        "64: a row could not be remapped",
        "h100",
        4,
        64,
        "Row remapper: failed to record",
        r"Xid 64",
        RMA,
    ),
    (
        "74: an NVLink failed",
        "h100",
        2,
        74,
        "pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 5"
        "(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",
        r"Xid 74",
        rf"NVLink|{RESET}|{RMA}",
    ),
    (
        "95: an uncontained memory error",
        "h100",
        7,
        95,
        "pid='<unknown>', name=<unknown>, Uncontained: FBHUB. RST: Yes",
        r"Xid 95",
        RESET,
    ),
    (
        "119: the GSP does not answer",
        "h100",
        5,
        119,
        "pid=2111, name=nvidia-smi, Timeout after 6s of waiting for RPC "
        "response from GPU5 GSP! Expected function 76 (GSP_RM_CONTROL) (0x20802a02 0x8).",
        r"Xid 119",
        RESET,
    ),
    (
        "one that nobody knows",
        "h100",
        4,
        987,
        "something new",
        r"Xid 987",
        r"dmesg|nvidia-bug-report|nvidia\.com|catalog",
    ),
)


def _row_pending(m: Machine) -> None:
    xid(
        m,
        1,
        63,
        "pid=1234, name=python3, Row Remapper: New row (0x0000000012ab34cd) marked for remapping, reset gpu to "
        "activate.",
    )
    m.gpu(1).change(remap=(0, 1, True, False))


add(
    "Xid 63: a row will be remapped",
    "h100",
    _row_pending,
    ("KRN-008|GPU-003", at("h100", 1), r"Xid 63|remap", RESET),
    also="KRN-008|GPU-003",
)
for name, base, index, number, text, cause, remedy in XIDS:
    add(
        f"Xid {name}",
        base,
        _xid(index, number, text),
        ("KRN-0(08|1[456])", at(base, index), cause, remedy),
    )


def _recovery(m: Machine, index: int, action: int, words: str) -> None:
    xid(m, index, 154, f"GPU recovery action changed from 0x0 (None) to 0x{action} ({words})")
    m.gpu(index).change(recovery_action=action)


add(
    "Xid 154: the driver asks for a reset",
    "h100",
    lambda m: _recovery(m, 6, 1, "GPU Reset Required"),
    ("KRN-0(08|1[3-6])|GPU-006", at("h100", 6), "reset", "gpu-reset|reset"),
    also="GPU-006|KRN-008",
)


def _two(m: Machine) -> None:
    xid(m, 1, 95, "pid='<unknown>', name=<unknown>, Uncontained: FBHUB. RST: Yes")
    xid(
        m,
        6,
        119,
        "pid=2111, name=nvidia-smi, Timeout after 6s of waiting for RPC response from GPU6 GSP!",
    )


add(
    "two GPUs with an Xid each",
    "h100",
    _two,
    ("KRN-008", r"GPU 1\b|0000:2a", r"Xid 95", RESET),
    ("KRN-008", r"GPU 6\b|0000:ba", r"Xid 119", RESET),
)


def _sxid(m: Machine) -> None:
    m.say(
        "nvidia-nvswitch2: SXid (PCI:0000:07:00.0): 20034, Fatal, Link 37 LTSSM Fault Up",
        "nvidia-nvswitch2: SXid (PCI:0000:07:00.0): 20034, Severity 1 Engine instance 37 Sub-engine instance 00",
    )


add(
    "a fatal SXid of an NVSwitch",
    "h100",
    _sxid,
    ("KRN-0(08|1[456])", r"0000:07:00\.0", r"SXid 20034", rf"{RESET}|{RMA}|fabric"),
)
add(
    "the driver wants a reset, without an Xid",
    "h100",
    lambda m: m.say(
        "NVRM: GPU3 kgspHealthCheck_TU102: ********************************* GSP Failure",
        "NVRM: GPU at PCI:0000:5d:00: _issueRpcAndWait: rpcSendMessage failed with status 0x00000062 for fn 78!",
        "NVRM: nvCheckOkFailedNoLog: Check failed: GPU requires reset [NV_ERR_RESET_REQUIRED] (0x00000062) "
        "returned from osInitNvMapping @ osinit.c:1234",
        "NVRM: GPU 0000:5d:00.0: The GPU likely needs to be reset.",
    ),
    ("KRN-0(08|1[3-6])|DRV-011", r"GPU 3\b|0000:5d:00|^; ", r"reset", RESET),
)


def _in_file(m: Machine, path: str, line: str) -> None:
    m.write("/dev/kmsg", None)
    text = "".join(
        f"Nov 21 09:2{n}:11 gpu-07 kernel: [{n + 10:5}.000000] {text}\n"
        for n, text in enumerate(("Linux version 5.15.0-130-generic", "usb 1-1: new device", line))
    )
    m.write(path, text)


add(
    "Xid 79 in /var/log/kern.log, where /dev/kmsg is closed",
    "h100",
    lambda m: _in_file(
        m,
        "/var/log/kern.log",
        "NVRM: Xid (PCI:0000:9a:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    ),
    ("KRN-008|PCI-004", "GPU 4\\b|0000:9a:00", "Xid 79|fallen off", "reboot|power"),
)


def _journal(m: Machine) -> None:
    m.write("/dev/kmsg", None)
    m.write("/var/log/journal/0123456789abcdef/system.journal", b"LPKSHHRH")
    m.write(
        "/usr/bin/journalctl",
        "#!/bin/sh\ncat <<'EOF'\n[    1.000000] gpu-07 kernel: Linux version 6.1.0\n"
        "[   99.000000] gpu-07 kernel: NVRM: Xid (PCI:0000:00:04): 48, pid='<unknown>', name=<unknown>, Double Bit ECC "
        "Error\nEOF\n",
    )


add(
    "Xid 48 in the journal alone",
    "t4",
    _journal,
    ("KRN-008", r"GPU 0\b|0000:00:04", r"Xid 48", RESET),
)
