"""What only the kernel's log tells."""

from __future__ import annotations

import re

from world.bases import BASES
from world.machine import Machine

from ..changes import both, files, gpu
from ..model import Collection

FAULTS = Collection("kernel log")
add = FAULTS.add


def xid(m: Machine, index: int, number: int, text: str) -> None:
    address = m.gpu(index).address.rpartition(".")[0]
    m.say(f"NVRM: Xid (PCI:{address}): {number}, {text}")


def at(index: int) -> str:
    return rf"GPU {index}\b|{re.escape(BASES['h100']().gpu(index).address)}"


RESET, RMA = r"reset|reboot", r"RMA|vendor|replace|fieldiag|dcgmi diag"
UNKNOWN = "pid='<unknown>', name=<unknown>,"
NVLINK = "NVLink: fatal error detected on link 5(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)"
UNCONTAINED = f"{UNKNOWN} Uncontained: FBHUB. RST: Yes"
GSP = "pid=2111, name=nvidia-smi, Timeout after 6s of waiting for RPC response from GPU{} GSP!"
FUNCTION = "Expected function 76 (GSP_RM_CONTROL) (0x20802a02 0x8)."
CATALOG = r"dmesg|nvidia-bug-report|nvidia\.com|catalog"
# name, GPU, number, what the driver says, remedy
XIDS = (
    ("48: an uncorrectable memory error", 3, 48, f"{UNKNOWN} Double Bit ECC Error", RESET),
    ("64: a row could not be remapped", 4, 64, "Row remapper: failed to record", RMA),
    ("74: an NVLink failed", 2, 74, f"{UNKNOWN} {NVLINK}", rf"NVLink|{RESET}|{RMA}"),
    ("95: an uncontained memory error", 7, 95, UNCONTAINED, RESET),
    ("119: the GSP does not answer", 5, 119, f"{GSP.format(5)} {FUNCTION}", RESET),
    ("one that nobody knows", 4, 987, "something new", CATALOG),
)

for name, index, number, text, remedy in XIDS:
    add(
        f"Xid {name}",
        lambda m, facts=(index, number, text): xid(m, *facts),
        ("KRN-0(08|1[456])", at(index), f"Xid {number}", remedy),
    )


CHANGED = "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
add(
    "Xid 154: the driver asks for a reset",
    both(lambda m: xid(m, 6, 154, CHANGED), gpu(6, recovery_action=1)),
    ("KRN-0(08|1[3-6])|GPU-006", at(6), "reset", "gpu-reset|reset"),
    also="GPU-006|KRN-008",
)


add(
    "two GPUs with an Xid each",
    both(lambda m: xid(m, 1, 95, UNCONTAINED), lambda m: xid(m, 6, 119, GSP.format(6))),
    ("KRN-008", r"GPU 1\b|0000:2a", r"Xid 95", RESET),
    ("KRN-008", r"GPU 6\b|0000:ba", r"Xid 119", RESET),
)


add(
    "a fatal SXid of an NVSwitch",
    lambda m: m.say(
        "nvidia-nvswitch2: SXid (PCI:0000:07:00.0): 20034, Fatal, Link 37 LTSSM Fault Up",
        "nvidia-nvswitch2: SXid (PCI:0000:07:00.0): 20034, Severity 1 Engine instance 37 Sub-engine instance 00",
    ),
    ("KRN-0(08|1[456])", r"0000:07:00\.0", r"SXid 20034", rf"{RESET}|{RMA}|fabric"),
)
add(
    "the driver wants a reset, without an Xid",
    lambda m: m.say(
        "NVRM: GPU3 kgspHealthCheck_TU102: ********************************* GSP Failure",
        "NVRM: GPU at PCI:0000:5d:00: _issueRpcAndWait: rpcSendMessage failed with status 0x00000062 for fn 78!",
        "NVRM: nvCheckOkFailedNoLog: Check failed: GPU requires reset [NV_ERR_RESET_REQUIRED] (0x00000062) "
        "returned from osInitNvMapping @ osinit.c:1234",
        "NVRM: GPU 0000:5d:00.0: The GPU likely needs to be reset.",
    ),
    ("KRN-0(08|1[3-6])|DRV-011", r"GPU 3\b|0000:5d:00|^; ", r"reset", RESET),
)


FELL = (
    "Nov 21 09:20:11 gpu-07 kernel: [   10.000000] Linux version 5.15.0-130-generic\n"
    "Nov 21 09:21:11 gpu-07 kernel: [   11.000000] usb 1-1: new device\n"
    "Nov 21 09:22:11 gpu-07 kernel: [   12.000000] NVRM: Xid (PCI:0000:9a:00): 79, pid='<unknown>', name=<unknown>, "
    "GPU has fallen off the bus.\n"
)
add(
    "Xid 79 in /var/log/kern.log, where /dev/kmsg is closed",
    files({"/dev/kmsg": None, "/var/log/kern.log": FELL}),
    ("KRN-008|PCI-004", "GPU 4\\b|0000:9a:00", "Xid 79|fallen off", "reboot|power"),
)


add(
    "Xid 48 in the journal alone",
    files(
        {
            "/dev/kmsg": None,
            "/var/log/journal/0123456789abcdef/system.journal": b"LPKSHHRH",
            "/usr/bin/journalctl": "#!/bin/sh\ncat <<'EOF'\n[    1.000000] gpu-07 kernel: Linux version 6.1.0\n"
            "[   99.000000] gpu-07 kernel: NVRM: Xid (PCI:0000:00:04): 48, pid='<unknown>', name=<unknown>, Double Bit ECC "
            "Error\nEOF\n",
        }
    ),
    ("KRN-008", r"GPU 0\b|0000:00:04", r"Xid 48", RESET),
    base="t4",
)
