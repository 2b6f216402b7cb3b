"""Lists of ModeVerdict made by hand, for tests of the reports: no GPU, no facts, no judge."""

from __future__ import annotations

from typing import Any

import msgspec
from reported import eight_gpus

from envcheck.facts.gpu import Gpu
from envcheck.findings.model import CheckResult, Diagnosis, Remedy
from envcheck.findings.subjects import Subject, gpu_subject
from envcheck.reports.model import Report, build
from envcheck.tensorcores.mode_verdict import Line, ModeVerdict

NAME = "NVIDIA H100 80GB HBM3"


def gpu(index: int = 0, name: str = NAME) -> Subject:
    return gpu_subject(Gpu(index=index, name=name, pci_address=f"0000:{index:02x}:00.0"))


GPU_0 = gpu()

TRUNCATED = "S1 3F800001: truncated, 25 bits kept"
CHAIN = "S1 3F800002: rounded after each product"


def line(says: Any = "cannot tell", text: str = "") -> Line:
    return Line(says=says, text=text)


TENSOR, NOT, DASH = line("tensor", "yes"), line("not tensor", "no"), line()


def judged(verdict: Any = "proven", **fields: Any) -> ModeVerdict:
    """A row of GPU 0 at L0, proven by all three lines; keyword arguments replace its fields."""
    values: dict[str, Any] = {
        "level": "L0",
        "gpu": GPU_0,
        "mode": "fp16",
        "verdict": verdict,
        "bits": TENSOR,
        "rate": TENSOR,
        "hardware": TENSOR,
    }
    return ModeVerdict(**{**values, **fields})


def _ran(level: str, mode: str, numbers: tuple[float, float, float], **fields: Any) -> ModeVerdict:
    tflops, peak, ratio = numbers
    blind = mode == "int8"
    bits = line(text="INT8 is exact on every unit") if blind else line("tensor", TRUNCATED)
    if mode == "fp8":
        bits = line("tensor", "F8 3F800400: truncated, 13 bits kept")
    opcode = "IMMA" if blind else {"fp8": "QGMMA"}.get(mode, "HMMA")
    return judged(
        level=level,
        mode=mode,
        bits=bits,
        rate=line("tensor", f"{ratio:g} times the rate of FP32"),
        hardware=line("tensor", f"64 {opcode}, no FFMA"),
        tflops=tflops,
        peak_tflops=peak,
        share=tflops / peak,
        ratio=ratio,
        **fields,
    )


def fp32(level: str = "L0", **fields: Any) -> ModeVerdict:
    """FP32 on CUDA cores: a chain of fused multiply-adds."""
    values: dict[str, Any] = {
        "level": level,
        "mode": "fp32",
        "bits": line("not tensor", CHAIN),
        "rate": line("not tensor", "127 FMA per clock and SM of 128"),
        "hardware": line("not tensor", "64 FFMA, no tensor instruction"),
        "tflops": 61.2,
        "peak_tflops": 66.9,
        "share": 0.915,
        "ratio": 1.0,
    }
    return judged("not engaged", **{**values, **fields})


def h100(index: int = 0, tflops: float = 1.0) -> list[ModeVerdict]:
    """All levels of a healthy H100 with PyTorch; ``tflops`` scales its rates."""
    hardware = [
        fp32(control=True),
        _ran("L0", "tf32", (377.0, 494.7, 6.2)),
        _ran("L0", "fp16", (661.0, 989.4, 10.8)),
        _ran("L0", "bf16", (658.0, 989.4, 10.8)),
        _ran("L0", "int8", (1290.0, 1978.9, 21.1)),
        _ran("L0", "fp8", (1450.0, 1978.9, 23.7)),
    ]
    cublas = [
        fp32("L1", control=True, tflops=52.1, share=0.78),
        _ran("L1", "tf32", (402.0, 494.7, 7.7)),
        _ran("L1", "fp16", (731.0, 989.4, 14.0)),
        _ran("L1", "bf16", (744.0, 989.4, 14.3)),
        _ran("L1", "int8", (1421.0, 1978.9, 27.3)),
        judged(
            "not applicable", level="L1", mode="fp8", reason="this libcublasLt has no FP8 product"
        ),
    ]
    off = line(text="CUPTI: another process is subscribed")
    torch = [
        fp32("L2", setting="default", hardware=off, cause="PyTorch leaves TF32 off by default."),
        _ran("L2", "tf32", (398.0, 494.7, 7.6), setting="switch-on"),
        fp32("L2", setting="override", hardware=off),
        fp32("L2", setting="control", control=True, hardware=off),
        _ran("L2", "fp16", (725.0, 989.4, 13.9), setting="half"),
        _ran("L2", "bf16", (738.0, 989.4, 14.2), setting="half"),
    ]
    rows = [
        *hardware,
        *(msgspec.structs.replace(row, library="libcublas 12.9.1") for row in cublas),
        *(msgspec.structs.replace(row, framework="torch") for row in torch),
    ]
    return [
        msgspec.structs.replace(
            row, gpu=gpu(index), tflops=None if row.tflops is None else row.tflops * tflops
        )
        for row in rows
    ]


MISALIGNED = Remedy("Pad the sizes to multiples of 8.", ["python3 -c 'pad()'"])


def unhappy() -> list[ModeVerdict]:
    """A GPU of which every verdict is told."""
    return [
        fp32(control=True),
        judged("proven", mode="tf32", slow="It ran at 1200 of 1980 MHz: the power cap held it."),
        judged("indicated", rate=DASH, hardware=line(text="no CUPTI"), cause="Nothing else spoke."),
        judged(
            "contradiction",
            mode="bf16",
            rate=NOT,
            cause="The bits say tensor, and the rate is that of FP32.",
        ),
        judged("cannot tell", mode="int8", bits=DASH, rate=DASH, hardware=DASH, reason="No line."),
        judged("not applicable", mode="fp8", reason="the chip has no such mode"),
        fp32("L1", control=True, library="libcublas 11.0"),
        judged(
            "not engaged",
            level="L1",
            library="libcublas 11.0",
            bits=NOT,
            rate=NOT,
            hardware=NOT,
            cause="The sizes are not aligned.",
            remedy=MISALIGNED,
        ),
        *(
            judged(
                "could not run",
                level="L1",
                library="libcublas 11.0",
                mode=mode,
                reason="the GPU is busy",
            )
            for mode in ("tf32", "bf16")
        ),
    ]


def report_on(rows: list[ModeVerdict], *results: CheckResult) -> Report:
    """A report with these rows on a machine with eight GPUs."""
    report = build(eight_gpus(), Diagnosis(list(results)))
    return msgspec.structs.replace(report, tensor_cores=rows)
