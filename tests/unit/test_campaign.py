"""How the levels' processes are watched, restarted and put together: with a clock and children made up."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from children import Child, Clock
from h100 import cuda, gpu, nvml

from envcheck.collector import documents as collected
from envcheck.collector import gpu_work, probing
from envcheck.collector.kernels import records, selection
from envcheck.collector.kernels.attempts import NO_TIME, Attempt, Limits
from envcheck.collector.kernels.campaign import Campaign
from envcheck.collector.kernels.jobs import Job, Part
from envcheck.collector.kernels.selection import Device
from envcheck.collector.main import Request
from envcheck.collector.options import Options
from envcheck.collector.run import Run
from envcheck.collector.worker import PythonCommand
from envcheck.facts.base import Probe
from envcheck.facts.gpu import GpuProcess
from envcheck.facts.host import Host
from envcheck.facts.micro_kernels import LevelRun, MicroKernels

WORK = GpuProcess(pid=4711, kind="C", name="python3")
STUCK = {"pid": 77, "command": "python -c ...", "state": "D"}


def child(clock: Clock, script: list[tuple[float, Any]], end: Any, stderr: str = "") -> Child:
    """end: as a Child's, or "stuck": it runs, and cannot be ended."""
    stuck = STUCK if end == "stuck" else None
    return Child(clock, script, None if stuck else end, stderr.encode(), stuck)


def begin(at: float, mode: str, stage: str = "bits") -> tuple[float, Any]:
    return at, [BEGUN, {"stage": stage, "of": mode}]


def ran(at: float, mode: str, setting: str = "", **facts: Any) -> tuple[float, Any]:
    found = {"mode": mode, "setting": setting, "outcome": "ok", **facts}
    return at, [BEGUN, {"result": found, "of": records.key(mode, setting)}]


def facts(at: float, **values: Any) -> tuple[float, Any]:
    return at, [{"result": values, "of": records.RUN}]


def escaped(at: float, reason: str) -> tuple[float, Any]:
    """An exception has ended the process."""
    return at, [{"done": {"outcome": "error", "reason": reason}}]


BEGUN: dict[str, Any] = {"begin": {}}
DONE: list[dict[str, Any]] = [{"done": {}}]


class Trial:
    """Runs one Attempt to its end; every process is the next of the given scripts."""

    def __init__(self, job: Job, *scripts: Any) -> None:
        self.clock = Clock()
        self.started: list[dict[str, Any]] = []
        waiting = list(scripts)

        def start(job: Job, part: Part, params: dict[str, Any], deadline: float) -> Child:
            self.started.append({**params, "environ": part.environ})
            return child(self.clock, *waiting.pop(0))

        params = {"modes": job.parts[0].keys if job.parts else []}
        self.attempt = Attempt(job, params, start, Limits(20.0, 3.0, 10.0), self.clock)
        while self.attempt.step():
            self.clock.now += 0.25
        assert not waiting, "a process was not started"
        self.clock.now += 60.0  # while other jobs run, before anything is written
        self.run = self.attempt.run()
        msgspec.convert(json.loads(json.dumps(self.run)), LevelRun)

    @property
    def outcomes(self) -> dict[str, str]:
        return {
            records.key(mode["mode"], mode.get("setting", "")): mode["outcome"]
            for mode in self.run["modes"]
        }

    def mode(self, mode: str) -> dict[str, Any]:
        (found,) = [text for text in self.run["modes"] if text["mode"] == mode]
        return dict(found)

    def asked(self, key: str) -> list[Any]:
        return [params[key] for params in self.started]


def job(level: str = "L0", modes: str = "fp32 fp16", **seed: Any) -> Job:
    device = Device({"index": 0, "uuid": "GPU-1", "name": "H100", **seed}, "GPU-1", "0000:01:00.0")
    return Job(level, device, [Part(modes.split())])


