"""Which containers fit a machine: the tables' rows against machines made by hand."""

from __future__ import annotations

from collections.abc import Sequence

import fit_machines as m
import h100
import msgspec
import pytest
import whole
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.version import Version

from envcheck.data import table
from envcheck.data.data_centre_gpus import is_data_centre
from envcheck.facts.pci import Pci
from envcheck.facts.snapshot import Snapshot
from envcheck.install.catalogue.containers import stack
from envcheck.install.fit.fit import fit_images as judge
from envcheck.install.fit.image_rules import covering
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
        told = {
            "yes": ([], 0),
            "compat": ([], 1),
            "no": (["driver"], 0),
            "not known": (["not-known"], 0),
        }[by_hand(row, driver, gpu)]
        assert ([refusal.kind for refusal in refusals], len(notes)) == told, row["release"]
        for refusal in refusals:
            assert refusal.overridable is (refusal.kind == "not-known")


def test_an_a100_on_450_51_runs_by_the_compat_libcuda() -> None:
    candidate = one(judged(["A100"], "450.51.06"), "22.10")
    assert candidate.fits
    assert candidate.notes[0] == (
        "Driver 450.51.06 is older than 520: it runs by the image's own compat libcuda, which branch"
        " 450.51 on data-centre GPUs may have."
    )
    # 450.36 is of branch 450, and older than what that branch must be.
    assert kinds(one(judged(["A100"], "450.36.06"), "22.10")) == ["driver"]


def test_branches_are_exact_and_no_ranges() -> None:
    candidate = one(judged(["A100"], "460.32.03"), "22.10")
    assert sentence(candidate) == (
        "needs driver 520 or newer, or on data-centre GPUs one of the branches 450.51, 470.57, 510.47 or"
        " 515.65, and this machine has 460.32.03"
    )
    assert one(judged(["A100"], "470.82.01"), "22.10").fits
    assert one(judged(["A100"], "460.32.03"), "21.10").fits, "460.27 is one of that month's"


def test_any_driver_of_an_open_branch_will_do() -> None:
    assert one(judged(["T4"], "418.39"), "20.10").fits
    assert kinds(one(judged(["T4"], "418.39"), "21.10")) == ["driver"], "that month says 418.40"
    assert one(judged(["T4"], "418.87.01"), "21.10").fits


def test_a_geforce_may_not_use_the_compat_libcuda() -> None:
    candidate = one(judged(["RTX 3090"], "450.80.02"), "21.10")
    assert sentence(candidate) == (
        "needs driver 470 or newer, and this machine has 450.80.02: its compat libcuda for branch 450.51"
        " is for data-centre GPUs alone, and NVIDIA GeForce RTX 3090 is none"
    )
    assert one(judged(["RTX 3090"], "470.82.01"), "21.10").fits


def test_one_geforce_beside_data_centre_gpus_is_enough_to_refuse() -> None:
    # Both have compute capability 8.6: it is names that count.
    assert one(judged(["A10"], "450.80.02"), "21.10").fits
    assert kinds(one(judged(["A10", "RTX 3090"], "450.80.02"), "21.10")) == ["driver"]


def test_a_gpu_that_may_be_one_is_not_known_and_can_be_named() -> None:
    candidate = one(judged(["RTX A6000"], "450.80.02"), "21.10")
    assert sentence(candidate) == (
        "runs on driver 450.80.02 by its compat libcuda, for data-centre GPUs alone, and whether NVIDIA"
        " RTX A6000 is one is not known"
    )
    assert candidate.named().fits


def test_an_h100_needs_no_compat_on_535_and_525_is_too_old_for_23_03() -> None:
    assert judged(["H100"], "535.54.03").best is not None
    best = judged(["H100"], "535.54.03").best
    assert best is not None and best.release.release == "23.06"
    older = judged(["H100"], "525.60.13")
    assert older.best is not None and older.best.release.release == "23.01"
    assert "which older branches its compat libcuda is for is not known" in sentence(
        one(older, "23.03")
    )


def test_a_driver_that_no_source_names_is_never_chosen_and_can_be_named() -> None:
    candidate = one(judged(["A100"], "580.65.06"), "25.02")
    assert kinds(candidate) == ["not-known"]
    taken = candidate.named()
    assert taken.fits
    assert taken.notes[0] == "25.02 needs a driver, and no source says which version."


def test_a_sister_decides_nothing() -> None:
    # The same month's base image wants 7.5 there; the table itself does not say.
    assert one(judged(["P100"], "580.65.06"), "25.02").named().fits
    # Nor does a driver that is older than the sister's 560 count against it.
    assert one(judged(["A100"], "450.80.02"), "25.02").named().fits


