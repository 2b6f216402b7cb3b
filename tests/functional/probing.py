"""Runs one probe the way the collector does: in a process of its own, under any Python."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pythons

from envcheck.collector.kernels.records import PartReport
from envcheck.collector.runtime import process
from envcheck.collector.worker import command, probe
from envcheck.collector.worker.parent import Limits, Worker
from envcheck.facts.base import Unavailable

REPOSITORY = Path(__file__).resolve().parents[2]


def interpreter(minor: int) -> str:
    """This Python, or another one of this machine; skips the test where it is not there."""
    if minor == sys.version_info[1]:
        return sys.executable
    return pythons.need(minor)


def result(python: str, module: str, params: dict[str, Any], **environment: str) -> process.Result:
    argv = probe.command([python, "-I", "-S"], f"envcheck.collector.probes.{module}", params)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("CUDA", "NVIDIA", "LD_"))}
    return process.run(argv, 60, env={**clean, **environment})


def facts(python: str, module: str, params: dict[str, Any], **environment: str) -> dict[str, Any]:
    """The probe's answer: {"facts", "sources"}."""
    ended = result(python, module, params, **environment)
    assert ended.ok, ended.tail(20)
    answer: dict[str, Any] = probe.parse(ended)
    return answer


def why(fact: Any) -> tuple[str, str]:
    assert isinstance(fact, Unavailable), fact
    return fact.unavailable, fact.detail


def level(python: list[str], module: str, params: dict[str, Any]) -> list[str]:
    """The command line of a level's process."""
    records = "envcheck.collector.kernels.records"
    argv: list[str] = command(python, records, {**params, "module": module})
    return argv


class Reported(PartReport):  # type: ignore[misc]  # untyped
    """What a level's process has reported, once it is over."""

    def __init__(self, stdout: bytes) -> None:
        super().__init__()
        self.stdout = stdout
        self.result = process.Result(["x"], "exited", 0, stdout, b"", 1.0)
        worker = Worker(self, Limits(), self.take)
        worker.step()
        self.done, self.reason = worker.done, worker.reason
        self.begun = worker.stage and worker.stage[::-1]  # (key, stage) that nothing came of

    def poll(self) -> process.Result:
        return self.result

    def new_stdout(self) -> bytes:
        return self.stdout