def test_a_hang_costs_the_mode_that_was_announced() -> None:
    first = [ran(1, "fp32", call="fma"), begin(1, "fp32", "rate")]
    second = [begin(1, "fp16"), ran(2, "fp16"), (2.0, DONE)]
    trial = Trial(job(), (first, None), (second, (2.0, 0)))
    assert trial.outcomes == {"fp32": "timeout", "fp16": "ok"}
    assert trial.mode("fp32")["call"] == "fma", "what was told before is kept"
    assert trial.mode("fp32")["reason"] == 'no answer within 3 s in stage "rate"'
    assert (trial.asked("skip"), trial.asked("dead")) == ([[], ["fp32"]], [[], ["fp32"]])
    assert trial.run["restarts"] == 1
    assert trial.attempt.died


@pytest.mark.parametrize(
    ("status", "outcome", "reason"),
    [
        (-11, "crashed", 'its process died by signal 11 (SIGSEGV) in stage "bits"'),
        (3, "crashed", 'its CUDA context broke in stage "bits"'),
        (4, "error", 'ValueError: no in stage "bits"'),
    ],
)
def test_a_death_costs_the_mode_that_was_announced(status: int, outcome: str, reason: str) -> None:
    death = [begin(1, "fp32")] + ([escaped(1, "ValueError: no")] if status == 4 else [])
    rest = [begin(0, "fp16"), ran(1, "fp16"), (1.0, DONE)]
    trial = Trial(job(), (death, (1.0, status), "chatter"), (rest, (1.0, 0)))
    assert trial.outcomes == {"fp32": outcome, "fp16": "ok"}
    assert trial.mode("fp32")["reason"] == reason


def test_a_start_that_fails_is_not_tried_again() -> None:
    trial = Trial(job(), ([escaped(1, "CudaError: cuInit: CUDA_ERROR_UNKNOWN")], (1.0, 4)))
    assert (trial.run["outcome"], trial.run["restarts"]) == ("error", 0)
    assert trial.run["reason"] == "CudaError: cuInit: CUDA_ERROR_UNKNOWN"
    assert trial.outcomes == {}
    assert Trial(job(), ([], (1.0, -6))).run["outcome"] == "crashed"
    assert not trial.attempt.fatal


def test_cupti_may_cost_the_names_and_nothing_else() -> None:
    first = [ran(0, "fp32", hardware={"opcodes": {"FFMA": 3}}), ran(0, "fp16")]
    trial = Trial(job(), ([*first, begin(0, "fp32", "names")], (1.0, -11)))
    assert trial.outcomes == {"fp32": "ok", "fp16": "ok"}
    names = trial.mode("fp32")["hardware"]["kernel_names"]
    assert names == {
        "unavailable": "error",
        "detail": "its process died by signal 11 (SIGSEGV) while CUPTI looked on",
    }
    assert trial.mode("fp32")["hardware"]["opcodes"] == {"FFMA": 3}
    assert trial.mode("fp16")["hardware"] == {"kernel_names": names}


def test_time_that_is_used_up_leaves_modes_out() -> None:
    first = [begin(at, "fp32", str(at)) for at in range(1, 11)]
    trial = Trial(job(), (first, None))
    assert trial.outcomes == {"fp32": "timeout", "fp16": "not-run"}
    assert trial.mode("fp16")["reason"] == NO_TIME


def test_a_process_that_cannot_be_ended_ends_the_gpu_s_turn() -> None:
    trial = Trial(job(), ([begin(0, "fp32")], "stuck"))
    assert trial.attempt.stuck == STUCK
    assert trial.attempt.fatal == "a process of L0 GPU 0 cannot be ended"
    assert trial.outcomes == {"fp32": "timeout", "fp16": "not-run"}
    assert trial.mode("fp16")["reason"] == trial.attempt.fatal


