"""Which releases fit which machine: processors, drivers, GPUs, C libraries, disks."""

from __future__ import annotations

from typing import Any

import fit_machines as m
import pytest
import whole

from envcheck.facts.base import Unavailable
from envcheck.facts.pci import Pci
from envcheck.install.catalogue.load import load

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
