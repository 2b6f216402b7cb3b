"""Real machines' nvidia-smi through the checks on driver and GPUs: no failure, and no idle warning."""

from __future__ import annotations

import msgspec
import pytest
from build import document
from captures import H100_MIG, H200, RTX_4080, path
from judged import results

from envcheck.collector.smi.document import read_document
from envcheck.facts.gpu import NvidiaSmi
from envcheck.facts.snapshot import SCHEMA, Snapshot
from envcheck.findings.model import CheckResult

# What each of them deserves to be told: a lowered limit, a driver that comes and goes.
WARNINGS = {
    "nvidia-smi-xml/a100-sxm4-v12.xml": {"GPU-015"},
    "nvidia-smi-xml/a10g.xml": set(),
    "nvidia-smi-xml/gtx-1070-ti.xml": set(),
    "nvidia-smi-xml/gtx-1660-ti.xml": set(),
    "nvidia-smi-xml/quadro-p2000-v12.xml": set(),
    "nvidia-smi-xml/quadro-p400.xml": set(),
    "nvidia-smi-xml/rtx-3060-v12.xml": set(),
    "nvidia-smi-xml/rtx-3080-v12.xml": set(),
    "nvidia-smi-xml/rtx-3080-v13.xml": set(),
    "nvidia-smi-xml/rtx-3090-v12.xml": {"GPU-009"},
    "nvidia-smi-xml/rtx-4000-sff-ada-v13.xml": set(),
    "nvidia-smi-xml/tesla-t4.xml": set(),
    H200: set(),
    H100_MIG: set(),
    RTX_4080: set(),
}
SECTION = "==============NVSMI LOG"


def judge(text: str) -> dict[str, CheckResult]:
    facts = msgspec.convert(read_document(text), NvidiaSmi)
    machine = msgspec.structs.replace(document(nvidia_smi=facts), origin="nvidia-smi")
    return results(Snapshot(schema=SCHEMA, redacted=True, machine=machine))


@pytest.mark.parametrize("name", WARNINGS)
def test_a_healthy_capture_gives_no_failure(name: str) -> None:
    text = path(name).read_text(encoding="utf-8", errors="replace")
    # The files of sections hold the same GPU idle and at work.
    parts = [SECTION + part for part in text.split(SECTION)[1:]] or [text]
    for part in parts:
        found = judge(part)
        assert not [code for code, r in found.items() if r.outcome in ("fail", "could-not-run")]
        assert {code for code, r in found.items() if r.outcome == "warn"} == WARNINGS[name]
        assert found["GPU-001"].outcome == "pass"
