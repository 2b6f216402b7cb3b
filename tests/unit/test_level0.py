"""Level 0 without a GPU: which vectors, which operands, and what clocks come to."""

from __future__ import annotations

from typing import Any

import pytest

from envcheck.collector.cuda.libcuda import CudaError
from envcheck.collector.kernels import MODES, level0, level0_bits, ptx
from envcheck.collector.kernels.failures import NotSupported
from envcheck.collector.kernels.ptx import Instruction
from envcheck.collector.kernels.vectors import SETS, SIZES

INSTRUCTIONS = {
    one: mode for mode in MODES for product in ptx.PRODUCTS[mode] for one in product.instructions
}


@pytest.mark.parametrize("instruction", INSTRUCTIONS, ids=lambda one: one.words)
def test_tiles_hold_each_vector_once_a_row(instruction: Instruction) -> None:
    chosen = level0_bits.vectors(instruction)
    names = [vector.name for vector, _c in chosen]
    types = (instruction.input_type, instruction.output_type)
    assert set(SETS[types]) <= set(names) and len(set(names)) == len(names)
    assert ("W16" in names) == (types[1] == "fp32" and types[0] != "e4m3")
    assert any(name.startswith("H") for name in names) == (types[1] in ("fp32", "fp16"))
    assert ("S2h" in names) == (types[1] == "fp16")
    m, n, k = instruction.shape
    a, b, c = level0_bits.operands(instruction, chosen)
    size, length = SIZES[types[0]], level0_bits.LENGTH
    assert length % k == 0 and length == 64
    assert (len(a), len(b)) == (len(chosen) * m * length * size, len(chosen) * n * length * size)
    assert len(c) == len(chosen) * m * n * SIZES[types[1]]
    terms = max(len(vector.a) for vector, _c in chosen)
    rows = [a[at : at + length * size] for at in range(0, len(a), length * size)]
    for number, (vector, accumulator) in enumerate(chosen):
        row = rows[number * m]
        filled = [i for i in range(length) if any(row[i * size : (i + 1) * size])]
        assert filled == sorted(vector.slots) and len(filled) <= terms
        tile = c[number * m * n * SIZES[types[1]] :][: SIZES[types[1]]]
        assert (
            int.from_bytes(tile, "little")
            == accumulator
            == (0x3F800000 if vector.name == "W16" else 0)
        )


class Memory:
    """A driver's memory; it may fail."""

    def __init__(self, free_fails: bool = False) -> None:
        self.sizes: list[int] = []
        self.freed: list[int] = []
        self._fails = free_fails

    def allocate(self, size: int) -> int:
        self.sizes.append(size)
        return 4096

    def free(self, pointer: int) -> None:
        self.freed.append(pointer)
        if self._fails:
            raise CudaError("cuMemFree_v2", 700, "CUDA_ERROR_ILLEGAL_ADDRESS")


class Teller:
    def __init__(self) -> None:
        self.sent: list[tuple[str, dict[str, Any]]] = []

    def run(self, **facts: Any) -> None:
        self.sent.append(("run", facts))

    def begin(self, mode: str, stage: str) -> None:
        self.sent.append(("begin", {mode: stage}))

    def mode(self, **facts: Any) -> None:
        self.sent.append(("mode", facts))

    def done(self) -> None:
        self.sent.append(("done", {}))


class Driver(Memory):
    """Links, and then fails."""

    capability = (7, 0)
    multiprocessors = 1

    def __init__(self) -> None:
        super().__init__()
        self.dead = False

    def open(self) -> None: ...
    def close(self) -> None: ...
    def upload(self, pointer: int, data: bytes) -> None: ...

    def facts(self) -> dict[str, Any]:
        return {"name": "a GPU", "clock_max_mhz": 1000.0}

    def link(self, text: str) -> bytes:
        return text.encode()

    def load(self, program: bytes) -> None:
        self.dead = b"wmma" in program
        raise CudaError("cuModuleLoadData", 719, "CUDA_ERROR_LAUNCH_FAILED")

    def alive(self) -> bool:
        return not self.dead


def test_a_mode_that_fails_is_told_and_a_dead_context_ends_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Ended(Exception):
        pass

    def end(status: int) -> None:
        raise Ended(status)

    monkeypatch.setattr(level0, "Driver", Driver)
    monkeypatch.setattr(level0, "Sampler", lambda *_: None)
    monkeypatch.setattr(level0.os, "_exit", end)
    teller = Teller()
    params = {"modes": ["fp32", "int8", "fp16", "bf16"], "skip": ["bf16"], "seconds": 5.0,
              "pynvml": None, "pci_address": None, "uuid": None}  # fmt: skip
    with pytest.raises(Ended, match="3"):
        level0.run(params, teller)
    modes = {facts["mode"]: facts for kind, facts in teller.sent if kind == "mode"}
    assert {mode: facts["outcome"] for mode, facts in modes.items()} == {
        "fp32": "error",
        "int8": "not-supported",
        "fp16": "error",
    }
    assert modes["fp16"]["reason"] == "cuModuleLoadData: CUDA_ERROR_LAUNCH_FAILED"
    assert "7.5 is the first" in modes["int8"]["reason"]
    monkeypatch.setattr(Driver, "alive", lambda self: True)
    teller = Teller()
    level0.run(params, teller)
    assert teller.sent[0] == ("run", {"name": "a GPU", "clock_max_mhz": 1000.0})


@pytest.mark.parametrize(
    ("linked", "loaded", "result"),
    [
        ("as it is", True, ("bytes", None)),
        ("for its chip", True, ("bytes", 209)),  # the linker leaves out what a chip alone has
        ("", True, ("PTX", 209)),  # the loader takes what the linker does not
        ("", False, "does not compile this mode's kernels"),
    ],
)
def test_a_kernel_comes_by_the_first_way_that_the_driver_knows(
    linked: str, loaded: bool, result: Any
) -> None:
    class Linker(Driver):
        capability = (9, 0)

        def link(self, text: str, target: int | None = None) -> bytes:
            if linked != ("as it is" if target is None else "for its chip"):
                raise CudaError("cuLinkAddData_v2", 209, "CUDA_ERROR_NO_BINARY_FOR_GPU")
            return b"bytes"

        def load(self, program: bytes) -> Any:
            if not loaded:
                raise CudaError("cuModuleLoadData", 209, "CUDA_ERROR_NO_BINARY_FOR_GPU")
            return "module"

    level = level0._Level0.__new__(level0._Level0)
    level._driver = Linker()
    if isinstance(result, str):
        with pytest.raises(NotSupported, match=result):
            level._load("fp8")
        return
    product, program, module, failure = level._load("fp8")
    assert product.target == "sm_90a" and module == "module"
    found = "bytes" if program == b"bytes" else "PTX"
    assert (found, failure and failure.code) == result
