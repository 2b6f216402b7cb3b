"""Which releases fit which machine: processors, drivers, GPUs and what they can run, C libraries, disks."""

from __future__ import annotations

from typing import Any

import fit_machines as m
import h100
import pytest
import whole

from envcheck.facts.base import Unavailable
from envcheck.facts.pci import Pci
from envcheck.install.catalogue.load import load


def test_minor_version_compatibility_is_a_note() -> None:
    candidate = m.one(m.judged(m.tensorflow(), m.machine(["H100"], "535.54.03")), "2.21.0")
    assert candidate.fits
    assert candidate.notes == [
        "CUDA 12.5.1 runs on driver 535.54.03 by minor-version compatibility."
    ]
    newer = m.one(m.judged(m.tensorflow(), m.machine(["H100"], "580.65.06")), "2.21.0")
    assert newer.fits and newer.notes == []


def test_a_forward_compatibility_package_counts() -> None:
    gpus = [h100.gpu(0)]
    old = {"driver_version": "470.82.01", "cuda_version": "11.4"}
    snapshot = m.with_sections(
        whole.host(),
        nvml=h100.nvml(gpus, **old),
        nvidia_smi=h100.smi(gpus, **old),
        cuda=h100.cuda(gpus, driver_api_version="12.5"),
    )
    assert m.one(m.judged(m.tensorflow(), snapshot), "2.21.0").notes == []


def test_ptx_alone_is_a_note_and_newer_than_the_driver_a_refusal() -> None:
    fits = m.one(m.judged(m.tensorflow(), m.machine(["RTX 5090"], "570.124.06")), "2.21.0")
    assert fits.fits
    assert "the driver compiles its compute_90 first" in fits.notes[0]
    refused = m.one(m.judged(m.tensorflow(), m.machine(["RTX 5090"], "550.54.14")), "2.21.0")
    assert m.sentence(refused, "capability") == (
        "has only PTX of CUDA 12.5.1 for NVIDIA GeForce RTX 5090 (compute capability 12.0), which a"
        " driver for CUDA 12.4 does not compile"
    )


def test_every_gpu_counts() -> None:
    stack = m.with_release(cuda="12.5.1", compute_capabilities=["sm_80", "sm_90"])
    alone = m.judged(stack, m.machine(["H100"])).candidates[0]
    assert alone.fits
    mixed = m.judged(stack, m.machine(["H100", "T4", "A100"])).candidates[0]
    assert m.sentence(mixed, "capability") == (
        "has no code for Tesla T4 (compute capability 7.5), only for sm_80, sm_90; it would do where"
        " CUDA_VISIBLE_DEVICES leaves it out"
    )
    # So its user may name it: the other way round, nothing can be done.
    assert not mixed.fits and mixed.named().fits
    old = m.judged(stack, m.machine(["T4"])).candidates[0]
    assert m.sentence(old, "capability").endswith("only for sm_80, sm_90")
    assert not old.named().fits


def test_the_documented_driver_itself_is_enough() -> None:
    stack = m.with_release(cuda="11.8.0", driver="455.23.05")
    assert m.judged(stack, m.machine(["A100"], "455.23.05")).candidates[0].named().fits


def test_without_a_gpu() -> None:
    refused = m.judged(m.tensorflow(), m.without_gpu()).candidates[1]
    assert m.kinds(refused) == ["gpu"]
    assert m.sentence(refused, "gpu") == "needs an NVIDIA GPU, and this machine has no NVIDIA GPU"
    allowed = m.judged(m.tensorflow(), m.without_gpu(), allow_no_gpu=True).candidates[1]
    assert allowed.fits
    assert "nothing that needs one can be verified" in allowed.notes[0]
    assert m.judged(m.tensorflow_cpu(), m.without_gpu()).candidates[1].fits


def test_a_gpu_without_a_driver() -> None:
    snapshot = m.with_sections(
        whole.host(), kernel=whole.unloaded(), nvml=h100.no_driver(9), nvidia_smi=None, cuda=None
    )
    candidate = m.one(m.judged(m.tensorflow(), snapshot), "2.21.0")
    assert m.sentence(candidate, "driver") == (
        "needs an NVIDIA driver 525.60.13 or newer, and no NVIDIA driver answers, although the PCI bus"
        " shows 8 GPUs"
    )


@pytest.mark.parametrize(
    ("supports", "expected"),
    [("12.8", "fits"), ("12.2", "note"), ("11.4", "refused"), ("", "note")],
)
def test_a_windows_driver_is_judged_by_the_cuda_that_it_supports(
    supports: str, expected: str
) -> None:
    gpus = [h100.gpu(0)]
    version = {"driver_version": "537.13", "cuda_version": supports or whole.ABSENT}
    snapshot = m.with_sections(
        whole.host(wsl=True),
        pci=Pci(devices=[]),
        nvml=h100.nvml(gpus, **version),
        nvidia_smi=None,
        cuda=h100.cuda(gpus, driver_api_version=supports or whole.ABSENT),
    )
    candidate = m.one(m.judged(m.tensorflow(), snapshot), "2.21.0")
    assert (m.kinds(candidate) == ["driver"]) is (expected == "refused")
    assert bool(candidate.notes) is (expected == "note")


