"""LIB-010 and LIB-009: packages that are linked to what is not there, and toolkits older than the GPUs."""

from __future__ import annotations

from typing import Any

import pytest
from targets import dist, good_snapshot, judge, on_bare_machine, packages

from envcheck.facts.base import Unavailable
from envcheck.facts.target import LibraryFile, LinkedFile, Loader, WantedLibrary
from envcheck.findings.model import CheckResult

SITE = "/venv/lib/python3.11/site-packages"
ABSENT = Unavailable(unavailable="absent")
OTHER = ["/usr/lib/libcudart.so.13"]


def want(soname: str, there: bool = False, instead: Any = (), how: Any = "needed") -> WantedLibrary:
    if there:
        return WantedLibrary(soname=soname, how=how, path=f"/usr/lib/{soname}", origin="system")
    return WantedLibrary(soname=soname, how=how, path=ABSENT, instead=list(instead))


def file(name: str, *wants: WantedLibrary, built: bool = False, **facts: Any) -> LinkedFile:
    owner = {"distribution": "x", "distribution_version": "1.0", "built_here": built}
    return LinkedFile(path=f"{SITE}/x/{name}", wants=list(wants), **(owner | facts))


def on(*files: LinkedFile, **probes: Any) -> CheckResult:
    return judge(good_snapshot(loader=Loader(linked=list(files)), **probes), "LIB-010", "libraries")


GONE, THERE = want("libcudart.so.11.0", instead=OTHER), want("libcudart.so.13", there=True)
NOWHERE = want("libnvinfer.so.10")
TORCH = want("libtorch.so", there=True)
SYMBOL = {"undefined": ["_ZN3c103oldEv"]}
PARTS = "x.libs/libcudnn-463fd6d5.so.8.9.7"
ELSEWHERE = WantedLibrary(
    soname="libcudnn_ops_infer.so.8",
    how="named",
    path="/n/libcudnn_ops_infer.so.8",
    origin="environment",
)
BUNDLED = file(PARTS, want("libcudnn_ops_infer.so.8", how="named", instead=OTHER))


@pytest.mark.parametrize(
    ("files", "outcome", "cause"),
    [
        ([file("a.so", THERE)], "pass", None),
        ([file("a.so", GONE)], "fail", "linked-library-not-found"),
        ([file("a.so", NOWHERE)], "fail", "linked-library-not-found"),
        # one part of several: of another version it is no choice, left out it may be
        ([file("a.so", GONE), file("b.so", THERE)], "warn", "part-cannot-load"),
        ([file("a.so", NOWHERE), file("b.so", THERE)], "pass", None),
        # what the package itself bundles, it needs
        ([BUNDLED, file("b.so", THERE)], "fail", "linked-library-not-found"),
        # and its parts by name, where only another package has them
        ([file(PARTS, ELSEWHERE), file("b.so", THERE)], "warn", "bundled-library-without-its-parts"),
        ([file("a.so", ELSEWHERE), file("b.so", THERE)], "pass", None),
        # variants, of which one fits
        ([file("libx_cuda110.so", GONE), file("libx_cuda130.so", THERE)], "pass", None),
        ([file("libx_cuda110.so", GONE), file("libx_cuda118.so", GONE)], "fail",
         "linked-library-not-found"),
        ([file("liba_2_10.so", TORCH, **SYMBOL), file("liba_current.so", TORCH)], "pass", None),
        # one file that tries several names
        ([file("a.so", want("libcudart.so.11.0", how="named", instead=OTHER), THERE)], "pass", None),
        # the driver's are for other checks
        ([file("a.so", want("libcuda.so.1"))], "pass", None),
        ([file("a.so", TORCH, **SYMBOL)], "fail", "built-for-another-framework"),
        ([file("a.so", want("libtorch_cuda.so", instead=["/x/libtorch.so"]))], "fail",
         "built-for-another-framework"),
        ([file("a.so", want("libtorch_cuda.so"))], "pass", None),
        ([file("a.so", TORCH, **SYMBOL), file("b.so", TORCH), file("c.so", THERE)], "warn",
         "part-built-for-another-framework"),
    ],
)  # fmt: skip
def test_what_is_told(files: list[LinkedFile], outcome: str, cause: str | None) -> None:
    result = on(*files)
    assert (result.outcome, [one.cause.key for one in result.findings]) == (
        outcome,
        [cause] if cause else [],
    )


def test_without_a_gpu_only_the_frameworks_libraries_count() -> None:
    for found, outcome in ((file("a.so", GONE), "pass"), (file("a.so", TORCH, **SYMBOL), "fail")):
        snapshot = on_bare_machine(loader=Loader(linked=[found]))
        assert judge(snapshot, "LIB-010", "libraries").outcome == outcome


@pytest.mark.parametrize(
    ("found", "requires", "command"),
    [
        (file("a.so", GONE, built=True), [], "CUDA_HOME=/usr/local/cuda-12.5 "),
        (file("a.so", GONE), [], "install --upgrade x"),
        (file("a.so", want("libcublas.so.12")), [], "nvidia-cublas-cu12"),
        (file("a.so", TORCH, built=True, **SYMBOL), [], "x==1.0 --force-reinstall --no-deps --no-build"),
        (file("a.so", TORCH, **SYMBOL), [], "install --upgrade x torch==2.13.0"),
        (file("a.so", NOWHERE), [], "ldconfig -p"),
        (file("a.so", TORCH, built=True, **SYMBOL), ["torch==2.5.1"],
         "install --upgrade x torch==2.13.0"),
    ],
)  # fmt: skip
def test_what_mends_it(found: LinkedFile, requires: list[str], command: str) -> None:
    own = packages(dist("x", "1.0", requires=requires), dist("torch", "2.13.0"))
    result = on(found, packages=own)
    (finding,) = result.findings
    assert finding.remedy is not None and command in " ".join(finding.remedy.commands)
    assert ("--no-build-isolation" in " ".join(finding.remedy.commands)) == bool(
        found.built_here is True and not requires
    )


@pytest.mark.parametrize(
    ("soname", "user", "outcome"),
    [
        ("libcudart.so.8.0", "x", "warn"),
        ("libcudart.so.10.2", "x", "warn"),
        ("libcudart.so.11.0", "x", "pass"),
        ("libcuda.so", "x", "warn"),
        ("libcuda.so", "numba", "fail"),
    ],
)
def test_an_old_toolkit_or_a_stub_in_the_variable(soname: str, user: str, outcome: str) -> None:
    """H100: CUDA 11.8 is the first; 11's runtime has one name for all its minor versions."""
    there = LibraryFile(soname=soname, path=f"/opt/cuda/lib64/{soname}")
    loader = Loader(ld_library_path=["/opt/cuda/lib64"], on_path=[there])
    snapshot = good_snapshot(loader=loader, packages=packages(dist(user, "0.57.0")))
    result = judge(snapshot, "LIB-009", "libraries")
    assert result.outcome == outcome
    assert all("/opt/cuda/lib64" in one.message for one in result.findings)
