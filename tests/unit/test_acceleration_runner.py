"""The runner of acceleration systems, without processes: its limits, its failures, what it names."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from children import Child, Clock
from systems import framework, gpu, system

from envcheck.collector import gpu_work, systems
from envcheck.collector.documents import document, snapshot
from envcheck.collector.main import Request
from envcheck.collector.redact import Redactor
from envcheck.collector.run import Run
from envcheck.collector.systems.running import records, runner
from envcheck.collector.worker import PythonCommand, messages
from envcheck.facts import acceleration as facts
from envcheck.facts.base import Probe
from envcheck.facts.snapshot import load

PYTHONS = {
    name: PythonCommand(name, ["python"], "/nowhere/" + name) for name in ("machine", "target")
}


def record(of: str = "", **message: Any) -> bytes:
    return messages.encode({**message, "of": of} if of else message)


def trial(name: str, **fields: Any) -> bytes:
    return record(result={"name": name, "outcome": "ok", **fields}, of="trial")


def ready(seconds: float, **facts_: Any) -> bytes:
    return record(begin={"import_seconds": seconds, **facts_})


WELL = [
    (0.5, ready(0.4)),
    (0.6, record(stage="a", of="trial")),
    (0.7, trial("a", evidence={"n": 1})),
    (0.8, record(done={})),
]


Script = Callable[[Clock], Child]


def well(clock: Clock) -> Child:
    return Child(clock, WELL, (0.8, 0))


class Made:
    """What a runner makes of systems whose processes follow scripts."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        scripts: dict[str, Script],
        found: list[systems.System],
        cores: int = 2,
        sweep: Callable[[], list[Any]] = list,
        patience: int = 1,
    ) -> None:
        monkeypatch.setattr(systems, "load", lambda: found)
        self.clock = Clock(0.1)
        self.started: list[tuple[str, Child, dict[str, Any], dict[str, str]]] = []
        self.most = 0
        self.progress: list[tuple[list[str], int, int]] = []
        machine = {"host": {"outcome": "ok", "facts": {"cpus_allowed": cores}}}
        self.documents: dict[str, Any] = {"machine": machine, "target": {"torch": framework()}}

        def start(argv: list[str], deadline: float, cwd: str, env: dict[str, str]) -> Child:
            params = msgspec.json.decode(argv[-1])
            module = params.pop("module")
            process = scripts[module](self.clock)
            self.started.append((module, process, params, env))
            assert cwd.startswith("/nowhere/") and deadline > params["seconds"]
            at_work = [one for one in self.started if one[1].result is None]
            self.most = max(self.most, len(at_work))
            return process

        asked = SimpleNamespace(
            kernels=SimpleNamespace(systems=[one.name for one in found]), pynvml=None, scratch=None
        )
        collection = SimpleNamespace(
            request=asked,
            documents=self.documents,
            python=PYTHONS,
            start=start,
            sweep=sweep,
            progress=lambda *step: self.progress.append(step),
        )
        self.runner = runner.SystemsRunner(collection, {"HOME": "/h"}, patience, self.clock)
        self.runner.run(([gpu(0)], ""), self.clock.pause)

    def runs(self, document: str = "target") -> list[facts.SystemRun]:
        section = self.documents[document]["acceleration"]
        found = msgspec.convert(section, Probe[facts.Acceleration]).facts
        assert found is not None
        return list(found.runs)


def one_run(monkeypatch: pytest.MonkeyPatch, script: Script, **options: Any) -> facts.SystemRun:
    (run,) = Made(monkeypatch, {"made": script}, [system("made", **options)]).runs()
    return run


def test_the_outcomes_are_those_of_the_snapshot() -> None:
    def words(record: type, field: str) -> set[str]:
        hints = msgspec.structs.fields(record)
        kind = next(one.type for one in hints if one.name == field)
        return set(kind.__args__)

    assert set(records.OUTCOMES) == words(facts.SystemRun, "outcome")
    assert set(records.TRIAL_OUTCOMES) == words(facts.SystemTrial, "outcome")


def test_a_system_that_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(monkeypatch, {"made": well}, [system("made", framework="torch", gpus=1)])
    (run,) = made.runs()
    assert (run.outcome, run.reason, run.device, run.framework) == ("ok", "", "gpu", "torch")
    assert run.gpus == ["0000:00:00.0"] and run.import_seconds == 0.4 and 0 < run.seconds < 1
    assert [(one.name, one.evidence) for one in run.trials] == [("a", {"n": 1})]
    ((_module, _process, params, env),) = made.started
    assert env["CUDA_VISIBLE_DEVICES"] == "GPU-0" and env["HOME"] == "/h"
    assert params == {
        "pynvml": None,
        "framework": "torch",
        "device": "gpu",
        "gpus": ["0000:00:00.0"],
        "memory_mib": None,
        "seconds": 5.0,
        "libraries": {},
    }
    assert made.progress[-1] == ([], 1, 1) and made.progress[0][0] == ["made torch"]
    assert made.documents["machine"]["acceleration"]["facts"] == {
        "systems": [],
        "seconds": made.documents["target"]["acceleration"]["seconds"],
        "runs": [],
    }


