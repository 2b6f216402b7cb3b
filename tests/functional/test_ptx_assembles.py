"""The PTX of level 0 through NVIDIA's own assembler and disassembler, for every chip that they know."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from processes import ran

from envcheck.collector.kernels import MODES, cubin, ptx, ptx_module, ptx_rate, ptx_signature
from envcheck.collector.kernels.ptx import Product
from envcheck.collector.soak import product_ptx
from envcheck.collector.systems.shared.transfers import pattern_ptx

# What the driver compiles for: the chip's own instructions included.
CHIPS = {
    "sm_70": (7, 0),
    "sm_75": (7, 5),
    "sm_80": (8, 0),
    "sm_86": (8, 6),
    "sm_89": (8, 9),
    "sm_90a": (9, 0),
    "sm_100a": (10, 0),
    "sm_120": (12, 0),
}
KINDS = {"fp32": {"FFMA"}, "tf32": {"HMMA"}, "fp16": {"HMMA"}, "bf16": {"HMMA"}, "int8": {"IMMA"},
         "fp8": {"QMMA", "QGMMA"}}  # fmt: skip
# Instructions of the chip for one of PTX, where it is not one: by target and chip.
PARTS = {("sm_70", "sm_70"): 16, ("sm_70", "sm_75"): 4}
TENSOR = set(cubin.TENSOR.values())
PACKAGES = {
    "ptxas": ("nvidia-cuda-nvcc-cu12", "nvidia-cuda-nvcc"),
    "nvdisasm": ("nvidia-cuda-nvdisasm", "nvidia-cuda-nvcc-cu12"),
}


def tool(name: str) -> str:
    """A program of NVIDIA's: of an installed package, or on the PATH; skips the test without it."""
    named = os.environ.get("ENVCHECK_" + name.upper())
    if named:
        return named
    for package in PACKAGES[name]:
        try:
            files = importlib.metadata.files(package) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        for file in files:
            if file.name == name:
                return str(file.locate())
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} here: pip install {PACKAGES[name][0]}")
    return found


@pytest.fixture(scope="module")
def assembled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Product, str], Path]:
    """The cubin of a product's module for a chip."""
    folder = tmp_path_factory.mktemp("cubins")

    @cache
    def made(product: Product, chip: str) -> Path:
        text = ptx_module.text(product)
        source = folder / f"{abs(hash((text, chip)))}.ptx"
        source.write_text(text)
        run = ran(
            [tool("ptxas"), f"-arch={chip}", str(source), "-o", str(source.with_suffix(".cubin"))],
            text=True,
        )
        if "is not defined for option 'gpu-name'" in run.stderr:
            pytest.skip(f"this ptxas does not know {chip}")
        assert run.returncode == 0 and "warning" not in run.stderr.lower(), run.stderr
        return source.with_suffix(".cubin")

    return made


def expected(product: Product, chip: str) -> dict[str, int]:
    """How many instructions of the mode's kind each kernel of a product has."""
    parts = PARTS.get((product.target, chip), 1)
    counts = {"rate": parts * ptx_rate.shape(product.instructions[0]).repeats}
    for one in product.instructions:
        half = chip == "sm_70" and one.output_type == "fp16"  # two steps of FP32 are one of FP16
        counts[ptx_signature.name(one)] = parts // 2 if half else parts
    return counts


CASES = [
    pytest.param(
        mode,
        product,
        chip,
        id=f"{mode}-{product.target}-on-{chip}",
        marks=[] if chip == "sm_80" else pytest.mark.heavy,
    )
    for mode in MODES
    for chip, capability in CHIPS.items()
    for product in ptx.products(mode, capability)
]


@pytest.mark.parametrize(("mode", "product", "chip"), CASES)
def test_each_kernel_is_of_its_mode_s_instructions(
    mode: str, product: Product, chip: str, assembled: Callable[[Product, str], Path]
) -> None:
    found = cubin.opcodes(assembled(product, chip).read_bytes())
    of_kind = {
        name: sum(counts.get(kind, 0) for kind in KINDS[mode]) for name, counts in found.items()
    }
    assert of_kind == expected(product, chip)
    others = (TENSOR | {"FFMA", "FFMA2", "DFMA", "IDP", "F2FP"}) - KINDS[mode]
    assert not [counts for counts in found.values() if others & set(counts)]
    # HFMA2 loads constants, a few; it never multiplies
    assert all(counts.get(k, 0) < 8 for counts in found.values() for k in ("HFMA2", "HFMA2.MMA"))


