"""The report's section on Tensor Cores: every verdict in every width, folding, and facts that bite."""

from __future__ import annotations

import re
from typing import Any, get_args

import judged_rows as rows
import msgspec
import pytest
from build import document, ok
from judged_rows import DASH, GPU_0, MISALIGNED, NAME, fp32, gpu, h100, judged, unhappy
from reported import eight_gpus, finding, result, skipped
from tensor_runs import micro_kernels

from envcheck.facts.snapshot import Snapshot
from envcheck.findings.model import CheckResult, Diagnosis, Remedy
from envcheck.findings.subjects import mig_instance
from envcheck.reports import model
from envcheck.reports.page import Page
from envcheck.reports.tensorcore_rows import folded, ordered
from envcheck.reports.tensorcores import section
from envcheck.reports.terminal import draw
from envcheck.tensorcores import judge
from envcheck.tensorcores.mode_verdict import ModeVerdict, Verdict

VERDICTS = get_args(Verdict)


def shown(judged: list[ModeVerdict], *results: CheckResult, **style: Any) -> str:
    page = Page(**style)
    made = section(rows.report_on(judged, *results), eight_gpus())
    assert made is not None
    draw(page, made)
    return page.text()


def one_line(text: str) -> str:
    return " ".join(text.split())


def row_of(text: str, name: str) -> str:
    """The first table row that begins with this name, its cells with one space between."""
    found = next(row for row in text.splitlines() if row.startswith(f"  {name} "))
    return one_line(found).removeprefix(f"{name} ")


def test_a_row_has_verdict_rate_share_ratio_and_three_lines() -> None:
    text = shown(h100())
    assert row_of(text, "TF32") == "proven 377 76 % 6.2 tensor tensor tensor"
    assert row_of(text, "INT8") == "proven 1290 65 % 21.1 — tensor tensor"
    assert row_of(text, "FP32 default") == "not engaged 61.2 92 % 1.0 no no —"
    assert "  FP8: not applicable (this libcublasLt has no FP8 product)\n" in text
    assert all(len(row) <= 80 for row in text.splitlines())


@pytest.mark.parametrize("width", [40, 80, 100, 200])
@pytest.mark.parametrize("verdict", VERDICTS)
def test_every_verdict_is_told_in_every_width(verdict: str, width: int) -> None:
    row = judged(verdict, reason="Why it is so.", cause="For this cause.")
    text = shown([row], width=width)
    assert re.search(rf"FP16:? +{verdict}", text)
    assert shown([row], width=width, colour=True) != text
    assert re.sub(r"\x1b\[[0-9;]*m", "", shown([row], width=width, colour=True)) == text
    assert ("For this cause." in one_line(text)) == (verdict not in ("proven", "not applicable"))
    silent = verdict in ("could not run", "not applicable")
    assert ("(Why it is so.)" in one_line(text)) == silent
    assert shown([row], width=width, utf8=False).isascii()


def test_what_is_not_proven_has_cause_evidence_and_remedy_once() -> None:
    text = shown(unhappy())
    printed = text[text.index("L1 FP16: not engaged – ") :]
    assert printed.startswith(
        "L1 FP16: not engaged – The sizes are not aligned.\n"
        "    bits: not tensor (no)\n"
        "    rate: not tensor (no)\n"
        "    hardware: not tensor (no)\n"
        "  To do: Pad the sizes to multiples of 8.\n"
        "python3 -c 'pad()'\n"
    )
    assert "  TF32, BF16: could not run (the GPU is busy)\n" in text
    assert "L0 TF32: below the peak – It ran at 1200 of 1980 MHz" in text
    assert "L0 INT8: cannot tell – No line.\n    bits: cannot tell\n" in text
    assert text.count("as it must be") == 2 and "FP32 control: not engaged –" not in text


