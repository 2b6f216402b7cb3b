"""KRN-008: what the log's Xids and SXids say, which of them are one problem, and which are over."""

from __future__ import annotations

from typing import Any

import h100
import pytest
from judged import commands, results
from kernel_machines import ABSENT, ADDRESS, BARE, event, healthy, judge, only
from msgspec.structs import replace

from envcheck.data.kernel import xids
from envcheck.facts.kernel import KernelEvent
from envcheck.findings.model import CheckResult


def xid(code: int, text: str = "", **more: Any) -> KernelEvent:
    words = text or f"NVRM: Xid (PCI:{ADDRESS}): {code}, pid=7"
    return event(words, "xid", xid=code, pci_address=ADDRESS, seconds=99.6, **more)


def advice(before: str, after: str) -> KernelEvent:
    words = f"GPU recovery action changed from 0x0 ({before}) to 0x1 ({after})"
    return xid(154, f"NVRM: Xid (PCI:{ADDRESS}): 154, {words}")


def logged(*log: KernelEvent, **gpu: Any) -> CheckResult:
    """The check on a machine with this log, whose GPUs have these facts."""
    return judge(healthy([h100.gpu(n, **gpu) for n in range(h100.COUNT)], log=[*log]), "KRN-008")


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (13, "warn"),
        (43, "pass"),
        (48, "fail"),
        (64, "fail"),
        (74, "fail"),
        (92, "warn"),
        (94, "warn"),
        (95, "fail"),
        (119, "fail"),
        (143, "fail"),
        (149, "fail"),
        (157, "fail"),
        (161, "fail"),
    ],
)
def test_xids_by_code(code: int, outcome: str) -> None:
    result = logged(xid(code, count=3))
    assert result.outcome == outcome
    if outcome == "pass":
        assert f"Xid {code}" in result.detail
    else:
        finding = only(result, outcome)
        assert f"Xid {code}, 3 times" in finding.message
        assert finding.subject == f"GPU 3 NVIDIA H100 80GB HBM3 at {ADDRESS}"
        assert "100 s after boot" in finding.evidence[0].value


NVLINK = f"NVRM: Xid (PCI:{ADDRESS}): %s XC0 i0 Link 13 (%s %s 0x00000000 0x00000000)"


@pytest.mark.parametrize(
    ("code", "words", "information", "status", "outcome", "remedy"),
    [
        (145, "RLW_RXPIPE Nonfatal", "0x00000006", "0x00000001", "warn", "ask the vendor"),
        (145, "RLW_REMAP Nonfatal", "0x00000004", "0x00000100", "pass", ""),
        (145, "RLW_REMAP Nonfatal", "0x00000004", "0x00000004", "warn", "Xid 154 beside it"),
        (145, "RLW_REMAP Fatal", "0x00000004", "0x00000040", "fail", "reset it"),
        (149, "NETIR_LINK_EVT Fatal", "0x025001c6", "0x00000000", "fail", "other end"),
        (149, "NETIR_LINK_EVT Fatal", "0x026001c6", "0x00000000", "warn", "took the link down"),
        (145, "RLW_NEW Nonfatal", "0x00000006", "0x00000001", "warn", "reset them together"),
        (145, "RLW_NEW Fatal", "0x00000006", "0x00000001", "fail", "reset them together"),
    ],
)
def test_nvlink_xids_by_unit_event_and_status(
    code: int, words: str, information: str, status: str, outcome: str, remedy: str
) -> None:
    text = NVLINK % (f"{code}, {words}", information, status)
    result = logged(xid(code, text))
    assert result.outcome == outcome
    if outcome != "pass":
        found = only(result, outcome).remedy
        assert found is not None and remedy in found.text


@pytest.mark.parametrize(
    ("codes", "key", "level"),
    [
        ((48, 63, 94), "memory-contained", "warn"),
        ((48, 63, 171), "memory-not-contained", "fail"),
        ((48, 94, 95), "memory-not-contained", "fail"),
        ((48, 64, 94), "memory-not-replaceable", "fail"),
        ((48, 64, 154), "memory-not-replaceable", "fail"),  # the recovery that it asks for
        ((48,), "xid-48", "fail"),
    ],
)
def test_xids_of_one_memory_error_are_one_problem(
    codes: tuple[int, ...], key: str, level: str
) -> None:
    log = [advice("None", "GPU Reset Required") if code == 154 else xid(code) for code in codes]
    finding = only(logged(*log, remap_pending=ABSENT, recovery_action=ABSENT), level)
    assert finding.cause.key == key and len(finding.evidence) == len(codes)
    assert commands(finding).startswith("sudo nvidia-bug-report.sh")


