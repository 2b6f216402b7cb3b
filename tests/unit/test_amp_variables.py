"""AMP's variables: each state of ACC-002, its tie to ENV-014, and how a build's own names are read."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from amp_graph_runs import bad, judged, run, seen, sessions, step, words
from targets import tensorflow

from envcheck.checks.engine import diagnose
from envcheck.collector.systems.shared.amp import tensorflow_words
from envcheck.facts.target import Environment
from envcheck.findings.model import CheckResult

CODE = "ACC-002"
AMP = "TF_ENABLE_AUTO_MIXED_PRECISION"
REWRITE = f"{AMP}_GRAPH_REWRITE"
SCALING = f"{AMP}_LOSS_SCALING"
NVIDIA: dict[str, Any] = {"version": "1.15.5+nv22.12"}
CPU: dict[str, Any] = {"device": "cpu", "gpus": []}


def reason(result: CheckResult) -> str:
    return result.reason + " ".join(one.reason for one in result.unjudged)


def alone(half: int = 5, asked: str = f"{AMP}=1", scaled: bool = True) -> Any:
    """The process in which the variable alone asks."""
    return step("variable", half, asked=[asked], loss_scaling=scaled)


@pytest.mark.parametrize("name", [AMP, REWRITE, SCALING])
@pytest.mark.parametrize(
    ("version", "way"),
    [
        ("2.15.1", "mixed_float16"),
        ("1.15.5", "enable_mixed_precision_graph_rewrite"),
        ("1.12.0", "container"),
    ],
)
def test_variable_that_the_build_does_not_know_is_named(name: str, version: str, way: str) -> None:
    result = judged(CODE, words((), (f"{name}=1",)), *sessions(), version=version)
    assert result.outcome == "fail"
    (finding,) = result.findings
    assert f"{name}=1 does nothing in TensorFlow {version}" in finding.message
    assert finding.headline == f"{name} is set, and TensorFlow {version} does not know it"
    assert finding.remedy is not None and way in finding.remedy.text
    assert [one.name for one in finding.subjects] == [name]


def test_all_unknown_variables_are_in_one_finding() -> None:
    result = judged(CODE, words((), (f"{AMP}=1", f"{REWRITE}=true")), *sessions())
    (finding,) = result.findings
    assert f"{AMP}=1, {REWRITE}=true does nothing" in finding.message
    assert finding.remedy is not None
    assert finding.remedy.commands == [f"unset {AMP}", f"unset {REWRITE}"]


def test_variable_that_is_off_asks_for_nothing() -> None:
    result = judged(CODE, words((), (f"{AMP}=0", f"{REWRITE}=")), *sessions())
    assert result.outcome == "skipped"
    assert "no AMP variable is set, and this build knows none" in reason(result)


def test_switches_of_the_rewrite_are_no_variables_that_ask() -> None:
    switch = "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_LEVEL=1"
    assert judged(CODE, words((), (switch,)), *sessions()).outcome == "skipped"


def test_library_that_was_not_found_says_nothing_of_what_is_known() -> None:
    result = judged(CODE, words((), (f"{AMP}=1",), rewrite_found=False), *sessions())
    assert result.outcome == "could-not-run" and "was not found" in reason(result)


def test_nothing_was_read() -> None:
    result = judged(CODE, bad("variables", "error", "OSError: no"), *sessions())
    assert result.outcome == "could-not-run" and "OSError" in reason(result)
    assert judged(CODE, *sessions()).outcome == "could-not-run"


@pytest.mark.parametrize("are_set", [(), (f"{AMP}=1",)])
def test_variable_that_engages(are_set: tuple[str, ...]) -> None:
    result = judged(CODE, words((AMP, REWRITE), are_set), *sessions(), alone(), **NVIDIA)
    assert result.outcome == "pass"
    assert f"{AMP}=1: 5 of 5 convolutions" in result.detail
    assert "with loss scaling" in result.detail


def test_rewrite_without_loss_scaling_is_told() -> None:
    one = alone(asked=f"{REWRITE}=1", scaled=False)
    result = judged(CODE, words((AMP, REWRITE), (f"{REWRITE}=1",)), *sessions(), one, **NVIDIA)
    assert result.outcome == "pass" and "without loss scaling" in result.detail


def test_clash_with_a_wrapped_optimizer_is_told() -> None:
    clash = bad("session", "error", "RuntimeError: the variable asks for it already")
    off = step("session off", control=True)
    result = judged(CODE, words((AMP,), (f"{AMP}=1",)), clash, off, alone(), **NVIDIA)
    assert result.outcome == "pass" and "RuntimeError" in result.detail
    calm = judged(CODE, words((AMP,), (f"{AMP}=1",)), *sessions(), alone(), **NVIDIA)
    assert "RuntimeError" not in calm.detail


@pytest.mark.parametrize("refused", [True, False])
def test_variable_that_is_known_and_does_nothing(refused: bool) -> None:
    made = words((AMP,), (f"{AMP}=1",), no_effect=refused)
    result = judged(CODE, made, *sessions(), alone(0), version="2.6.0")
    assert result.outcome == "fail"
    assert "has no effect" in result.findings[0].message
    remedy = result.findings[0].remedy
    assert remedy is not None and "mixed_float16" in remedy.text


def test_build_that_gave_it_up_harms_nobody_who_does_not_ask() -> None:
    result = judged(CODE, words((AMP,), no_effect=True), *sessions(), alone(0), version="2.6.0")
    assert result.outcome == "skipped" and "no effect" in reason(result)
    result = judged(CODE, words((AMP,)), *sessions(), alone(0), version="2.6.0")
    assert result.outcome == "skipped" and "would do nothing" in reason(result)


def test_one_variable_overrules_the_other() -> None:
    are_set = (f"{AMP}=1", f"{REWRITE}=0")
    result = judged(CODE, words((AMP, REWRITE), are_set), *sessions(), alone(0), **NVIDIA)
    assert result.outcome == "warn"
    (finding,) = result.findings
    assert finding.remedy is not None and finding.remedy.commands == [f"unset {REWRITE}"]


def test_old_gpu_is_not_applicable() -> None:
    made = words((AMP,), (f"{AMP}=1",), compute_capability="6.1")
    assert judged(CODE, made, *sessions(0), alone(0), **NVIDIA).outcome == "skipped"


def test_no_gpu_could_not_run() -> None:
    result = judged(CODE, words((AMP,), (f"{AMP}=1",)), *sessions(0), **NVIDIA, **CPU)
    assert result.outcome == "could-not-run" and "no GPU" in reason(result)


@pytest.mark.parametrize(
    "one", [bad("variable", "error", "its process died"), alone(5, f"{AMP}=1")]
)
def test_process_without_an_answer_or_a_control(one: Any) -> None:
    result = judged(CODE, words((AMP,), (f"{AMP}=1",)), one, **NVIDIA)
    assert result.outcome == "could-not-run"


def test_one_thing_is_told_once() -> None:
    """What facts alone say is a consequence of what the build itself says."""
    snap = seen(
        run(words((), (f"{AMP}=1",)), *sessions()),
        environment=Environment(variables={AMP: "1"}),
        tensorflow=tensorflow(version="2.15.1"),
    )
    results = {one.code: one for one in diagnose(snap).results}
    assert results[CODE].outcome == "fail" and not results[CODE].consequence_of
    assert results["ENV-014"].consequence_of == CODE


# The names in a build


def elf(*strings: bytes, section: bytes = b".rodata") -> bytes:
    """A shared object with these strings in a section of constants, and nothing else."""
    data = b"\0".join(strings) + b"\0"
    names = b"\0" + section + b"\0.shstrtab\0"
    head, at_names = 64, 64 + len(data)
    at_sections = at_names + len(names)
    rows = [
        (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        (1, 1, 2, 0, head, len(data), 0, 0, 1, 0),
        (2 + len(section), 3, 0, 0, at_names, len(names), 0, 0, 1, 0),
    ]
    identity = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", identity, 3, 62, 1, 0, 0, at_sections, 0, 64, 0, 0, 64, len(rows), 2
    )
    return header + data + names + b"".join(struct.pack("<IIQQQQIIQQ", *row) for row in rows)


def test_whole_strings_are_read(tmp_path: Path) -> None:
    library = tmp_path / "lib.so"
    library.write_bytes(elf(b"other", REWRITE.encode(), b"x" * 50, b"ask TF_" + AMP.encode()))
    found = tensorflow_words.strings(str(library))
    assert found == {REWRITE.encode(), b"ask TF_" + AMP.encode()}


def test_strings_elsewhere_do_not_count(tmp_path: Path) -> None:
    library = tmp_path / "lib.so"
    library.write_bytes(elf(AMP.encode(), section=b".debug_str"))
    assert tensorflow_words.strings(str(library)) == set()


@pytest.mark.parametrize("cut", [0, 4, 30, 64, 90, 140, 200])
def test_library_that_is_cut_off_is_an_error_or_nothing(tmp_path: Path, cut: int) -> None:
    library = tmp_path / "lib.so"
    library.write_bytes(elf(AMP.encode())[:cut])
    with pytest.raises((OSError, ValueError, struct.error)):
        tensorflow_words.strings(str(library))


def test_end_of_a_section_ends_the_search(tmp_path: Path) -> None:
    data = bytearray(elf(AMP.encode()))
    at_sections = int.from_bytes(data[40:48], "little")
    data[at_sections + 64 + 32 : at_sections + 64 + 40] = (1 << 40).to_bytes(8, "little")  # size
    library = tmp_path / "lib.so"
    library.write_bytes(bytes(data))
    assert tensorflow_words.strings(str(library)) == {AMP.encode()}


def test_what_is_set_is_told_with_the_switches_of_the_rewrite() -> None:
    switch = "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_LEVEL"
    environ = {"PATH": "/bin", AMP: "1", switch: "2", "TF_ENABLE_AUTO_MIXED_PRECISION_OTHER": "1"}
    assert tensorflow_words.are_set(environ) == [f"{AMP}=1", f"{switch}=2"]
    (long,) = tensorflow_words.are_set({AMP: "1" * 5000})
    assert len(long) < 200
