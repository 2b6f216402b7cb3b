"""What the tests of L2 share: its parameters, and a device on which all of it is made up."""

from __future__ import annotations

import os
from typing import Any

import msgspec
import pytest
from fake_frameworks import FakeAdapter, Teller

from envcheck.collector.kernels import level2, level2_mode, mapped_blas
from envcheck.facts.micro_kernels import ModeRun

ALL = ["default", "switch-on", "switch-off", "half"]


def params(**changed: Any) -> dict[str, Any]:
    return {
        "modes": ["fp32", "tf32", "fp16", "bf16"],
        "skip": [],
        "seconds": 30.0,
        "pynvml": None,
        "pci_address": "0000:01:00.0",
        "uuid": "GPU-1",
        "libraries": {"libcublas": None, "libcublasLt": None, "libcupti": "/x/libcupti.so"},
        "names": False,
        "framework": "torch",
        "settings": ALL,
        **changed,
    }


class Sampler:
    """Counts its samples in the clock that it tells."""

    def __init__(self, *where: Any) -> None:
        self.samples = 0

    def reset(self) -> None:
        self.samples = 0

    def sample(self) -> None:
        self.samples += 1

    def facts(self) -> dict[str, Any]:
        return {"clock_mhz": float(self.samples), "clock_source": "NVML"}


def isolate(monkeypatch: pytest.MonkeyPatch) -> None:
    """No NVML, no libcuda, no mapped library; and the environment stays as it is."""
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.delitem(os.environ, "NVIDIA_TF32_OVERRIDE", raising=False)
    monkeypatch.setattr(level2_mode, "Sampler", Sampler)
    monkeypatch.setattr(mapped_blas.dl, "mappings", list)

    def none() -> None:
        raise OSError("no libcuda")

    monkeypatch.setattr(level2, "Driver", none)


def measured(adapter: FakeAdapter, n: int = 64, **changed: Any) -> Teller:
    teller = Teller()
    level2.measure(adapter, params(**changed), teller, n)
    for mode in teller.modes.values():
        msgspec.convert(mode, ModeRun, strict=True)
    return teller