NOT_COLLECTED = Unavailable(unavailable="not-collected")

# The newest release that fits, by GPU and driver; "" where none does. Upstream's 2.18 and later are CUDA
# 12.5 with code for 6.0 to 9.0; 2.17 is CUDA 12.3; 2.14 is CUDA 11.8 with code for 3.5 to 8.0. NVIDIA's
# releases after 20.11 ask for driver 455.
NEWEST = {
    ("tensorflow", "V100"): ["2.14.1", "2.14.1", "2.21.0", "2.21.0", "2.21.0", "2.21.0", "2.21.0"],
    ("tensorflow", "T4"): ["2.14.1", "2.14.1", "2.21.0", "2.21.0", "2.21.0", "2.21.0", "2.21.0"],
    ("tensorflow", "A100"): ["2.14.1", "2.14.1", "2.21.0", "2.21.0", "2.21.0", "2.21.0", "2.21.0"],
    # 2.14 has PTX of CUDA 11.8 for it, which these two drivers do not compile.
    ("tensorflow", "H100"): ["", "", "2.21.0", "2.21.0", "2.21.0", "2.21.0", "2.21.0"],
    # PTX alone: what the driver's own CUDA is not older than (525: 11.8; 535: 12.2; 550: 12.3).
    ("tensorflow", "RTX 5090"): ["", "", "2.14.1", "2.15.1", "2.17.1", "2.21.0", "2.21.0"],
    ("nvidia-tf1", "V100"): ["20.11", "22.10", "23.03", "23.03", "23.03", "23.03", "23.03"],
    ("nvidia-tf1", "T4"): ["20.11", "22.10", "23.03", "23.03", "23.03", "23.03", "23.03"],
    ("nvidia-tf1", "A100"): ["20.11", "22.10", "23.03", "23.03", "23.03", "23.03", "23.03"],
    ("nvidia-tf1", "H100"): ["", "22.10", "23.03", "23.03", "23.03", "23.03", "23.03"],
    ("nvidia-tf1", "RTX 5090"): ["", "", "", "", "", "", ""],
}


@pytest.mark.parametrize(("stack", "gpu"), NEWEST)
def test_the_newest_release_that_fits(stack: str, gpu: str) -> None:
    found = []
    for driver in m.DRIVERS:
        best = m.judged(load(stack), m.machine([gpu], driver)).best
        found.append(best.release.release if best is not None else "")
    assert found == NEWEST[stack, gpu]


def test_a_release_whose_cuda_is_not_known_only_where_it_is_named() -> None:
    candidate = m.one(m.judged(m.nvidia_tf1(), m.machine()), "23.02")
    assert m.kinds(candidate) == ["not-known"]
    chosen = candidate.named()
    assert chosen.fits
    assert chosen.notes[0] == (
        "23.02 was built with an unknown CUDA, so the driver that it needs is not known either."
    )


def test_nothing_known_is_never_a_pass_in_silence() -> None:
    nothing = m.with_sections(
        whole.host(architecture=NOT_COLLECTED, glibc=NOT_COLLECTED, cpu_flags=NOT_COLLECTED),
        pci=Pci(),
        kernel=None,
        nvml=None,
        nvidia_smi=None,
        cuda=None,
    )
    candidate = m.one(m.judged(m.tensorflow(), nothing), "2.21.0")
    notes = candidate.notes
    assert candidate.open and not m.one(m.judged(m.tensorflow(), m.machine()), "2.21.0").open
    for what in ("architecture", "with AVX", "glibc", "has an NVIDIA GPU", "driver runs CUDA"):
        assert any(what in note and "not known" in note for note in notes), what


@pytest.mark.parametrize(
    ("facts", "kind", "words"),
    [
        ({"free_mib": 5000}, "disk", "needs 9.2 GiB (3.2 GiB to download, 6.0 GiB installed), and"),
        ({"free_mib": 5000}, "disk", "/data/envs has 4.9 GiB free: 4.3 GiB more needed"),
        ({"noexec": True}, "place", "/data/envs is mounted noexec"),
        ({"read_only": True, "writable": False}, "place", "/data/envs is mounted read-only"),
        ({"writable": False}, "place", "is not writable by this user"),
    ],
)
def test_the_place(facts: dict[str, Any], kind: str, words: str) -> None:
    candidate = m.one(m.judged(m.tensorflow(), m.machine(), m.space(**facts)), "2.21.0")
    assert words in m.sentence(candidate, kind)