def test_an_xid_that_came_back_after_a_reset_asks_for_a_replacement() -> None:
    load = event("NVRM: loading NVIDIA UNIX", "driver-load")
    once, again = only(logged(load, xid(119))), only(logged(xid(119), load, xid(119)))
    assert "--gpu-reset" in commands(once) and "--gpu-reset" not in commands(again)
    assert again.remedy is not None and "RMA" in again.remedy.text
    assert "again after a reset" in again.message


@pytest.mark.parametrize(
    ("count", "other", "alone"), [(5, 31, False), (5, 43, True), (4, 43, False)]
)
def test_page_faults_on_one_gpu_alone(count: int, other: int, alone: bool) -> None:
    elsewhere = replace(xid(other), pci_address=h100.ADDRESSES[0])
    found = logged(xid(31, count=count), elsewhere).findings
    keys = [finding.cause.key for finding in found]
    assert ("xid-on-one-gpu" in keys) == alone
    assert "xid-31" in keys or alone


def test_a_remapped_row_is_over_once_the_gpu_was_reset() -> None:
    assert logged(xid(63), remap_pending=ABSENT).outcome == "warn"


def test_an_xid_that_nobody_knows_is_seen() -> None:
    finding = only(logged(xid(9999, count=2)), "warn")
    assert finding.message.startswith("Xid 9999, 2 times") and ADDRESS in finding.subject


def test_xid_154_that_is_over_or_that_the_gpu_tells_itself_is_mentioned() -> None:
    done = [advice("None", "GPU Reset Required"), advice("GPU Reset Required", "None")]
    assert logged(*done).outcome == "pass"
    assert logged(done[0], recovery_action="None").outcome == "pass"


def test_nvswitch_errors() -> None:
    text = "nvidia-nvswitch3: SXid (PCI:0000:04:00.0): 22013, Non-fatal, Link 44 Minion"
    quiet = event(text, "sxid", xid=22013, pci_address="0000:04:00.0", count=500)
    assert logged(quiet).outcome == "pass"
    loud = replace(quiet, text=text.replace("Non-fatal", "Fatal"))
    assert only(logged(quiet, loud)).subject == "NVSwitch 0000:04:00.0"


def test_the_table_of_xids_is_complete() -> None:
    table = xids()
    assert {13, 31, 43, 45, 48, 61, 62, 63, 64, 69, 74, 79, 92, 94, 95, 119, 120, 140, 143} <= set(
        table
    )
    assert set(range(1, 173)) <= set(table)
    for row in table.values():
        assert row.severity in ("fail", "warn", "info")
        assert row.nonfatal_severity in ("", "fail", "warn", "info")
        assert row.action in ("reset", "reboot", "off", "report", "")
        assert row.meaning
        assert row.remedy
        assert "NVIDIA" in row.source
        assert not row.meaning.endswith(".")
    assert {table[code].severity for code in (13, 31, 69)} == {"warn"}  # an application's faults
    assert {table[code].severity for code in (43, 45)} == {"info"}  # what follows from them
    known_facts = {name for row in table.values() for name in row.settled_by + row.shown_by}
    assert known_facts <= set(h100.gpu().__struct_fields__)


@pytest.mark.parametrize(("hypervisor", "words"), [("kvm", True), (ABSENT, False)])
def test_in_a_virtual_machine_the_board_is_the_providers(hypervisor: Any, words: bool) -> None:
    gpus = [h100.gpu(n, remap_failed=n == h100.VICTIM) for n in range(h100.COUNT)]
    found = healthy(gpus, replace(BARE, hypervisor=hypervisor))
    (finding,) = results(found, ("gpu",))["GPU-003"].findings
    assert finding.remedy is not None
    assert ("tell its provider" in finding.remedy.text) is words