def test_a_remedy_that_a_finding_gives_is_not_given_again() -> None:
    found = result("TC-003", "tensorcores", "fail", findings=[finding("Bad.", remedy=MISALIGNED)])
    text = shown(unhappy(), found)
    assert "L1 FP16: not engaged – The sizes are not aligned. (see TC-003 above)\n" in text
    assert "pad()" not in text and "bits: not tensor (no)" not in text
    for remedy in (Remedy("Another.", MISALIGNED.commands), Remedy(MISALIGNED.text, ["other"])):
        elsewhere = msgspec.structs.replace(found, findings=[finding("Bad.", remedy=remedy)])
        assert "(see" not in shown(unhappy(), elsewhere)
    passed = msgspec.structs.replace(found, outcome="skipped", consequence_of="GPU-001")
    assert "\npython3 -c 'pad()'\n" in shown(unhappy(), passed), "where nobody else says it"


def test_fp32_that_stays_fp32_is_no_fault() -> None:
    default = fp32("L2", framework="torch", setting="default")
    assert "not engaged –" not in shown([default])
    printed = msgspec.structs.replace(default, cause="PyTorch leaves TF32 off.")
    text = shown([printed])
    override = msgspec.structs.replace(printed, setting="override")
    assert "not engaged –" not in shown([override]), "it was set so for this run"
    assert "PyTorch FP32 default: not engaged – PyTorch leaves TF32 off.\n" in text
    assert "bits: not tensor" not in text
    assert "\x1b[1;31mnot engaged" not in shown([printed], colour=True)
    assert "\x1b[1;31mnot engaged" in shown([judged("not engaged")], colour=True)
    assert "\x1b[1;32mnot engaged" in shown([fp32(control=True)], colour=True)
    assert "\x1b[1;31mproven" in shown([judged(mode="fp32", control=True)], colour=True)


def test_a_gpu_that_is_slower_or_says_something_else_stands_alone() -> None:
    def titles(judged: list[ModeVerdict]) -> list[tuple[str, int]]:
        return [(group.title, group.count) for group in folded(judged)]

    slow = [*h100(0), *h100(1, 0.8), *h100(2), *h100(10)]
    assert titles(slow) == [(f"GPU 0, 2, 10 {NAME}", 3), (f"GPU 1 {NAME} at 0000:01:00.0", 1)]
    other = [
        msgspec.structs.replace(row, verdict="indicated") if row.mode == "fp8" else row
        for row in h100(1)
    ]
    assert len(titles([*h100(0), *other])) == 2
    assert len(titles([*h100(0), *h100(1)[:-1]])) == 2
    second = judged(gpu=gpu(1))
    for change in ({}, {"bits": DASH}, {"cause": "Bad."}, {"slow": "Hot."}):
        other_words = msgspec.structs.replace(second, **change)
        assert len(titles([judged(), other_words])) == (2 if change else 1), change
    instances = [judged(gpu=mig_instance(GPU_0, f"MIG-{n}"), tflops=None) for n in (1, 2)]
    assert len(titles(instances)) == 2, "nobody knows which numbers of such a name matter"
    capped = [judged(gpu=gpu(n), slow=f"At 1{n}00 of 1980 MHz.") for n in range(3)]
    assert titles(capped) == [(f"GPU 0–2 {NAME}", 3)], "numbers alone make no difference"
    assert titles([judged(tflops=1.0), judged(gpu=gpu(1))]) != []


def test_the_report_orders_what_the_judge_says_and_asks_only_if_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left_out = skipped("TC-001", "tensorcores", "left out by --only or --skip")
    passed = result("TC-002", "tensorcores")
    ran = msgspec.structs.replace(eight_gpus(), machine=document(micro_kernels=ok(micro_kernels())))

    def made(*results: CheckResult) -> list[ModeVerdict]:
        return model.build(ran, Diagnosis(list(results))).tensor_cores

    monkeypatch.setattr(judge, "judge", lambda facts: list(reversed(unhappy())))
    assert made(passed, left_out) == ordered(unhappy()) != list(reversed(unhappy()))
    assert made(left_out) == []

    def crashes(facts: Snapshot) -> list[ModeVerdict]:
        raise KeyError("x")

    monkeypatch.setattr(judge, "judge", crashes)
    assert made(passed) == [], "a check tells of it"