def two_parts() -> Job:
    made = job("L2")
    made.framework = "torch"
    made.parts = [
        Part(["fp32/default", "fp16/half"], ["default", "half"]),
        Part(["fp32/control"], ["control"], {"NVIDIA_TF32_OVERRIDE": "0"}),
    ]
    return made


def test_both_processes_of_a_framework_are_one_run() -> None:
    first = [
        facts(0, variables={"XLA_FLAGS": "a"}, framework_version="2.9", seconds=1),
        ran(0, "fp32", "default"),
        ran(0, "fp16", "half"),
        (0.0, DONE),
    ]
    second = [
        facts(0, variables={"NVIDIA_TF32_OVERRIDE": "0"}, library="/lib"),
        ran(0, "fp32", "control"),
        (0.0, DONE),
    ]
    trial = Trial(two_parts(), (first, (0.0, 0)), (second, (0.0, 0)))
    assert list(trial.outcomes) == ["fp32/default", "fp16/half", "fp32/control"]
    assert trial.asked("settings") == [["default", "half"], ["control"]]
    assert trial.asked("environ") == [{}, {"NVIDIA_TF32_OVERRIDE": "0"}]
    assert trial.asked("seconds") == [10.0, 10.0]
    assert (trial.run["variables"], trial.run["library"]) == ({"XLA_FLAGS": "a"}, "/lib")
    assert (trial.run["framework"], trial.run["framework_version"]) == ("torch", "2.9")


# -- the campaign


class Stage:
    """A machine of idle H100s on which every level's process does what ``script`` says of it."""

    def __init__(self, gpus: int = 2, cores: int = 64, target: bool = False, **options: Any):
        idle = [gpu(n, processes=[], utilization_percent=0) for n in range(gpus)]
        self.machine = raw(
            host=Host(cpus_allowed=cores), nvml=nvml(idle), cuda=cuda(idle)
        ) | collected.document("live", "machine")
        self.documents = {"machine": self.machine, "target": None}
        if target:
            result = collected.document("live", "path:/env")
            loader = {"outcome": "timeout", "seconds": 1.0, "reason": "no answer"}
            self.documents["target"] = result | {"loader": loader}
        self.clock = Clock()
        self.calls: list[dict[str, Any]] = []
        self.running: list[Child] = []
        self.most = 0
        self.script: Callable[[dict[str, Any]], Any] = well
        self.watched: list[tuple[list[str], int, int]] = []
        self.options = Options(**options)
        self.chosen = selection.choose(self.machine, self.options, {})
        self.campaign = Campaign(self.options, self.documents, self.start, {"A": "b"}, "/pynvml.py")

    def start(self, argv: list[str], deadline: float, cwd: str, env: dict[str, str]) -> Child:
        call = {"argv": argv, "cwd": cwd, "env": env, **json.loads(argv[-1])}
        self.calls.append(call)
        started = child(self.clock, *self.script(call))
        self.running = [one for one in self.running if one.poll() is None] + [started]
        self.most = max(self.most, len(self.running))
        return started

    def go(self) -> Stage:
        pythons = {
            "machine": PythonCommand("machine", ["python3", "-I", "-S"], "/"),
            "target": PythonCommand("target", ["/env/bin/python", "-B"], "/scratch"),
        }

        def watch(names: list[str], done: int, total: int) -> None:
            self.watched.append((names, done, total))

        self.campaign.run(self.chosen, pythons, watch, self.clock, self.clock.pause)
        return self

    def section(self, document: str = "machine") -> Any:
        result = self.documents[document]
        assert result is not None
        return msgspec.convert(json.loads(json.dumps(result["micro_kernels"])), Probe[MicroKernels])


def raw(**probes: Any) -> dict[str, Any]:
    return {
        name: {"outcome": "ok", "facts": msgspec.to_builtins(facts)}
        for name, facts in probes.items()
    }


def well(call: dict[str, Any]) -> Any:
    left = [mode for mode in call["modes"] if mode not in call["skip"]]
    return [*(ran(0, mode) for mode in left), (1.0, DONE)], (1.0, 0)


