"""Findings and remedies that say the same of several things stand in a report once."""

from __future__ import annotations

import pytest
from build import snapshot
from made_findings import made_finding
from reported import report_of, result

from envcheck.findings.model import Finding, Remedy
from envcheck.findings.several import step_by_step
from envcheck.findings.subjects import about_device_at
from envcheck.reports import terminal

SMI = "sudo nvidia-smi"


@pytest.mark.parametrize(
    ("each", "joined"),
    [
        ([["nvidia-smi -i A -rac"], ["nvidia-smi -i B -rac"]], ["nvidia-smi -i A,B -rac"]),
        ([[f"{SMI} --gpu-reset -i A"], [f"{SMI} --gpu-reset -i B"]], [f"{SMI} --gpu-reset -i A,B"]),
        ([["nvidia-smi mig -i A -lgip  # why"], ["nvidia-smi mig -i B -lgip  # why"]],
         ["nvidia-smi mig -i A,B -lgip  # why"]),
        ([["fuser -v /dev/n0", "x"], ["fuser -v /dev/n1", "x"]], ["fuser -v /dev/n0 /dev/n1", "x"]),
        ([["pip show a b"], ["pip show b c"]], ["pip show a b c"]),
        ([["pip install a -U"], ["pip install b -U"]], ["pip install a b -U"]),
        # other options, other limits, blanks in a word, other programs, other steps
        ([["pip install a -U"], ["pip install b"]], ["pip install a -U", "pip install b"]),
        ([["nvidia-smi -i A -pl 1"], ["nvidia-smi -i B -pl 2"]],
         ["nvidia-smi -i A -pl 1", "nvidia-smi -i B -pl 2"]),
        ([["pip install 'a >= 1'"], ["pip install b"]], ["pip install 'a >= 1'", "pip install b"]),
        ([["grep -i A"], ["grep -i B"]], ["grep -i A", "grep -i B"]),
        ([["one", "two"], ["two"]], ["one", "two"]),
    ],
)  # fmt: skip
def test_one_command_with_a_list_where_the_program_takes_one(
    each: list[list[str]], joined: list[str]
) -> None:
    assert step_by_step(each) == joined


def shown(*findings: list[Finding], verbose: bool = False) -> str:
    results = [result(f"GPU-00{n}", "gpu", "fail", findings=f) for n, f in enumerate(findings, 1)]
    text = terminal.render(report_of(*results), snapshot(), width=200, verbose=verbose)
    return " ".join(text.split())


def old(name: str, remedy: str = "Bring it up to date.", gpu: str = "") -> Finding:
    return made_finding(
        "fail",
        f"{name} is old: it fails.",
        about_device_at("gpu", gpu) if gpu else [],
        remedy=Remedy(remedy, [f"pip install {name}"]),
        headline="something is old",
    )


def test_findings_of_one_headline_and_remedy_are_one() -> None:
    text = shown([old("numpy"), old("scipy"), old("torch")])
    assert "numpy is old: it fails. Likewise: scipy; torch." in text
    assert text.count("Bring it up to date.") == 1 and "pip install numpy scipy torch" in text


@pytest.mark.parametrize(
    "other", [old("scipy", remedy="Remove it."), old("scipy", gpu="0000:01:00.0")]
)
def test_other_remedies_and_other_devices_stand_for_themselves(other: Finding) -> None:
    assert "Likewise" not in shown([old("numpy"), other])


def test_of_very_many_a_sentence_names_the_first() -> None:
    assert "; p6; 3 more." in shown([old(f"p{n}") for n in range(10)])


def test_commands_that_stand_above_are_named() -> None:
    reset = ["stop it", "unload it", "reset it", "start it"]
    first = made_finding("fail", "one", remedy=Remedy("Reset.", ["look", *reset]))
    then = made_finding("fail", "two", remedy=Remedy("Reset, too.", [*reset, "look again"]))
    note = "Reset, too. # as for GPU-001 above: from stop it to start it look again"
    assert note in shown([first], [then])
    assert note not in shown([first], [then], verbose=True)
