"""A bench's rows without processes: what stands for a process measures here, on a made-up clock."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from systems import gpu

from envcheck.collector.bench import records, runner, styles, work
from envcheck.collector.runtime.process import Result
from envcheck.collector.worker import PythonCommand, messages
from envcheck.facts.base import Probe
from envcheck.facts.bench import Bench, BenchRow, RowRun

GPU = "0000:00:00.0"


def row(name: str, **changes: Any) -> dict[str, Any]:
    """A BenchRow as the collector gets it."""
    fields: dict[str, Any] = {"what": "mlp", "model": "mlp", "style": "torch", "group": "g"}
    return msgspec.structs.asdict(BenchRow(name=name, **(fields | changes)))


class Died(BaseException):
    """By that signal, with that on its stderr."""

    def __init__(self, number: int, stderr: bytes = b"") -> None:
        super().__init__(number)
        self.number, self.stderr = number, stderr


class Hangs(BaseException):
    """It never comes back."""


class Training:
    """Takes 10 ms a step. acts: what a method does instead, {its name: function}."""

    parameters = 7

    def __init__(self, world: World, acts: dict[str, Any]) -> None:
        self.world, self.acts = world, acts

    def _do(self, name: str, value: Any) -> Any:
        return self.acts[name]() if name in self.acts else value

    def run(self, steps: int) -> int:
        self.world.now += 0.01 * steps
        return int(self._do("run", 0))

    def loss(self) -> float:
        return float(self._do("loss", 1.5))

    def evidence(self) -> Any:
        return self._do("evidence", {"products": 3})

    def memory(self) -> Any:
        return self._do("memory", {"pool_mib": 200})


class MadeChild:
    """As a process.Child, of a row: at the first look it does all its work."""

    pids = iter(range(1000, 100_000))

    def __init__(self, world: World, params: dict[str, Any], env: dict[str, str]) -> None:
        self.world, self.params, self.env = world, params, env
        self.pid = next(self.pids)
        self.result: Result | None = None
        self.hung = False
        self.output = messages.encode(
            {"begin": {"framework_version": "9.9", "import_seconds": 0.1}}
        )

    def poll(self) -> Result | None:
        if self.result is None and not self.hung:
            self._work()
        return self.result

    def _work(self) -> None:
        def send(**message: Any) -> None:
            self.output += messages.encode(message)

        writer = SimpleNamespace(
            result=lambda value, key: send(result=value, of=key),
            stage=lambda name, key: send(stage=name, of=key),
        )
        acts = self.world.acts.get(str(self.params["row"]["name"]), {})
        try:
            build = acts.get("build", lambda: Training(self.world, acts))
            work.measure(build, self.params, writer, lambda: self.world.now)
            send(done={})
            self.finish("exited", 0)
        except Hangs:
            self.hung = True
        except Died as death:
            self.finish("exited", -death.number, death.stderr)
        except Exception as error:
            failed = records.RowFailed(error)
            send(done={"outcome": failed.outcome, "reason": str(failed)})
            self.finish("exited", 1)

    def new_stdout(self) -> bytes:
        output, self.output = self.output, b""
        return output

    def finish(self, outcome: str, code: int | None, stderr: bytes = b"") -> None:
        if self.result is None:
            self.result = Result([], outcome, code, b"", stderr, 1.0)

    def stop(self) -> None:
        self.finish("stopped", None)


class NoSamples:
    """In the place of Telemetry: one sample of each GPU, at the time that is asked for."""

    def __init__(self, *_given: Any, **_named: Any) -> None:
        self.gpus: list[str] = []

    def open(self, gpus: list[str], _interval: float) -> None:
        self.gpus = gpus

    def poll(self) -> None:
        pass

    def close(self) -> None:
        pass

    def between(self, first: float, last: float, since: float) -> list[dict[str, Any]]:
        times = [first - since, last - since]
        return [
            {"gpu": one, "seconds": times, "values": {"power_w": [300.0] * 2}} for one in self.gpus
        ]


class World:
    """A collection on a machine with one GPU. acts: {row's name: what its Training does instead}."""

    stopped = False

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, **acts: Any) -> None:
        self.folder, self.acts = folder, acts
        self.now = 100.0
        self.children: list[MadeChild] = []
        self.events: list[dict[str, Any]] = []
        self.documents: dict[str, Any] = {"machine": {}, "target": {}}
        self.request = SimpleNamespace(scratch=str(folder), pynvml=None)
        self.python = {"target": PythonCommand("target", ["python"], "/nowhere")}
        style = SimpleNamespace(environ=lambda _row: {"NVIDIA_TF32_OVERRIDE": "0"})
        monkeypatch.setattr(styles, "load", lambda _name: style)
        monkeypatch.setattr(runner, "Telemetry", NoSamples)

    def start(self, argv: list[str], _deadline: float, _cwd: str, env: Any) -> MadeChild:
        assert argv[-2] == work.MODULE
        self.children.append(MadeChild(self, json.loads(argv[-1]), env))
        return self.children[-1]

    def event(self, event: dict[str, Any]) -> None:
        self.events.append(event)

    def progress(self, _running: list[str], _done: int, _total: int) -> None:
        pass

    def sweep(self) -> list[Any]:
        return []

    def pause(self, seconds: float) -> None:
        self.now += 5.0 if any(one.hung for one in self.children) else seconds

    def run(self, rows: list[dict[str, Any]], **more: Any) -> list[RowRun]:
        request = {"asked": ["mlp"], "rows": rows, "repetitions": 3, "seconds": 1.0, "warm_up": 3.0}
        environ = {"HOME": "/h", "XLA_FLAGS": "--x"}
        self.runner = runner.BenchRunner(request | more, self, environ, clock=lambda: self.now)
        self.runner.run([gpu(0), gpu(1)], self.pause)
        section = json.loads(json.dumps(self.documents["target"]["bench"]))
        found = msgspec.convert(section, Probe[Bench]).facts
        assert found is not None
        self.bench = found
        assert not list(self.folder.iterdir()), "a row's folder is still there"
        assert all(one.result is not None for one in self.children), "a process still runs"
        return list(found.rows)