@pytest.mark.parametrize("gpu", ["P100", "V100"])
def test_pascal_and_volta_run_what_the_table_names(gpu: str) -> None:
    fit = judged([gpu], "535.54.03")
    assert fit.best is not None and fit.best.release.release == "23.06"
    assert one(fit, "22.10").fits


def test_a_k80_is_below_every_release() -> None:
    fit = judged(["K80"], "470.82.01")
    assert fit.best is None
    assert (
        sentence(one(fit, "22.10"))
        == "needs compute capability 6.0 or newer, and Tesla K80 has 3.7"
    )
    early = one(fit, "20.06")
    assert sentence(early) == (
        "needs a compute capability that is not known; 22.06 needs 6.0 or newer, and Tesla K80 has 3.7"
    )
    assert early.named().fits


def test_a_b200_is_newer_than_the_cuda_of_every_container_whose_driver_is_known() -> None:
    fit = judged(["B200"], "570.124.06")
    assert fit.best is None
    candidate = one(fit, "23.06")
    assert kinds(candidate) == ["capability"]
    assert "CUDA 12.8 was the first to make" in sentence(candidate)
    assert kinds(one(fit, "25.02")) == ["not-known"], "its CUDA 12.8 can make code for it"


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


def test_cards_without_a_driver_need_one_first() -> None:
    snapshot = m.with_sections(
        whole.host(),
        kernel=whole.unloaded(),
        nvml=h100.no_driver(9),
        nvidia_smi=None,
        cuda=None,
    )
    assert sentence(one(judge(stack("tf2"), snapshot), "23.06")).startswith(
        "needs an NVIDIA driver 530 or newer, and no NVIDIA driver answers"
    )


def test_a_driver_of_unknown_version_leaves_it_open() -> None:
    candidate = one(judged(["A100"], ""), "23.06")
    assert candidate.fits and candidate.open
    assert "the version of this machine's is not known" in candidate.notes[0]


def test_a_capability_that_is_not_known_leaves_it_open() -> None:
    gpus = [h100.gpu(0, compute_capability=whole.ABSENT)]
    versions = {"driver_version": "535.54.03", "cuda_version": "12.2"}
    snapshot = m.with_sections(
        whole.host(),
        nvml=h100.nvml(gpus, **versions),
        nvidia_smi=None,
        cuda=h100.cuda(gpus, driver_api_version="12.2"),
    )
    candidate = one(judge(stack("tf2"), snapshot), "23.06")
    assert candidate.fits and candidate.open


def test_what_is_known_is_of_x86_64() -> None:
    candidate = one(judged(["A100"], "535.54.03", architecture="aarch64", cpu_flags=[]), "23.06")
    assert sentence(candidate) == ("may not be there for aarch64: it is known only for x86_64")
    assert candidate.named().fits


def test_a_cpu_without_avx_is_refused_and_an_old_glibc_is_not() -> None:
    assert kinds(one(judged(["A100"], "535.54.03", cpu_flags=["sse4_2"]), "23.06")) == ["cpu"]
    assert one(judged(["A100"], "535.54.03", glibc="2.17"), "23.06").fits
    assert one(judged(["A100"], "535.54.03", libc="musl"), "23.06").fits


BRANCH = st.builds(
    lambda head, rest: f"{head}.{rest}",
    st.sampled_from(["418", "440", "450", "460", "470"]),
    st.sampled_from(["xx", "27", "30", "40", "51"]),
)


@given(st.lists(BRANCH, max_size=4), st.sampled_from(DRIVERS))
@settings(max_examples=200, deadline=None)
def test_a_branch_covers_its_own_later_drivers_alone(branches: list[str], driver: str) -> None:
    found = covering(Version(driver), tuple(branches))
    major, minor = driver.split(".")[:2]
    fitting = [
        b for b in branches if b.split(".")[0] == major
        and (b.endswith("xx") or int(b.split(".")[1]) <= int(minor))
    ]  # fmt: skip
    assert found == (fitting[0] if fitting else "")


@given(st.sampled_from(DRIVERS), st.lists(st.sampled_from(sorted(m.GPUS)), min_size=1, max_size=3))
@settings(max_examples=60, deadline=None)
def test_another_gpu_never_makes_more_fit(driver: str, gpus: list[str]) -> None:
    alone = {c.release.release for c in judged(gpus[:1], driver).candidates if c.fits}
    together = {c.release.release for c in judged(gpus, driver).candidates if c.fits}
    assert together <= alone


def test_candidates_are_plain_facts() -> None:
    candidate = one(judged(["A100"], "470.82.01"), "22.10")
    assert msgspec.json.decode(msgspec.json.encode(candidate))["release"]["min_driver"] == "520"
