"""L2 as a process: what is planned, on matrices of which size, and what is told before anything runs."""

from __future__ import annotations

import os
import struct
import sys
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest
from fake_frameworks import FakeAdapter, Teller
from level2_parts import isolate, params

from envcheck.collector.kernels import level2, level2_mode, matrices
from envcheck.collector.kernels.vectors import SETS, VECTORS


@pytest.fixture(autouse=True)
def nothing_real(monkeypatch: pytest.MonkeyPatch) -> None:
    isolate(monkeypatch)


# -- what is planned


def test_what_the_user_has_comes_before_any_switch_is_touched() -> None:
    assert [f"{m}/{s}" for m, s in level2.planned(params())] == [
        "fp32/default",
        "fp32/switch-off",
        "tf32/switch-on",
        "fp16/half",
        "bf16/half",
    ]


# -- the matrices


def floats(data: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(data) // 4}f", data)


def test_both_matrices_meet_in_the_vectors_dot_product() -> None:
    n, k = 128, 96
    vectors = [VECTORS[name] for name in SETS["fp32", "fp32"]]
    a = floats(matrices.left(vectors, "fp32", n, k))
    b = floats(level2_mode.right_rows(vectors, "fp32", k, n))
    for vector, band in zip(vectors, matrices.bands(n, len(vectors)), strict=True):
        exact = sum(Fraction(x) * Fraction(y) for x, y in zip(vector.a, vector.b, strict=True))
        for i in (band[0], band[len(band) // 2], band[-1]):
            row, column = a[i * k : (i + 1) * k], b[i::n]
            terms = [Fraction(x) * Fraction(y) for x, y in zip(row, column, strict=True)]
            assert sum(terms) == exact
            assert len([t for t in terms if t]) == len(vector.a)


# -- the process as a whole


def run(monkeypatch: pytest.MonkeyPatch, module: Any, **changed: Any) -> Teller:
    teller = Teller()
    given = params(**changed)
    monkeypatch.setitem(sys.modules, given["framework"], module)
    level2.run(given, teller)
    return teller


@pytest.mark.parametrize(
    ("settings", "kept"), [(["default", "half"], True), (["override", "control"], False)]
)
def test_the_control_runs_without_emulation(
    monkeypatch: pytest.MonkeyPatch, settings: list[str], kept: bool
) -> None:
    monkeypatch.setenv("CUBLAS_EMULATE_SINGLE_PRECISION", "1")
    run(monkeypatch, None, settings=settings)
    assert ("CUBLAS_EMULATE_SINGLE_PRECISION" in os.environ) is kept


def test_nothing_is_told_before_the_device_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    adapter, before = FakeAdapter(), []
    teller = Teller()
    adapter.absent = lambda: before.append(len(teller.reported))
    adapter.ping = lambda: before.append(len(teller.reported))
    monkeypatch.setitem(level2.SIDES, "torch", SimpleNamespace(adapter=lambda module: adapter))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(__version__="9.9"))
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    sizes = []
    monkeypatch.setattr(level2, "measure", lambda *given: sizes.append(given[-1]))
    level2.run(params(), teller)
    assert before == [0, 0]
    ((_, facts),) = teller.reported
    assert facts["framework_version"] == "9.9"
    assert facts["variables"] == {"CUBLAS_WORKSPACE_CONFIG": ":16:8"}
    assert (facts["pci_address"], facts["uuid"]) == ("0000:01:00.0", "GPU-1")
    assert facts["memory_free_mib"]["detail"] == "OSError: no libcuda"
    assert sizes == [4096]
    assert os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] == "true"
