"""Memory and ECC."""

from __future__ import annotations

from world.machine import Machine

from ..changes import both, gpu, machine
from ..model import Collection
from .kernel_log import RESET, RMA

FAULTS = Collection("memory and ECC")
add = FAULTS.add


def sram(m: Machine, index: int, **values: int) -> None:
    m.gpu(index).change(sram={**m.gpu(index).sram, **values})


add(
    "12 uncorrectable DRAM errors on GPU 7",
    gpu(7, dram_uncorrected=(12, 12)),
    ("GPU-002", "GPU 7\\b", "\\b12\\b", f"{RESET}|{RMA}"),
)
add(
    "uncorrectable SRAM errors by parity",
    lambda m: sram(m, 2, vol_parity=3, agg_parity=3, sm=3),
    ("GPU-002|GPU-02[7-9]|GPU-03[0-4]", r"GPU 2\b", r"\b3\b", rf"{RESET}|{RMA}"),
)


add(
    "the SRAM's threshold of errors is exceeded",
    both(lambda m: sram(m, 1, agg_parity=40, agg_secded=9, l2=49), gpu(1, sram_exceeded=True)),
    ("GPU-00[25]|GPU-02[7-9]|GPU-03[0-4]", r"GPU 1\b", r"SRAM|threshold", RMA),
)
add(
    "a remapped row waits for a reset on GPU 3",
    gpu(3, remap=(0, 1, True, False)),
    ("GPU-003", "GPU 3\\b", "pending|remap|reset", RESET),
)
add(
    "a row could not be remapped",
    gpu(3, remap=(2, 9, False, True), histogram=(630, 8, 1, 0, 1)),
    ("GPU-003", r"GPU 3\b", r"fail|could not", RMA),
    base="a100-mig",
)
add(
    "one bank has no spare row left, and nothing failed yet",
    gpu(6, remap=(4, 4, False, False), histogram=(638, 1, 0, 0, 1)),
    ("GPU-003|GPU-02[7-9]|GPU-03[0-4]", r"GPU 6\b", r"spare|bank", rf"{RMA}|watch|next"),
)
add(
    "retired pages wait for a reboot",
    gpu(0, retired=(2, 1, True)),
    ("GPU-004", r"GPU 0\b", r"pending|retire", r"reboot|reset"),
    base="t4",
)
add(
    "no pages are left to retire",
    gpu(0, retired=(50, 14, False)),
    ("GPU-004", r"GPU 0\b", r"64|50|14", RMA),
    base="t4",
)


add(
    "ECC is off on one GPU of eight",
    gpu(5, ecc=(False, False)),
    ("GPU-02\\d|GPU-03[0-4]", r"GPU 5\b", r"ECC", r"nvidia-smi.*(-e|ecc)"),
)


add(
    "one GPU has half the memory of its peers",
    gpu(6, memory_mib=40960, bar1_mib=65536),
    ("GPU-02[1-6]", r"GPU 6\b", r"40.?960|40 GiB|half|memory", rf"{RMA}|card|nvidia-smi"),
)
add(
    "the driver asks for a reboot",
    gpu(5, recovery_action=2),
    ("GPU-006", r"GPU 5\b", r"reboot", r"reboot"),
)


WARNS = "cat /.made/smi\necho 'WARNING: infoROM is corrupted at gpu 0000:5D:00.0' >&2\nexit 14"
add(
    "the InfoROM is corrupted",
    both(gpu(3, inforom_valid=False), machine(smi_script=WARNS)),
    ("GPU-0\\d\\d|DRV-003", r"GPU 3\b", r"InfoROM", RMA),
)
