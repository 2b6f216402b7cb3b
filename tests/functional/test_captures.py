"""nvidia-smi output of machines that are not ours: healthy ones are called healthy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli import envcheck

CAPTURES = Path(__file__).resolve().parents[2] / ".." / "shared" / "captures"
FILES = sorted(p for p in CAPTURES.glob("nvidia-smi-*/*") if p.suffix in (".xml", ".txt"))


def test_the_captures_are_there() -> None:
    if not CAPTURES.is_dir():
        pytest.skip("there is no ../shared/captures beside this checkout")
    assert len(FILES) == 15


@pytest.mark.parametrize("file", FILES, ids=lambda p: p.stem)
def test_a_machine_that_worked_has_no_failure(file: Path, tmp_path: Path) -> None:
    snapshot = tmp_path / "machine.json"
    collected = envcheck("collect", "--nvidia-smi", file, "--output", snapshot)
    assert collected.returncode == 0, collected.stderr
    result = envcheck("doctor", "--from", snapshot, "--format", "json")
    report = json.loads(result.stdout)
    by_name = {r["code"]: r for r in report["results"]}
    assert result.returncode == 0, [r for r in by_name.values() if r["outcome"] == "fail"]
    assert not [c for c, r in by_name.items() if r["outcome"] in ("fail", "could-not-run")]
    # It knows GPUs, and nothing of the rest of the machine: that is skipped, and not passed.
    assert by_name["GPU-001"]["outcome"] == "pass"
    for code, check in by_name.items():
        if code.startswith(
            ("HOST-", "PCI-", "KRN-", "CTR-", "PKG-", "LIB-", "FRM-", "CFG-", "ENV-")
        ):
            assert check["outcome"] == "skipped", code
    assert envcheck("doctor", "--from", snapshot).returncode == 0


def test_a_fault_in_the_document_itself_is_found(tmp_path: Path) -> None:
    if not FILES:
        pytest.skip("there is no ../shared/captures beside this checkout")
    healthy = (CAPTURES / "nvidia-smi-xml" / "a100-sxm4-v12.xml").read_text()
    faulty = healthy.replace(
        "<clocks_event_reason_hw_thermal_slowdown>Not Active<",
        "<clocks_event_reason_hw_thermal_slowdown>Active<",
    )
    assert faulty != healthy
    sent, snapshot = tmp_path / "sent.xml", tmp_path / "machine.json"
    sent.write_text(faulty)
    assert envcheck("collect", "--nvidia-smi", sent, "--output", snapshot).returncode == 0
    result = envcheck("doctor", "--from", snapshot, "--format", "json")
    failed = [r["code"] for r in json.loads(result.stdout)["results"] if r["outcome"] == "fail"]
    assert (result.returncode, failed) == (1, ["GPU-008"])


SENT = """\
Hi, here it is:
$ nvidia-smi -q
==============NVSMI LOG==============
Driver Version                            : 550.54.15
CUDA Version                              : 12.4
Attached GPUs                             : 1
GPU 00000000:1B:00.0
    Product Name                          : NVIDIA H100 80GB HBM3
    ECC Errors
        Volatile
            SRAM Uncorrectable            : 0
            DRAM Uncorrectable            : 3
    Processes                             : None
"""


@pytest.mark.parametrize("how", ["file", "stdin"])
def test_what_somebody_pasted_needs_no_snapshot(how: str, tmp_path: Path) -> None:
    sent = tmp_path / "mail.txt"
    sent.write_text(SENT)
    where, given = (str(sent), b"") if how == "file" else ("-", SENT.encode())
    result = envcheck("doctor", "--from", where, "--format", "json", stdin=given)
    failed = [r["code"] for r in json.loads(result.stdout)["results"] if r["outcome"] == "fail"]
    assert (result.returncode, failed) == (1, ["GPU-002"]), result.stderr


def test_a_pasted_document_says_which_releases_fit_its_gpu(tmp_path: Path) -> None:
    sent = tmp_path / "mail.txt"
    sent.write_text(SENT)
    output = envcheck(
        "releases", "nvidia-tf1", "--from", sent, "--format", "json", "--all"
    ).stdout.decode()
    assert "compute capability 9.0" in output
    assert "compute capability of" not in output


def test_an_error_somebody_pasted_is_judged(tmp_path: Path) -> None:
    sent = tmp_path / "mail.txt"
    sent.write_text("> Failed to initialize NVML: Driver/library version mismatch\n")
    result = envcheck("doctor", "--from", sent)
    assert result.returncode == 1 and b"different versions" in result.stdout, result.stdout
