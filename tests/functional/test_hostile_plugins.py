"""Plug-ins that exit, hang, print or break Python: their checks could not run, and no other changes."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from processes import ran
from pythons import put_distribution

from envcheck.facts import snapshot as snapshots

REPOSITORY = Path(__file__).resolve().parents[2]
DEMO = REPOSITORY / "envcheck" / "data" / "demos" / "blind-tensorflow.json"

HEAD = """
from envcheck.checks.registry import Area, check
from envcheck.findings.causes import Cause, Finding
from envcheck.findings.model import Passed

AREA = Area(name="{name}", title="Fans", position=200)
"""
CHECK = """

@check("{prefix}-00{0}", title="Fan {0}", about="Dust.", sources=["ACME"])
def fan_{0}(view):
    {1}
"""
FAILS = 'yield Cause("still", "fail", "a fan stands still", "Fan 3 stands still.").found()'

TURNS = 'yield Passed("turns")'

# What the second of three checks does. The third one finds a fault.
HANGS = "import time; time.sleep(3600)"
IN_A_CHECK = {
    "sys.exit": "import sys; sys.exit(0)",
    "os._exit": "import os; os._exit(0)",
    "SystemExit": "raise SystemExit",
    "KeyboardInterrupt": "raise KeyboardInterrupt",
    "GeneratorExit": "raise GeneratorExit",
    "raises": "raise ValueError('no fan')",
    "raises what cannot be shown": "raise type('E', (Exception,), {'__str__': lambda self: 1 / 0})",
    "recursion": "def f(): f()\n    f()",
    "a number": "yield 5",
    "a text": "yield 'Passed'",
    "no list": "return 5",
    "a wrong level": "yield Cause('still', 'faill', 'x', 'x').found()",
    "a wrong type": "yield Cause('still', 'fail', 'x', 5).found()",
    "reads attributes": "yield Cause('still', 'fail', 'x', '{x.__class__}').found(x=1)",
    "pads": "yield Cause('still', 'fail', 'x', '{x:>999999999}').found(x=1)",
    "lacks a parameter": "yield Finding(Cause('still', 'fail', 'x', '{x}'))",
    "no JSON": "yield Passed(object())",
    "a surrogate": "yield Passed('\\udcff')",
    "much": "yield Passed('x' * (40 << 20))",
    "endless": "while True: yield Passed('x')",
    "no descriptors": "import os; os.closerange(0, 4096)",
    "kills itself": "import os; os.kill(os.getpid(), 9)",
    "floods": "import os\n    while True: os.write(2, b'x' * (1 << 20))",
    "no builtins": "import builtins\n    for n in ('list', 'isinstance', 'type', 'len'):"
    " setattr(builtins, n, None)",
    "JSON replaced": "import json, msgspec\n    json.dumps = msgspec.json.encode = lambda *a, **k: '{}'"
    "\n    raise ValueError",
    "verdicts replaced": "import envcheck.findings.model as m\n    m.Finding = m.Passed = int\n    yield 5",
}
# These end the process that would have asked the other checks, too: all checks of the plug-in are lost.
WORSE = {
    "kills its parent": "import os, signal, time; os.kill(os.getppid(), 9); time.sleep(3600)",
    "kills its group": "import os; os.killpg(0, 9)",
}
# Here nothing is lost: the check says what it says, and is believed.
HARMLESS = {
    "prints": "print('{}'); import sys; sys.stdout.flush(); sys.stdout = None",
    "prints in C": "import os; os.write(1, b'{}\\n'); os.system('echo {}')",
    "closes stdout": "import os; os.close(1)",
    "other folder": "import os; os.chdir('/'); os.environ.clear()",
    "forks": "import os; os.fork()",
    "leaves a process": "import os, time\n    if not os.fork(): os.setsid(); time.sleep(3600)",
}
AT_IMPORT = {
    "sys.exit": "import sys; sys.exit(0)",
    "os._exit": "import os; os._exit(0)",
    "KeyboardInterrupt": "raise KeyboardInterrupt",
    "raises": "raise ValueError('no fan')",
    "kills its parent": "import os, time; os.kill(os.getppid(), 9); time.sleep(3600)",
    "prints": "print('{}')",
    "no builtins": "import builtins; builtins.len = builtins.list = None",
}


# After these, Python does no more in that process.
BROKEN_FOR_GOOD = ("no builtins", "verdicts replaced", "JSON replaced", "no descriptors")
FORMATS = {
    "exits": ("import sys; sys.exit(0)", 4),
    "exits_hard": ("import os; os._exit(0)", 4),
    "exits_hard_at_import": ("import os; os._exit(0)", 4),
    "kills": ("import os, time; os.kill(os.getppid(), 9); time.sleep(3600)", 4),
    "says_nothing": ("return None", 4),
    "prints": ("print('{}')\n    return report.status", 1),
    "changes_it": ("report.results.clear(); report.headlines.clear(); return report.status", 1),
}
ALL = {
    **{f"check: {name}": (body, "") for name, body in IN_A_CHECK.items()},
    **{f"worse: {name}": (body, "") for name, body in WORSE.items()},
    **{f"harmless: {name}": (f"{body}\n    {TURNS}", "") for name, body in HARMLESS.items()},
    **{f"import: {name}": (TURNS, body) for name, body in AT_IMPORT.items()},
    "area: xla": (TURNS, ""),
}
Results = dict[str, dict[str, Any]]


def plugin(folder: Path, name: str, source: str, group: str = "checks", more: str = "") -> None:
    """A package acme-NAME with an entry point NAME."""
    (folder / f"acme_{name}.py").write_text(source)
    entry_points = f"[envcheck.{group}]\n{name} = acme_{name}{more}\n"
    put_distribution(folder, f"acme-{name}", "1.2", entry_points=entry_points)


def checks(name: str, second: str, area: str = "") -> str:
    """Three checks: one passes, one does ``second``, one finds a fault."""
    source = HEAD.replace("{name}", area or name)
    for number, body in enumerate((TURNS, second, FAILS), 1):
        source += CHECK.replace("{0}", str(number)).replace("{1}", body)
    return source.replace("{prefix}", name.upper())


def doctor(folder: Path, *arguments: str | Path, limit: float = 500.0) -> CompletedProcess[str]:
    """The doctor, on a machine with a fault, beside the plug-ins in the folder."""
    code = (
        "import sys; from envcheck.plugins import apart; from envcheck.__main__ import main;"
        f"apart.LIMIT = {limit}; apart.BUDGET = 500.0; sys.exit(main())"
    )
    return ran(
        [sys.executable, "-c", code, "doctor", "--from", DEMO, *arguments],
        env={**os.environ, "PYTHONPATH": os.fspath(folder)},
        text=True,
        timeout=1000,
    )


def read(done: CompletedProcess[str]) -> Results:
    assert "Traceback" not in done.stderr and "internal error" not in done.stderr, done.stderr
    return {result["code"]: result for result in json.loads(done.stdout)["results"]}


def others(results: Results) -> Results:
    return {
        code: result
        for code, result in results.items()
        if code != "PLG-001" and not code.startswith("FAN")
    }


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """What the doctor says without a plug-in."""
    found = read(doctor(tmp_path_factory.mktemp("none"), "--format", "json"))
    assert found["PLG-001"]["outcome"] == "skipped"
    return others(found)


@pytest.fixture(scope="module")
def names() -> dict[str, str]:
    return {name: f"fan{number}" for number, name in enumerate(ALL)}


@pytest.fixture(scope="module")
def results(
    tmp_path_factory: pytest.TempPathFactory, names: dict[str, str], usual: Results
) -> Results:
    """One look with all of them installed at once."""
    folder = tmp_path_factory.mktemp("all")
    for name, (second, at_import) in ALL.items():
        area = "xla" if name == "area: xla" else ""
        plugin(folder, names[name], checks(names[name], second, area) + at_import)
    done = doctor(folder, "--format", "json")
    found = read(done)
    assert others(found) == usual
    assert done.returncode == 1 and done.stderr == ""
    return found


def outcomes(results: Results, name: str) -> list[str]:
    return [results[f"{name.upper()}-00{number}"]["outcome"] for number in (1, 2, 3)]


@pytest.mark.parametrize("name", IN_A_CHECK)
def test_a_check_that_misbehaves_could_not_run(
    name: str, results: Results, names: dict[str, str]
) -> None:
    plug_in = names[f"check: {name}"]
    first, second, third = outcomes(results, plug_in)
    assert (first, second) == ("pass", "could-not-run")
    assert third == "fail" or (name in BROKEN_FOR_GOOD and third == "could-not-run")
    result = results[f"{plug_in.upper()}-002"]
    assert f"the plug-in {plug_in} of acme-{plug_in}" in result["reason"]
    assert "envcheck's own" not in json.dumps(result)


@pytest.mark.parametrize("name", WORSE)
def test_a_check_that_ends_more_than_itself(
    name: str, results: Results, names: dict[str, str]
) -> None:
    plug_in = names[f"worse: {name}"]
    assert outcomes(results, plug_in) == ["could-not-run"] * 3
    for number in (1, 2, 3):
        reason = results[f"{plug_in.upper()}-00{number}"]["reason"]
        assert f"the plug-in {plug_in} of acme-{plug_in}" in reason


@pytest.mark.parametrize("name", HARMLESS)
def test_output_and_processes_of_a_check_spoil_nothing(
    name: str, results: Results, names: dict[str, str]
) -> None:
    assert outcomes(results, names[f"harmless: {name}"]) == ["pass", "pass", "fail"]


@pytest.mark.parametrize("name", AT_IMPORT)
def test_a_plug_in_that_cannot_be_imported(
    name: str, results: Results, names: dict[str, str]
) -> None:
    plug_in = names[f"import: {name}"]
    if name == "prints":
        assert outcomes(results, plug_in) == ["pass", "pass", "fail"]
        return
    assert f"{plug_in.upper()}-001" not in results
    assert results["PLG-001"]["outcome"] == "could-not-run"
    assert f"{plug_in} (envcheck.checks) of acme-{plug_in} " in results["PLG-001"]["reason"]


def test_what_hangs_is_given_up(tmp_path: Path, usual: Results) -> None:
    plugin(tmp_path, "fana", checks("fana", HANGS))
    plugin(tmp_path, "fanb", checks("fanb", TURNS) + HANGS)
    plugin(tmp_path, "fanc", f"def render(report): {HANGS}", "reports", ":render")
    done = doctor(tmp_path, "--format", "json", limit=10.0)
    found = read(done)
    assert others(found) == usual and done.returncode == 1
    assert found["FANA-002"]["outcome"] == found["PLG-001"]["outcome"] == "could-not-run"
    assert "did not come back" in found["FANA-002"]["reason"]
    assert "did not come back" in found["PLG-001"]["reason"]
    done = doctor(tmp_path, "--format", "fanc", "--only", "host", limit=1.0)
    assert (done.returncode, done.stdout) == (4, "") and "did not come back" in done.stderr


@pytest.mark.parametrize("group", ["probes", "stacks"])
def test_a_package_around_a_probe_or_stack_is_not_imported(
    group: str, tmp_path: Path, usual: Results
) -> None:
    plugin(tmp_path, "fan", "", group, ".inner")
    (tmp_path / "acme_fan.py").unlink()
    inner = tmp_path / "acme_fan" / "inner"
    inner.mkdir(parents=True)
    for package in (inner, inner.parent):
        (package / "__init__.py").write_text("import os; os._exit(0)")
    done = doctor(tmp_path, "--format", "json")
    assert others(read(done)) == usual and done.returncode == 1


def test_report_formats_that_misbehave(tmp_path: Path, usual: Results) -> None:
    for name, (body, _code) in FORMATS.items():
        source = f"def render(report):\n    {body}\n"
        if name.endswith("at_import"):
            source = f"{body}\ndef render(report): return 'fine'\n"
        plugin(tmp_path, name, source, "reports", ":render")
    assert others(read(doctor(tmp_path, "--format", "json"))) == usual
    for name, (_body, code) in FORMATS.items():
        done = doctor(tmp_path, "--format", name, "--only", "libraries")
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr and len(done.stderr.splitlines()) == (code == 4)
        assert done.stdout == ("" if code == 4 else "broken")


def test_the_snapshot_that_a_check_sees_is_the_whole_one(tmp_path: Path) -> None:
    plugin(
        tmp_path,
        "fan",
        checks("fan", "yield Cause('still', 'fail', 'x', '{x}').found(x=repr(view.snapshot))"),
    )
    found = read(doctor(tmp_path, "--format", "json"))["FAN-002"]["findings"][0]["message"]
    assert found == repr(snapshots.load(DEMO.read_bytes()))
