"""NVIDIA's containers as the tables have them, and which of them fit a machine."""

from __future__ import annotations

from collections.abc import Sequence

import fit_machines as m
import h100
import pytest
import whole

from envcheck.data import table
from envcheck.data.products import is_data_centre
from envcheck.data.releases import month_key
from envcheck.facts.pci import Pci
from envcheck.facts.snapshot import Snapshot
from envcheck.install.catalogue.containers import stack
from envcheck.install.fit.fit import fit_images as judge
from envcheck.install.fit.models import ImageCandidate, ImageFit

ROWS = [row for row in table("releases") if row["tag_tf2"]]
DRIVERS = [
    "418.39", "418.87.01", "440.30", "440.33.01", "450.36.06", "450.51.06", "450.80.02",
    "455.23", "460.27.04", "460.32.03", "465.19.01", "470.57.02", "470.82.01", "495.29.05",
    "510.47.03", "515.65.01", "520.61.05", "525.60.13", "525.85.12", "530.30.02", "535.54.03",
    "570.124.06", "580.65.06",
]  # fmt: skip


def judged(gpus: Sequence[str], driver: str, flavour: str = "tf2", **host: object) -> ImageFit:
    return judge(stack(flavour), m.machine(gpus, driver, **host))  # type: ignore[arg-type]


def one(fit: ImageFit, release: str) -> ImageCandidate:
    return next(each for each in fit.candidates if each.release.release == release)


def kinds(candidate: ImageCandidate) -> list[str]:
    return [refusal.kind for refusal in candidate.refusals]


def sentence(candidate: ImageCandidate) -> str:
    (refusal,) = candidate.refusals
    return refusal.sentence


def by_hand(row: dict[str, str], driver: str, gpu: str) -> str:
    """What the row's own columns say of a driver: "yes", "compat", "no", or "not known"."""
    if not row["min_driver"]:
        return "not known"
    numbers = [int(part) for part in driver.split(".")]
    if numbers >= [int(part) for part in row["min_driver"].split(".")]:
        return "yes"
    data_centre = is_data_centre(m.GPUS[gpu][0])
    if not row["compat_driver_branches"]:
        return "no" if data_centre is False else "not known"
    for branch in row["compat_driver_branches"].split(";"):
        first = branch.split(".")
        later = first[1] == "xx" or numbers[1] >= int(first[1])
        if int(first[0]) == numbers[0] and later:
            return {True: "compat", False: "no", None: "not known"}[data_centre]
    return "no"


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("gpu", ["A100", "T4", "H100", "RTX 3090", "RTX A6000", "V100"])
def test_every_row_is_judged_by_its_own_columns(gpu: str, driver: str) -> None:
    fit = judged([gpu], driver)
    assert {row["release"] for row in ROWS} <= {one.release.release for one in fit.candidates}
    for row in ROWS:
        candidate = one(fit, row["release"])
        refusals = [r for r in candidate.refusals if r.kind != "capability"]
        notes = [note for note in candidate.notes if "compat libcuda" in note]
        expected = {
            "yes": ([], 0),
            "compat": ([], 1),
            "no": (["driver"], 0),
            "not known": (["not-known"], 0),
        }[by_hand(row, driver, gpu)]
        assert ([refusal.kind for refusal in refusals], len(notes)) == expected, row["release"]
        for refusal in refusals:
            assert refusal.overridable is (refusal.kind == "not-known")


def windows(supports: str) -> Snapshot:
    gpus = [h100.gpu(0)]
    version = {"driver_version": "537.13", "cuda_version": supports or whole.ABSENT}
    return m.with_sections(
        whole.host(wsl=True),
        pci=Pci(devices=[]),
        nvml=h100.nvml(gpus, **version),
        nvidia_smi=None,
        cuda=h100.cuda(gpus, driver_api_version=supports or whole.ABSENT),
    )


@pytest.mark.parametrize(
    ("supports", "refused", "open_"),
    [
        ("12.2", [], False),
        ("12.1", [], False),
        ("12.0", ["not-known"], False),
        ("11.8", ["driver"], False),
        ("", [], True),
    ],
)
def test_in_wsl_the_cuda_of_the_windows_driver_counts(
    supports: str, refused: list[str], open_: bool
) -> None:
    candidate = one(judge(stack("tf2"), windows(supports)), "23.06")
    assert (kinds(candidate), candidate.open) == (refused, open_)
    assert not any("530 or newer" in refusal.sentence for refusal in candidate.refusals)


def test_without_a_gpu_it_is_refused_unless_that_is_allowed() -> None:
    fit = judge(stack("tf2"), m.without_gpu())
    assert fit.best is None
    assert sentence(one(fit, "23.06")) == (
        "needs an NVIDIA GPU, and this machine has no NVIDIA GPU"
    )
    allowed = judge(stack("tf2"), m.without_gpu(), allow_no_gpu=True)
    assert allowed.best is not None and allowed.best.release.release == "23.06"
    assert kinds(one(allowed, "25.02")) == ["not-known"], "that is no question of the GPU"


def test_a_cpu_without_avx_is_refused_and_an_old_glibc_is_not() -> None:
    assert kinds(one(judged(["A100"], "535.54.03", cpu_flags=["sse4_2"]), "23.06")) == ["cpu"]
    assert one(judged(["A100"], "535.54.03", glibc="2.17"), "23.06").fits
    assert one(judged(["A100"], "535.54.03", libc="musl"), "23.06").fits


MONTHS = {row["release"]: row for row in table("releases")}
LISTED = {(row["stack"], row["release"]): row for row in table("containers")}


@pytest.mark.parametrize(
    ("flavour", "newest", "oldest", "count"),
    [
        ("tf1", "23.03", "19.09", 35),
        ("tf2", "25.02", "20.03", 57),
        ("torch", "25.12", "19.03", 12),
        ("jax", "25.04", "25.04", 1),
    ],
)
def test_a_flavour_has_every_month_with_a_tag_newest_first(
    flavour: str, newest: str, oldest: str, count: int
) -> None:
    of = stack(flavour)  # type: ignore[arg-type]
    names = [one.release for one in of.releases]
    assert (of.name, of.flavour, len(names)) == (f"ngc-{flavour}", flavour, count)
    assert (names[0], names[-1]) == (newest, oldest)
    assert names == sorted(names, key=month_key, reverse=True)
    assert "21.01" not in names, "no container was released in that month"
    monthly = {name for name, row in MONTHS.items() if row.get(f"tag_{flavour}")}
    assert set(names) == monthly | {name for of, name in LISTED if of == flavour}


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("NVIDIA A100-SXM4-80GB", True),
        ("A100-SXM4-40GB", True),
        ("Tesla T4", True),
        ("Tesla K80", True),
        ("NVIDIA H100 80GB HBM3", True),
        ("NVIDIA L40S", True),
        ("NVIDIA B200", True),
        ("NVIDIA GeForce RTX 3090", False),
        ("NVIDIA TITAN RTX", False),
        ("Quadro P5000", False),
        ("Quadro RTX 8000", None),  # select RTX cards, and nobody says which
        ("NVIDIA RTX A6000", None),
        ("NVIDIA RTX 6000 Ada Generation", None),
        ("GRID A100-40C", None),
        ("NVIDIA A100-40C", None),
        ("NVIDIA GB10", None),
        ("", None),
    ],
)
def test_which_gpus_are_data_centre_gpus(name: str, answer: bool | None) -> None:
    assert is_data_centre(name) is answer
