"""A bench's rows without processes: what stands for a process obeys its orders here, on a made-up clock."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from systems import gpu

from envcheck.collector.bench import records, styles, work
from envcheck.collector.bench.running import machinery, runner
from envcheck.collector.bench.styles import Place
from envcheck.collector.runtime.process import Result
from envcheck.collector.worker import PythonCommand, messages
from envcheck.facts.base import Probe
from envcheck.facts.bench import Bench, BenchRow, RowRun

GPU = "0000:00:00.0"
CONTEXT = 500  # MiB that a made-up process has beside its pool


def row(name: str, **said: Any) -> dict[str, Any]:
    """A BenchRow as the collector gets it."""
    words: dict[str, Any] = {"what": "mlp", "model": "mlp", "style": "torch", "group": "g"} | said
    made = BenchRow(name=name, **words)
    return {field: getattr(made, field) for field in made.__struct_fields__}


class Training:
    """Takes 10 ms a step, 100 MiB and 10 more a sample of a GPU; ``said`` changes that."""

    parameters = 7

    def __init__(self, world: World, mine: MadeChild, batch: int, said: dict[str, Any]) -> None:
        self.world, self.mine, self.said = world, mine, said
        self.step = said.get("step", 0.01)
        self.mine.pool = said.get("fixed", 100) + said.get("each", 10) * batch
        self.runs = 0
        world.check_memory()

    def run(self, steps: int) -> int:
        self.runs += 1
        self.world.ran.append((self.mine.name, steps))
        act = self.said.get("at", {}).get(self.runs)
        if act is not None:
            act(self.mine)
        self.world.now += self.step * steps
        return int(self.said.get("skipped", 0))

    def loss(self) -> float:
        return float(self.said.get("loss", 1.5))

    def evidence(self) -> Any:
        return self.said.get("evidence", lambda: {"products": 3})()

    def memory(self) -> Any:
        return self.said.get("memory", lambda: {"pool_mib": self.mine.pool})()

    def accuracy(self) -> float:
        return float(self.said.get("accuracy", lambda: 0.5)())


class Died(BaseException):
    """By that signal, with that on its stderr."""

    def __init__(self, number: int, stderr: bytes = b"") -> None:
        super().__init__(number)
        self.number, self.stderr = number, stderr


class Hangs(BaseException):
    """It never comes back."""


class MadeChild:
    """As a process.Child, of a row: RowWork obeys what is written into the orders' pipe."""

    pids = iter(range(1000, 100_000))

    def __init__(
        self, world: World, told: dict[str, Any], orders: str, env: dict[str, str]
    ) -> None:
        self.world, self.row, self.place, self.env = world, told["row"], told["place"], env
        self.name = str(self.row["name"])
        self.pid = next(self.pids)
        self.pool = 0
        self.result: Result | None = None
        self.number = 0
        self.hung = False
        self.output = b""
        self.orders = os.open(orders, os.O_RDONLY | os.O_NONBLOCK)
        writer = SimpleNamespace(result=lambda value, key: self.send(result=value, of=key))
        self.work = work.RowWork(self, "framework", self.row, Place(**self.place), writer)
        self.send(begin={"framework_version": "9.9", "import_seconds": 0.1})

    def send(self, **message: Any) -> None:
        self.output += messages.encode(message)

    def build(self, _framework: str, row: dict[str, Any], _place: Place) -> Training:
        return Training(self.world, self, row["batch"], self.world.said.get(self.name, {}))

    def poll(self) -> Result | None:
        if self.result is None and not self.hung:
            try:
                data = os.read(self.orders, 65536)
            except BlockingIOError:
                data = b""
            for line in data.splitlines():
                self.obey(json.loads(line))
        return self.result

    def obey(self, order: dict[str, Any]) -> None:
        self.number += 1
        self.world.orders.append((self.name, *order))
        try:
            if self.work.obey(order):
                self.send(result=self.number, of="order")
            else:
                self.send(done={})
                self.finish("exited", 0)
        except Hangs:
            self.hung = True
        except Died as death:
            self.finish("exited", -death.number, death.stderr)
        except Exception as error:
            failed = records.RowFailed(error)
            self.send(done={"outcome": failed.outcome, "reason": str(failed)})
            self.finish("exited", 1)

    def new_stdout(self) -> bytes:
        told, self.output = self.output, b""
        return told

    def finish(self, outcome: str, code: int | None, stderr: bytes = b"") -> None:
        if self.result is None:
            self.result = Result([], outcome, code, b"", stderr, 1.0)
            self.pool = 0
            os.close(self.orders)

    def stop(self) -> None:
        self.finish("stopped", None)


