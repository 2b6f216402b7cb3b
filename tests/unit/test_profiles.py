"""Profiles: what is written of a machine can be read, and the machine fits it; mistakes name their place."""

from __future__ import annotations

from pathlib import Path

import demos
import msgspec
import pytest
from build import document
from captures import H100_MIG, H200, RTX_4080, path
from h100 import NOT_SUPPORTED, VICTIM, gpu, machine, with_fault
from judged import full_text
from whole import whole

from envcheck.attributes import profile_reading as reading
from envcheck.attributes import profile_writing as writing
from envcheck.attributes.bounds import fits
from envcheck.checks.engine import diagnose
from envcheck.checks.registry import all_checks
from envcheck.cli.main import run
from envcheck.collector.smi.document import read_file
from envcheck.exit_codes import UsageError
from envcheck.facts.gpu import NvidiaSmi
from envcheck.facts.host import Host
from envcheck.facts.profile import Profile
from envcheck.facts.snapshot import SCHEMA, Snapshot, load
from envcheck.facts.view import SnapshotView
from envcheck.findings.model import CheckResult

CODES = [check.code for check in all_checks() if check.area == "expected"]


def held(snapshot: Snapshot, profile: Profile | str | None) -> dict[str, CheckResult]:
    wanted = reading.parse(profile, "lab.toml") if isinstance(profile, str) else profile
    checks = [check for check in all_checks() if check.area == "expected"]
    return {r.code: r for r in diagnose(snapshot, checks=checks, profile=wanted).results}


def capture(name: str) -> Snapshot:
    facts = msgspec.convert(read_file(str(path(name))), NvidiaSmi)
    seen = msgspec.structs.replace(document(nvidia_smi=facts), origin="nvidia-smi")
    return Snapshot(schema=SCHEMA, redacted=True, machine=seen)


@pytest.mark.parametrize("name", [*demos.DEMOS, "whole", H200, H100_MIG, RTX_4080])
def test_a_machine_fits_its_own_profile(name: str) -> None:
    if name in demos.DEMOS:
        snapshot = load(demos.build(name))
    else:
        snapshot = whole() if name == "whole" else capture(name)
    text = writing.write(SnapshotView(snapshot), [])
    found = held(snapshot, text)
    assert {r.outcome for r in found.values()} <= {"pass", "skipped"}, [
        *map(full_text, found.values())
    ]
    assert found["EXP-002"].outcome == "pass"


PROFILE = """\
[machine]
os = ["ubuntu 22.04", "ubuntu 24.04"]
memory_gib = ">= 2000"

[driver]
version = ">= 570"

[[gpus]]
name = "H100"
count = 8
nvlinks = 18
ecc = true

[tensor_cores]
proven = ["fp16"]

[packages]
torch = ">= 2.4"
"""


def test_what_is_not_as_wanted_is_told_with_what_is_and_where() -> None:
    found = held(machine(host=Host(os_id="debian", os_version="12")), PROFILE)
    (os,) = found["EXP-001"].findings
    assert os.message == (
        "The profile wants operating system ubuntu 22.04 or ubuntu 24.04 (lab.toml); here it is"
        " debian 12."
    )
    assert [gap.reason for gap in found["EXP-001"].unjudged] == [
        "memory in GiB: not in this snapshot"
    ]
    (driver,) = found["EXP-002"].findings
    assert "driver >= 570 (lab.toml); here it is 535.104.05" in driver.message
    assert driver.evidence[0].value == "535.104.05"
    assert {found[code].outcome for code in ("EXP-003", "EXP-004")} == {"pass"}
    assert found["EXP-007"].outcome == "could-not-run"
    assert found["EXP-008"].outcome == "skipped"
    assert "--target" in found["EXP-009"].reason


@pytest.mark.parametrize(
    ("code", "changes", "words"),
    [
        ("EXP-004", {"nvlinks": []}, "NVLinks 18 (lab.toml); here it is 0"),
        ("EXP-004", {"ecc_enabled": False}, "-e 1"),
        ("EXP-004", {"ecc_enabled": NOT_SUPPORTED}, "here it is not supported"),
    ],
)
def test_the_gpu_that_is_not_as_wanted_is_the_subject(
    code: str, changes: dict[str, object], words: str
) -> None:
    result = held(with_fault(**changes), PROFILE)[code]
    assert result.outcome == "fail" and words in full_text(result)
    assert [subject.index for subject in result.findings[0].subjects] == [VICTIM]


