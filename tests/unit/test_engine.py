"""The engine: every check yields a result in every run, and consequences are told from causes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from graphlib import TopologicalSorter

import pytest
from build import Gpu, Nvml, gpu_snapshot, snapshot
from h100 import empty_machine, machine
from made_findings import made_finding
from msgspec.structs import replace

from envcheck.checks.engine import diagnose
from envcheck.checks.gpus import each_gpu
from envcheck.checks.registry import Check, all_checks, areas
from envcheck.facts.base import Unavailable
from envcheck.facts.missing import CouldNotRun, NeedsRoot, NotKnown, Skip
from envcheck.facts.snapshot import Snapshot
from envcheck.facts.view import SnapshotView, need
from envcheck.findings.model import CheckResult, Passed, Verdict
from envcheck.findings.subjects import about, about_device_at


def a_check(
    judge: Callable[[SnapshotView], Iterable[Verdict]], code: str = "T-1", **options: object
) -> Check:
    fields = {"area": "gpu", "title": "t", "about": "", "sources": (), "follows": ()} | options
    return Check(code=code, judge=judge, **fields)  # type: ignore[arg-type]


def result_of(judge: Callable[[SnapshotView], Iterable[Verdict]]) -> CheckResult:
    (result,) = diagnose(snapshot(), checks=[a_check(judge)]).results
    return result


def raises(error: Exception) -> Callable[[SnapshotView], Iterable[Verdict]]:
    def judge(view: SnapshotView) -> Iterable[Verdict]:
        raise error
        yield

    return judge


@pytest.mark.parametrize(
    ("verdicts", "outcome"),
    [
        ([], "skipped"),
        ([Passed("fine")], "pass"),
        ([made_finding("warn", "w")], "warn"),
        ([made_finding("warn", "w"), made_finding("fail", "f")], "fail"),
    ],
)
def test_the_worst_verdict_is_the_outcome(verdicts: list[Verdict], outcome: str) -> None:
    assert result_of(lambda view: verdicts).outcome == outcome


@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (Skip("not here"), "skipped", "not here"),
        (NotKnown("CUDA 99"), "skipped", "not known: CUDA 99"),
        (NeedsRoot("log"), "skipped", "log: only root may read it"),
        (CouldNotRun("broken"), "could-not-run", "broken"),
    ],
)
def test_why_a_check_cannot_judge(error: Exception, outcome: str, reason: str) -> None:
    result = result_of(raises(error))
    assert (result.outcome, result.reason) == (outcome, reason)


def test_a_check_that_crashes_is_itself_a_finding() -> None:
    result = result_of(raises(KeyError("x")))
    assert result.outcome == "could-not-run"
    assert "crashed: KeyError" in result.reason
    assert "T-1 crashed" in result.findings[0].message


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("not-collected", "skipped"),
        ("absent", "skipped"),
        ("not-supported", "skipped"),
        ("no-permission", "skipped"),
        ("error", "could-not-run"),
        ("timeout", "could-not-run"),
        ("lost", "could-not-run"),
    ],
)
def test_a_missing_fact_is_never_a_pass(reason: str, outcome: str) -> None:
    def judge(view: SnapshotView) -> Iterable[Verdict]:
        need(Unavailable(unavailable=reason), "it")  # type: ignore[arg-type]
        yield Passed("never reached")

    assert result_of(judge).outcome == outcome


def test_a_gpu_without_the_fact_is_unjudged_and_the_others_are_judged() -> None:
    whole = Gpu(index=0, pci_address="0000:01:00.0", temperature_c=40)
    mute = Gpu(
        index=1,
        pci_address="0000:02:00.0",
        temperature_c=Unavailable(unavailable="lost", detail="gone"),
    )

    def judge(view: SnapshotView) -> Iterable[Verdict]:
        def one(gpu: Gpu) -> Iterable[Verdict]:
            yield Passed(f"{need(gpu.temperature_c, 'temperature')} C")

        yield from each_gpu(view, one)

    (result,) = diagnose(gpu_snapshot(whole, mute), checks=[a_check(judge)]).results
    assert result.outcome == "could-not-run"
    assert result.unjudged[0].subject == "GPU 1 at 0000:02:00.0"


def test_nvml_and_nvidia_smi_are_matched_by_address_never_by_index() -> None:
    from build import NvidiaSmi

    nvml = Nvml(gpus=[Gpu(index=0, pci_address="0000:02:00.0", name="B")])
    smi = NvidiaSmi(
        gpus=[
            Gpu(index=0, pci_address="0000:01:00.0", name="A", temperature_c=1),
            Gpu(index=1, pci_address="0000:02:00.0", name="other", temperature_c=2),
        ]
    )
    view = SnapshotView(snapshot(nvml=nvml, nvidia_smi=smi))
    assert [(gpu.name, gpu.temperature_c) for gpu in view.gpus] == [("B", 2), ("A", 1)]
    assert view.gpu_evidence(view.gpus[0], "temperature_c").fact == (
        "machine.nvidia_smi.gpus[1].temperature_c"
    )


def failing(view: SnapshotView) -> Iterable[Verdict]:
    yield made_finding("fail", "broken")


def test_what_follows_from_a_failure_is_its_consequence_down_the_chain() -> None:
    checks = [
        a_check(failing, "A"),
        a_check(failing, "B", follows=("A",)),
        a_check(raises(CouldNotRun("no answer")), "C", follows=("B",)),
        a_check(failing, "D"),
        a_check(lambda view: [Passed("")], "E", follows=("A",)),
    ]
    results = {r.code: r for r in diagnose(snapshot(), checks=checks).results}
    assert {code: r.outcome for code, r in results.items()} == {
        "A": "fail", "B": "skipped", "C": "skipped", "D": "fail", "E": "pass",
    }  # fmt: skip
    assert results["B"].consequence_of == results["C"].consequence_of == "A"
    assert results["B"].findings[0].message == "broken"
    assert results["C"].reason == "skipped because of A: no answer"


def finding_at(level: str, *addresses: str) -> Callable[[SnapshotView], Iterable[Verdict]]:
    return lambda view: [
        made_finding(level, "broken", about_device_at("gpu", at)) for at in addresses
    ]  # type: ignore[arg-type]


def a_package() -> Verdict:
    return made_finding("fail", "broken", about("package", "numpy"))


def made_only_by(code: str) -> Verdict:
    """A finding whose cause no other check explains."""
    made = made_finding("fail", "broken")
    return replace(made, cause=replace(made.cause, follows=(code,)))


ONE, TWO = "0000:01:00.0", "0000:02:00.0"
SWITCH = about_device_at("nvswitch", "0000:03:00.0")


@pytest.mark.parametrize(
    ("cause", "effect", "explained"),
    [
        (finding_at("fail", ONE), finding_at("fail", ONE), True),
        (finding_at("fail", ONE), finding_at("fail", TWO), False),
        (finding_at("fail", ONE, TWO), finding_at("warn", TWO), True),
        (finding_at("fail", ONE), finding_at("fail", ONE, TWO), False),
        (failing, finding_at("fail", TWO), True),
        (finding_at("fail", ONE), raises(CouldNotRun("nothing answers")), True),
        (lambda view: [made_finding("fail", "broken", SWITCH)], finding_at("warn", ONE, TWO), True),
        (finding_at("warn", ONE), finding_at("warn", ONE), True),
        (finding_at("warn", ONE), finding_at("fail", ONE), False),
        (finding_at("fail", ONE), lambda view: [a_package()], False),
        (failing, lambda view: [a_package()], True),
        (failing, lambda view: [made_only_by("A")], True),
        (failing, lambda view: [made_only_by("C")], False),
    ],
)
def test_one_devices_trouble_explains_that_devices_alone(
    cause: Callable[[SnapshotView], Iterable[Verdict]],
    effect: Callable[[SnapshotView], Iterable[Verdict]],
    explained: bool,
) -> None:
    checks = [a_check(cause, "A"), a_check(effect, "B", follows=("A",))]
    result = diagnose(snapshot(), checks=checks).results[1]
    assert (result.consequence_of == "A") is explained
    assert (result.outcome == "skipped") is explained


def test_only_and_skip_leave_results_in_their_place() -> None:
    checks = [a_check(failing, "A"), a_check(failing, "B", area="pci"), a_check(failing, "C")]
    outcomes = [
        r.outcome for r in diagnose(snapshot(), only=["gpu"], skip=["C"], checks=checks).results
    ]
    assert outcomes == ["fail", "skipped", "skipped"]


def test_every_registered_check_is_whole() -> None:
    checks = all_checks()
    codes = {check.code for check in checks}
    assert len(codes) == len(checks) > 0
    for check in checks:
        assert check.area in areas()
        assert check.title and check.about and check.sources, check.code
        assert set(check.follows) <= codes, f"{check.code} follows {set(check.follows) - codes}"


def test_every_check_yields_a_result_for_a_snapshot_that_knows_nothing() -> None:
    results = diagnose(snapshot()).results
    assert [r.code for r in results] == [c.code for c in all_checks()]
    assert {r.outcome for r in results} == {"skipped"}
    assert all(r.reason for r in results)


@pytest.mark.parametrize("build", [snapshot, machine, empty_machine])
def test_without_a_target_every_check_of_one_says_the_same(build: Callable[[], Snapshot]) -> None:
    results = [r for r in diagnose(build()).results if areas()[r.area].of_target]
    assert {r.area for r in results} == {area.name for area in areas().values() if area.of_target}
    reason = "no target environment was looked at (--target)"
    assert {(r.outcome, r.reason) for r in results} == {("skipped", reason)}


def test_causes_never_go_round_in_a_circle() -> None:
    TopologicalSorter({check.code: check.follows for check in all_checks()}).prepare()