def test_the_import_and_the_work_have_limits_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    never = one_run(monkeypatch, lambda clock: Child(clock, [], None), framework="torch")
    assert never.outcome == "timeout" and never.trials == []
    assert never.reason == "torch was not imported within 90 s"
    late = [(80.0, ready(80.0)), (84.0, record(done={}))]
    assert one_run(monkeypatch, lambda clock: Child(clock, late, (84.0, 0))).outcome == "ok"
    begun = [(80.0, ready(80.0)), (81.0, record(stage="b", of="control"))]
    hung = one_run(monkeypatch, lambda clock: Child(clock, begun, None))
    assert (hung.outcome, hung.reason) == ("timeout", "no answer within 5 s")
    (trial,) = hung.trials
    assert (trial.name, trial.control, trial.outcome) == ("b", True, "timeout")
    assert trial.reason == "no answer within 5 s"


@pytest.mark.parametrize(
    ("status", "stderr", "outcome", "reason"),
    [
        (
            -6,
            b"terminate called\n",
            "crashed",
            "its process died by signal 6 (SIGABRT): terminate called",
        ),
        (-9, b"", "crashed", "its process died by signal 9 (SIGKILL)"),
        (0, b"", "crashed", "its process exited with status 0"),
        (3, b"\x1b[1mbad\n\n", "crashed", "its process exited with status 3: [1mbad"),
    ],
)
def test_a_process_that_ends_before_it_is_done(
    monkeypatch: pytest.MonkeyPatch, status: int, stderr: bytes, outcome: str, reason: str
) -> None:
    for begun in (False, True):
        script = WELL[:3] + ([(0.8, record(stage="b", of="trial"))] if begun else [])
        run = one_run(
            monkeypatch, lambda clock, s=script: Child(clock, s, (s[-1][0], status), stderr)
        )  # type: ignore[misc]
        assert (run.outcome, run.reason) == (outcome, reason)
        assert [one.outcome for one in run.trials] == ["ok", outcome][: 1 + begun]
        assert all(one.reason in ("", reason) for one in run.trials)


def test_those_that_are_timed_run_alone_and_last(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["a", "b", "c", "d"]
    found = [system(name, gpus=1) for name in names] + [system("z", gpus=1, alone=True)]
    made = Made(monkeypatch, dict.fromkeys([*names, "z"], well), found, cores=64)
    assert made.most == 3
    (first, second, third, fourth, timed) = [one[1] for one in made.started]
    assert fourth.began > first.began == second.began == third.began
    assert timed.began > fourth.began + 0.7
    assert [one[0] for one in made.started] == [*names, "z"]
    assert Made(monkeypatch, dict.fromkeys([*names, "z"], well), found, cores=3).most == 1


def test_what_could_not_be_killed_is_named_where_it_belongs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stuck = {"pid": 7, "command": "python", "state": "D"}
    left: list[tuple[int, dict[str, Any]]] = []

    def hangs(clock: Clock) -> Child:
        process = Child(clock, WELL[:1], None, stuck=stuck)
        left.append((process.pid, dict(stuck, pid=8)))
        return process

    swept = iter([left])
    made = Made(monkeypatch, {"made": hangs}, [system("made")], sweep=lambda: next(swept, []))
    section = made.documents["target"]["acceleration"]
    assert [one["pid"] for one in section["stuck"]] == [7, 8]
    made.runner.name_stuck([(99_999, dict(stuck, pid=9))])
    assert [one["pid"] for one in made.documents["machine"]["acceleration"]["stuck"]] == [9]


@pytest.mark.parametrize("stage", [gpu_work.systems, gpu_work.micro_kernels])
def test_a_part_that_fails_is_told_and_no_other(
    monkeypatch: pytest.MonkeyPatch, stage: Any
) -> None:
    """Where envcheck itself fails to choose the GPUs, each part that was asked for says so."""
    run = Run(Request(kernels={"systems": ["xla"]}))
    run.documents["target"] = document("live", "path:/t")

    def fails(*_given: Any) -> Any:
        raise RuntimeError("no such luck")

    monkeypatch.setattr(gpu_work, "choose", fails)
    stage(run)
    reason = "envcheck's own part of it failed: RuntimeError: no such luck"
    name = "acceleration" if stage is gpu_work.systems else "micro_kernels"
    for place in run.documents.values():
        assert place[name] == {"outcome": "crashed", "reason": reason}


def test_names_are_redacted_in_evidence_reasons_and_logs() -> None:
    trial = {
        "name": "sum",
        "outcome": "ok",
        "evidence": {"host": "bigbox", "lib": "/home/margaret/lib/libnccl.so", "gpu": "tesla"},
    }
    run = {
        "system": "nccl",
        "outcome": "error",
        "reason": "bigbox: no answer from margaret",
        "log": ["bigbox:7:8 NCCL INFO /home/margaret/nccl.conf"],
        "trials": [trial],
    }
    machine = document("live", "machine")
    section = {"outcome": "ok", "facts": {"systems": ["nccl"], "runs": [run]}}
    target = dict(document("live", "path:/t"), acceleration=section)
    redactor = Redactor("bigbox", "margaret", "/home/margaret", [("", "tesla", "")])
    report = msgspec.json.encode(redactor.redact({"machine": machine, "target": target})).decode()
    assert "bigbox" not in report and "margaret" not in report
    assert '"gpu":"tesla"' in report, "a word of this field is no user's name"
    whole, _values = snapshot({"machine": machine, "target": target}, keep=True)
    assert load(msgspec.json.encode(whole)).target is not None