def test_each_process_sees_its_one_gpu_and_the_user_s_environment() -> None:
    stage = Stage(target=True, levels=["L0", "L1"], modes=["fp16"]).go()
    assert [call["module"] for call in stage.calls] == ["level0", "level0", "level1", "level1"]
    call = stage.calls[-1]
    assert call["env"] == {"A": "b", "CUDA_VISIBLE_DEVICES": "GPU-<uuid-2>"}
    assert (call["argv"][:2], call["cwd"]) == (["/env/bin/python", "-B"], "/scratch")
    assert stage.calls[0]["argv"][:3] == ["python3", "-I", "-S"]
    assert (call["modes"], call["uuid"], call["pynvml"]) == (
        ["fp32", "fp16"],
        "GPU-<uuid-2>",
        "/pynvml.py",
    )
    assert call["libraries"] == {"libcublas": None, "libcublasLt": None, "libcupti": None}
    machine, target = stage.section(), stage.section("target")
    assert (machine.facts.levels, target.facts.levels) == (["L0"], ["L1"])
    assert [run.index for run in target.facts.runs] == [0, 1]
    assert machine.facts.modes == ["fp32", "fp16"] and machine.reason == ""


@pytest.mark.parametrize(("cores", "most"), [(1, 1), (3, 1), (4, 2), (64, 4)])
def test_as_many_gpus_side_by_side_as_there_are_processors_for(cores: int, most: int) -> None:
    stage = Stage(gpus=4, cores=cores, levels=["L0"]).go()
    assert stage.most == most and len(stage.calls) == 4


def test_a_gpu_that_does_not_answer_is_asked_no_more() -> None:
    stage = Stage(gpus=2, target=True, levels=["L0", "L1"])
    stage.script = lambda call: ([], None) if call["uuid"] == "GPU-<uuid-1>" else well(call)
    stage.go()
    first, second = stage.section("target").facts.runs
    assert (first.outcome, second.outcome) == ("not-run", "ok")
    assert first.reason == "L0 GPU 0 had no answer within 60 s"
    assert stage.section().facts.runs[0].outcome == "timeout"


@pytest.mark.parametrize(
    ("looks", "outcome", "asked"),
    [
        ([{}], "", 0),
        ([{"processes": [WORK]}, {}], "", 1),
        ([{"processes": [WORK]}, {"processes": [WORK]}], "busy", 1),
        ([{"utilization_percent": 50}, {}], "", 1),
        ([{"utilization_percent": 50}] * 2, "busy", 1),
        ([{"processes": [WORK]}, None], "busy", 1),
    ],
)
def test_what_looks_busy_is_looked_at_again(
    monkeypatch: pytest.MonkeyPatch, looks: list[Any], outcome: str, asked: int
) -> None:
    """The probes use the GPUs, too: a framework that was asked for its GPUs is a process on them."""
    monkeypatch.setattr(gpu_work, "_ONCE_MORE", 0.0)
    quiet = {"processes": [], "utilization_percent": 0}

    def seen(look: Any) -> dict[str, Any]:
        return raw(nvml=nvml([gpu(0, **{**quiet, **look})]), cuda=cuda([gpu(0)]))

    later = list(looks[1:])

    def again(field: str, machine: dict[str, Any]) -> dict[str, Any]:
        assert field == "nvml"
        fresh = later.pop(0)
        return machine if fresh is None else seen(fresh)  # None: NVML does not answer any more

    run = Run(Request(kernels={}))
    run.documents["machine"] = seen(looks[0])
    monkeypatch.setattr(probing, "fresh", lambda run, field: again(field, run.documents["machine"]))
    devices, _reason = gpu_work.choose(run, Options())
    assert [device.outcome for device in devices] == [outcome]
    assert len(looks) - 1 - len(later) == asked
