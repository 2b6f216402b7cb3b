"""What findings are about: typed, with ids for programs and one text for readers."""

from __future__ import annotations

import pytest
from build import gpu_snapshot
from made_findings import made_finding
from test_failure_modes import OTHERS, ROWS

from envcheck.checks.engine import diagnose
from envcheck.checks.registry import Check
from envcheck.facts.gpu import Gpu
from envcheck.facts.missing import Skip
from envcheck.findings.model import CheckResult, unjudged
from envcheck.findings.subjects import (
    Subject,
    about,
    about_device_at,
    about_file,
    about_gpu,
    about_processes,
    gpu_subject,
    joined,
    mig_instance,
)
from envcheck.reports.headlines import phrase

H100 = Gpu(index=3, name="H100", pci_address="0000:61:00.0", uuid="GPU-<uuid-4>")


@pytest.mark.parametrize(
    ("subjects", "text"),
    [
        (about_gpu(H100), "GPU 3 H100 at 0000:61:00.0"),
        (about_gpu(Gpu(name="H100")), "GPU H100"),
        (about_gpu(Gpu(index=0)), "GPU 0"),
        (
            [mig_instance(gpu_subject(H100), "MIG-1")],
            "GPU 3 H100 at 0000:61:00.0, MIG instance MIG-1",
        ),
        (about_device_at("nvswitch", "0000:04:00.0"), "NVSwitch 0000:04:00.0"),
        (about_device_at("gpu", None), ""),
        (about("package", "torch") + about("package", "torch"), "torch"),
        (about("package", None), ""),
        (about_file("/dev/nvidia0") + about_file(None), "/dev/nvidia0"),
        (about_processes([7, 8]), "process 7, process 8"),
    ],
)
def test_how_they_are_called(subjects: list[Subject], text: str) -> None:
    assert joined(subjects) == text
    assert made_finding("fail", "Bad.", subjects).subject == text
    assert unjudged(Skip("why"), subjects).subject == text


def test_every_finding_of_a_known_failure_names_its_subject_with_an_id() -> None:
    kinds = set()
    for make, _told in (*ROWS.values(), *OTHERS.values()):
        for result in diagnose(make()).results:
            for item in (*result.findings, *result.unjudged):
                for subject in item.subjects:
                    kinds.add(subject.kind)
                    ids = (subject.name, subject.path, subject.address, subject.uuid)
                    assert any(ids) or subject.index is not None or subject.pid, subject
                    assert subject.text
    assert kinds >= {"gpu", "package", "framework", "library", "file", "variable", "engine"}


def effect_of(cause: list[Subject], effect: list[Subject]) -> CheckResult:
    def check(code: str, subjects: list[Subject], *follows: str) -> Check:
        judge = lambda view: [made_finding("fail", "Bad.", subjects)]  # noqa: E731
        return Check(
            code=code,
            area="gpu",
            title="t",
            about="a",
            sources=("s",),
            follows=follows,
            judge=judge,
        )

    checks = [check("T-1", cause), check("T-2", effect, "T-1")]
    return diagnose(gpu_snapshot(H100), checks=checks).results[1]


def test_consequences_go_by_address_and_not_by_what_a_name_says() -> None:
    other = Gpu(index=1, name="H100 at 0000:61:00.0", pci_address="0000:01:00.0")
    assert effect_of(about_gpu(H100), about_gpu(H100)).consequence_of == "T-1"
    assert effect_of(about_gpu(H100), about_gpu(other)).consequence_of == ""
    assert effect_of([], about_gpu(other)).consequence_of == "T-1"
    assert (
        phrase("is lost", about_gpu(other), {"0000:61:00.0": 3, "0000:01:00.0": 1})
        == "GPU 1 is lost"
    )