class Silent:
    """In the place of Telemetry: a sample every tenth of a second, all alike."""

    def __init__(self, *_given: Any) -> None:
        self.gpus: list[str] = []

    def open(self, gpus: list[str], _interval: float) -> None:
        self.gpus = gpus

    def poll(self) -> None:
        pass

    def close(self) -> None:
        pass

    def between(self, first: float, last: float, since: float) -> list[dict[str, Any]]:
        times = [first - since + 0.1 * number for number in range(int((last - first) * 10))]
        values = {"power_w": [300.0] * len(times), "throttle_reasons": [4] * len(times)}
        return [{"gpu": one, "seconds": times, "values": values} for one in self.gpus]


class World:
    """A machine with one GPU of ``total`` MiB. said: {row's name: what is different with it}."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, folder: Path, total: int = 10_000, **said: Any
    ) -> None:
        self.folder, self.total, self.said = folder, total, said
        self.now = 100.0
        self.children: list[MadeChild] = []
        self.ran: list[tuple[str, int]] = []
        self.orders: list[tuple[str, ...]] = []
        self.events: list[dict[str, Any]] = []
        self.sweeps = 0
        self.most = 0  # processes at once
        monkeypatch.setattr(styles, "load", lambda name: self)
        monkeypatch.setattr(work.time, "monotonic", lambda: self.now)
        # What the driver is asked goes through a process, which tells here what is there.
        self.driver = True
        self.on_pause: Callable[[], None] = lambda: None

    def environ(self, _row: dict[str, Any]) -> dict[str, str]:
        return {"NVIDIA_TF32_OVERRIDE": "0"}

    def used(self) -> int:
        return sum(one.pool + CONTEXT for one in self.children if one.pool)

    def check_memory(self) -> None:
        if any(one.place["gpus"] for one in self.children) and self.used() > self.total:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")

    def start(self, argv: list[str], _deadline: float, _cwd: str, env: Any, **more: Any) -> Any:
        if argv[-2:-1] == [work.MODULE] and "stdin" in more:
            made = MadeChild(self, json.loads(argv[-1]), more["stdin"], env)
            self.children.append(made)
            self.most = max(self.most, sum(one.result is None for one in self.children))
            return made
        told = {one.pid: one.pool + CONTEXT for one in self.children if one.pool}
        return _Over(json.dumps(told).encode() if self.driver else b"NVML is not there")

    def pause(self, seconds: float) -> None:
        self.now += seconds
        if any(one.hung for one in self.children):
            self.now += 5.0
        self.on_pause()

    def sweep(self) -> list[Any]:
        self.sweeps += 1
        return []

    def run(self, rows: list[dict[str, Any]], repetitions: int = 3, **more: Any) -> list[RowRun]:
        machine: Any = {
            "nvml": {"facts": {"gpus": [{"pci_address": GPU, "memory_free_mib": self.total}]}}
        }
        documents: Any = {"machine": machine, "target": {}}
        request = {
            "asked": ["mlp"],
            "rows": rows,
            "repetitions": repetitions,
            "seconds": 1.0,
        } | more
        self.runner = runner.BenchRunner(
            request,
            documents,
            PythonCommand("target", ["python"], "/nowhere"),
            self.start,
            {"HOME": "/h", "XLA_FLAGS": "--x"},
            "/r",
            machine_python=["python3"],
            sweep=self.sweep,
            scratch=str(self.folder),
            cores=2,
            telemetry=Silent,
            clock=lambda: self.now,
        )
        self.runner.run([gpu(0)], lambda *told: None, self.events.append, self.pause)
        section = json.loads(json.dumps(documents["target"]["bench"]))
        found = msgspec.convert(section, Probe[Bench]).facts
        assert found is not None
        self.bench = found
        assert not list(self.folder.iterdir()), "a row's folder was left"
        assert all(one.result is not None for one in self.children), "a process was left"
        return list(found.rows)


class _Over:
    """As a process.Child that is over."""

    def __init__(self, stdout: bytes) -> None:
        self.result = Result([], "exited", 0, stdout, b"", 0.1)

    def poll(self) -> Result:
        return self.result


__all__ = ["GPU", "Died", "Hangs", "World", "machinery", "row"]