def test_gpus_are_counted_by_name() -> None:
    seven = held(machine([gpu(n) for n in range(7)]), PROFILE)["EXP-003"]
    assert "GPUs H100: 8 (lab.toml); here it is 7" in full_text(seven)
    mixed = machine([gpu(n) for n in range(7)] + [gpu(7, name="NVIDIA L4")])
    assert "no GPU of this name (lab.toml): NVIDIA L4" in full_text(held(mixed, PROFILE)["EXP-003"])
    nobody = held(machine([gpu(0, name="NVIDIA L4")]), PROFILE)["EXP-003"]
    assert nobody.outcome == "fail" and "here it is 0" in full_text(nobody)
    nothing = Snapshot(schema=SCHEMA, redacted=True, machine=document())
    unseen = held(nothing, PROFILE)
    assert {unseen[code].outcome for code in CODES} == {"could-not-run", "skipped"}
    not_wanted = ["EXP-008", "EXP-010", "EXP-011"]
    assert [code for code in CODES if unseen[code].outcome == "skipped"] == not_wanted


@pytest.mark.parametrize(
    ("wanted", "value", "kind", "good"),
    [
        ("570", "570.86.15", "version", True),
        (">= 570", "535.104.05", "version", False),
        (">= 570, < 580", "580.65.06", "version", False),
        ("<= 570", "570.86.15", "version", True),
        ("!= 570.86", "570.86.15", "version", False),
        (">= 5.15", "6.8.0-45-generic", "version", True),
        (">= 2.4", "2.10.0+cu128", "version", True),
        (">= 570", "not a version", "version", False),
        (8, 7, "number", False),
        (700, 699.9, "number", True),
        (700, 600.0, "number", False),
        ("> 8", 8, "number", False),
        ("> 8", 9, "number", True),
        ([4, 8], 8, "number", True),
        (True, False, "switch", False),
        ("default", "Default", "text", True),
        (["a", "b"], "c", "text", False),
        ("2.4.0+cu121", "2.4.0+cu118", "version", False),
        ("6.8.0-45-generic", "6.8.0-45-lowlatency", "version", False),
        ("6.8.0-45", "6.8.0-45-generic", "version", True),
        ("2.4.0rc1", "2.4.0rc12", "version", False),
    ],
)
def test_fits(wanted: object, value: object, kind: str, good: bool) -> None:
    assert fits(wanted, value, kind) is good  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[driver]\nversoin = "570"', 'lab.toml: driver.versoin: there is no key "versoin" here; did'),
        ("[driver]\nversion = 570", "lab.toml: driver.version: it must be a version in quotes"),
        ('[driver]\nversion = ">= "', "lab.toml: driver.version: it must be a version"),
        ('[[gpus]]\ncount = 8\n\n[[gpus]]\ncount = "many"',
         "lab.toml: gpus[1].count: it must be a number"),
        ('[[gpus]]\necc = "on"', "lab.toml: gpus[0].ecc: it must be true or false"),
        ("[[gpus]]\nname = []", "lab.toml: gpus[0].name: the list is empty"),
        ("[gpus]\ncount = 8", "lab.toml: gpus: it must be a table: [[gpus]]"),
        ("[gpuz]", 'lab.toml: gpuz: there is no section "gpuz"; did you mean "gpus"?'),
        ("[machine]\nos = {a = 1}", "lab.toml: machine.os: it must be a value"),
        ("[machine]\nos = 2026-01-01", "lab.toml: machine.os: it must be a value"),
        ('[tensor_cores]\nproven = ["fp64"]', 'tensor_cores.proven: "fp64" is none of tf32'),
        ("[machine]", "lab.toml: nothing is wanted in it"),
        ("a = " + "[" * 9999, "lab.toml"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence_with_its_place(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        reading.parse(text, "lab.toml")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("gone.toml", None, "No such file"),
        ("binary.toml", b"\xff\xfe\x00", "not UTF-8"),
        ("large.toml", b"#" * (reading.LIMIT + 1), "larger than 1 MiB"),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, name: str, content: bytes | None, words: str) -> None:
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UsageError, match=words):
        reading.read(str(file))


def test_written_and_held_by_the_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    healthy, odd = (str(demos.FOLDER / f"{name}.json") for name in ("healthy", "odd-machine"))
    profile = str(tmp_path / "h100.toml")
    assert run(["collect", "--as-profile", "--from", healthy, "--output", profile]) == 0
    assert capsys.readouterr().err == ""
    assert run(["doctor", "--from", healthy, "--expect", profile, "-q"]) == 0
    assert run(["doctor", "--from", odd, "--expect", profile, "--only", "EXP-004"]) == 1
    assert "NVLinks 18 (h100.toml)" in capsys.readouterr().out.replace("\n  ", " ")
    assert run(["doctor", "--from", healthy]) == 0
    assert "Profile" not in capsys.readouterr().out
