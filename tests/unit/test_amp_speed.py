"""How the AMP speed system times 16 bits beside 32, on a made-up framework."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from kept import Kept

from envcheck.collector.kernels.failures import NotSupported
from envcheck.collector.systems import amp_speed


class MadeUp:
    """An adapter: 1 ms for one in 16 bits, 6 in FP32. switch: whether TF32 can be turned off."""

    def __init__(self, switch: bool) -> None:
        self.has_switch = switch
        self.order: list[str] = []

    def switch(self, setting: str) -> None:
        assert setting == "control"
        if not self.has_switch:
            raise NotSupported("no switch")

    def facts(self) -> dict[str, str]:
        return {"name": "NVIDIA A100", "compute_capability": "8.0"}

    def built_cuda(self) -> str:
        return "12.4"

    def release(self) -> None:
        """Nothing is held."""

    def work(self, setting: str, element: str, _sizes: Any) -> Any:
        def seconds(count: int) -> float:
            self.order.append(element)
            return count * (0.001 if element == "fp16" else 0.006)

        assert setting == (
            "half" if element == "fp16" else "control" if self.has_switch else "default"
        )
        return SimpleNamespace(once=lambda: None, seconds=seconds)

    product = convolution = work


@pytest.mark.parametrize("switch", [True, False])
def test_variants_are_timed_in_turns(monkeypatch: pytest.MonkeyPatch, switch: bool) -> None:
    @contextmanager
    def names(path: str | None, major: int | None) -> Iterator[SimpleNamespace]:
        assert (path, major) == (None, 12)
        yield SimpleNamespace(found=["gemm_f16"])

    monkeypatch.setattr("envcheck.collector.kernels.cupti.kernel_names", names)
    adapter, kept = MadeUp(switch), Kept()
    amp_speed.measure(adapter, (64, 64, 64), (1, 8, 8, 8, 3), kept)  # type: ignore[no-untyped-call]
    assert [one["name"] for one in kept.trials] == ["product", "convolution"]
    for one in kept.trials:
        told = one["evidence"]
        assert (told["amp_ms"], told["float32_ms"]) == (1.0, 6.0)
        assert told["float32_is"] == ("FP32" if switch else "its default")
        assert told["kernels"] == ["gemm_f16"] and told["compute_capability"] == "8.0"
    assert adapter.order[4:10] == ["fp16", "fp32"] * 3
