"""Other packages' probes, as real processes: whatever one does, it is a fact, and the others are there."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from processes import ran, running_commands
from pythons import need, put_distribution

from envcheck import plugins, single_file
from envcheck.facts import snapshot

HEAD = 'DOCUMENT = "machine"\nDEADLINE = 60\n'
HANG = {"hangs", "ignores", "forks"}
BODIES = {
    "good": "return {'rpm': 4200, 'where': context.read('/proc/version')[:5], 'home': '/home/ann/x'}",
    "hangs": "import time; time.sleep(60)",
    "ignores": "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)",
    "forks": "import os, time; os.fork() or os.setsid(); time.sleep(60)",
    "raises": "raise ValueError('no such fan')",
    "exits": "raise SystemExit(3)",
    "dies": "import os; os.kill(os.getpid(), 11)",
    "kills_its_parent": "import os, time; os.kill(os.getppid(), 9); time.sleep(60)",
    "floods": "import os\n    while True: os.write(1, b'x' * 65536)",
    "says_much": "return {'a': 'x' * (2 << 20)}",
    "is_deep": "d = {}\n    for _ in range(50): d = {'d': d}\n    return d",
    "is_very_deep": "d = {}\n    for _ in range(900): d = {'d': d}\n    return d",
    "is_a_list": "return [1]",
    "is_nothing": "pass",
    "is_no_json": "return {'a': object()}",
    "is_odd": "return {'nan': float('nan'), 'half': '\\udcff', 1: 1 << 70, 'serial': 123456789}",
    "prints": "print('<<<envcheck facts'); return {'a': 1}",
    "imports_ours": (
        "from envcheck.collector.facts import Facts\n"
        "    facts = Facts('a file'); facts.put('a', 1); return facts"
    ),
}
CRASHED = [
    "raises", "exits", "dies", "kills_its_parent", "floods", "says_much", "is_deep", "is_very_deep",
    "is_a_list", "is_nothing", "is_no_json",
]  # fmt: skip


def written(folder: Path) -> dict[str, Path]:
    for name, body in BODIES.items():
        head = HEAD.replace("60", "2") if name in HANG else HEAD
        (folder / f"{name}.py").write_text(f"{head}\n\ndef collect(context):\n    {body}\n")
    (folder / "broken.py").write_text("def f(:")
    (folder / "of_the_target.py").write_text(
        HEAD.replace("machine", "target")
        + "def collect(context):\n    import sys\n    return {'prefix': sys.prefix}\n"
    )
    return {path.stem: path for path in folder.glob("*.py")}


def collected(argv: list[str], **more: Any) -> snapshot.Snapshot:
    done = ran(argv, **more)
    assert done.returncode == 0, done.stderr.decode()
    return snapshot.load(done.stdout)


@pytest.mark.parametrize("how", ["beside", "in one file"])
def test_whatever_a_foreign_probe_does_is_a_fact(tmp_path: Path, how: str) -> None:
    files = written(tmp_path)
    arguments = ["--level=quick", "--target", sys.executable]
    request: dict[str, Any] = {"probes": ["host", "interpreter", *files]}
    if how == "beside":
        request["probe_files"] = {name: str(path) for name, path in files.items()}
        argv = [sys.executable, "-m", "envcheck.collector", *arguments]
        found = collected([*argv, "--request", json.dumps(request)])
    else:
        argv = [os.fspath(need(6)), "-", *arguments, "--request", json.dumps(request)]
        found = collected(argv, input=single_file.build_script(files))
    extensions = found.machine.extensions
    assert found.target is not None and found.machine.host is not None
    assert found.machine.host.outcome == "ok"
    facts = extensions["good"].facts
    assert facts == {"rpm": 4200, "where": "Linux", "home": facts and facts["home"]}
    assert "ann" not in json.dumps(facts)
    assert {n for n, p in extensions.items() if p.outcome == "timeout"} == HANG
    assert {n for n, p in extensions.items() if p.outcome == "crashed"} == set(CRASHED)
    assert all(extensions[name].reason for name in CRASHED)
    assert "no such fan" in extensions["raises"].evidence
    assert extensions["broken"].outcome == "refused"
    assert extensions["imports_ours"].facts == extensions["prints"].facts == {"a": 1}
    assert extensions["imports_ours"].sources == {"*": "a file"}
    odd = extensions["is_odd"].facts
    assert odd is not None and odd["serial"].startswith("<serial-")
    assert odd["nan"]["unavailable"] == "error" and odd["1"] == 1 << 70
    prefix = found.target.extensions["of_the_target"].facts
    below_home = sys.prefix.removeprefix(str(Path.home()))  # a home is a token in a Snapshot
    assert prefix is not None and prefix["prefix"].endswith(below_home)
    assert [name for name in BODIES if running_commands(str(tmp_path / name))] == []
    assert snapshot.load(snapshot.dump(found)) == found


def test_a_probe_that_cannot_be_found_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry_points = (
        "[envcheck.probes]\nfans = acme_fans\nmissing = no_such_module.at_all\nnvml = acme_fans\n"
        "dies = acme_dies.inner\n[envcheck.reports]\na-b = acme_fans:collect\nx = acme_fans:nothing\n"
    )
    put_distribution(tmp_path, "acme", "1", entry_points=entry_points)
    (tmp_path / "acme_fans.py").write_text("raise AssertionError('nobody imports this')")
    (tmp_path / "acme_dies").mkdir()
    (tmp_path / "acme_dies/__init__.py").write_text("raise SystemExit(1)")
    monkeypatch.syspath_prepend(tmp_path)
    plugins.entry_points.cache_clear()
    plugins._is_any_installed.cache_clear()
    monkeypatch.setattr(plugins, "_problems", set())
    try:
        assert plugins.probe_files() == {"fans": tmp_path / "acme_fans.py"}
        by_name = {p.name: p for p in plugins.all_problems()}
        assert {p.package for p in by_name.values()} == {"acme"}
        assert by_name["nvml"].reason == "envcheck itself has one of this name"
        assert by_name["missing"].reason == "there is no file of a module no_such_module.at_all"
        assert by_name["dies"].reason == "there is no file of a module acme_dies.inner"
        assert "identifier" in by_name["a-b"].reason
        assert by_name["x"].reason.startswith("AssertionError: nobody imports this")
    finally:
        plugins.entry_points.cache_clear()
        plugins._is_any_installed.cache_clear()