def lines(made: Path) -> dict[str, list[str]]:
    """The instructions of each kernel, as nvdisasm names them, and the clock reads among them."""
    run = ran([tool("nvdisasm"), "-c", str(made)], text=True)
    if "is deprecated" in run.stderr:
        pytest.skip("this nvdisasm does not know the chip")
    assert run.returncode == 0, run.stderr
    found: dict[str, list[str]] = {}
    kernel: list[str] = []
    for line in run.stdout.splitlines():
        if section := re.search(r"\.section\s+\.text\.(\w+)", line):
            kernel = found.setdefault(section.group(1), [])
        elif word := re.search(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ +)?([A-Z]\w*)(\S*)", line):
            name = "CLOCK" if "SR_CLOCK" in line else word.group(1)
            kernel.append(name + (".MMA" if name == "HFMA2" and ".MMA" in word.group(2) else ""))
    return found


@pytest.mark.parametrize(("mode", "product", "chip"), CASES)
def test_between_the_clocks_is_the_loop_and_nothing_is_taken_out_of_it(
    mode: str, product: Product, chip: str, assembled: Callable[[Product, str], Path]
) -> None:
    made = assembled(product, chip)
    listed = lines(made)
    rate = listed["rate"]
    begin, end = (at for at, name in enumerate(rate) if name == "CLOCK")
    timed = Counter(rate[begin:end])
    wanted = expected(product, chip)["rate"]
    assert sum(timed[kind] for kind in KINDS[mode]) == wanted
    assert timed["BRA"] == 1 and not {"LDG", "STG", "LDS", "BAR", "CALL", "LDL"} & set(timed)
    # what the bytes say is what the disassembler says
    known = set(cubin.KINDS.values())
    by_bytes = cubin.opcodes(made.read_bytes())
    assert by_bytes == {
        name: {kind: n for kind, n in Counter(words).items() if kind in known}
        for name, words in listed.items()
    }


def test_warpgroups_multiply_one_after_the_other_without_waiting(
    assembled: Callable[[Product, str], Path],
) -> None:
    rate = lines(assembled(ptx.products("fp8", (9, 0))[0], "sm_90a"))["rate"]
    first = rate.index("QGMMA")
    last = len(rate) - rate[::-1].index("QGMMA")
    assert set(rate[first:last]) <= {"QGMMA", "R2UR", "UMOV", "NOP"}


@pytest.mark.parametrize("chip", CHIPS)
def test_the_memory_kernels_assemble(tmp_path: Path, chip: str) -> None:
    source = tmp_path / "pattern.ptx"
    source.write_text(pattern_ptx.text())
    run = ran(
        [tool("ptxas"), f"-arch={chip}", str(source), "-o", str(tmp_path / "pattern.cubin")],
        text=True,
    )
    if "is not defined for option 'gpu-name'" in run.stderr:
        pytest.skip(f"this ptxas does not know {chip}")
    assert run.returncode == 0 and "warning" not in run.stderr.lower(), run.stderr


@pytest.mark.parametrize(
    ("mode", "product", "chip"), [case for case in CASES if case.values[0] in product_ptx.MODES]
)
def test_the_soak_s_kernel_keeps_every_multiplication(
    tmp_path: Path, mode: str, product: Product, chip: str
) -> None:
    """What a round adds and the next takes away must not be left out by the compiler."""
    source = tmp_path / "soak.ptx"
    source.write_text(product_ptx.text(product))
    argv = [tool("ptxas"), "-v", f"-arch={chip}", str(source), "-o", str(tmp_path / "soak.cubin")]
    run = ran(argv, text=True)
    if "is not defined for option 'gpu-name'" in run.stderr:
        pytest.skip(f"this ptxas does not know {chip}")
    assert run.returncode == 0 and "warning" not in run.stderr.lower(), run.stderr
    assert not re.search("[1-9][0-9]* bytes spill", run.stderr), run.stderr
    found = cubin.opcodes((tmp_path / "soak.cubin").read_bytes())[product_ptx.NAME]
    made = ptx_rate.shape(product.instructions[0])
    each = made.left * made.right * PARTS.get((product.target, chip), 1)
    kind = "FFMA" if mode == "fp32" else "HMMA"
    assert found[kind] == each * (made.rounds + 1), found
