"""Runs one acceleration system by itself with a real Python as the collector does, and judges it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec
from cli import environment
from system_records import command

from envcheck.checks.engine import diagnose
from envcheck.checks.registry import all_checks
from envcheck.collector import systems
from envcheck.collector.runtime import process
from envcheck.collector.systems.running import jobs
from envcheck.facts.acceleration import Acceleration, SystemRun
from envcheck.facts.base import Probe
from envcheck.facts.snapshot import SCHEMA, Collector, Document, Snapshot
from envcheck.findings.model import CheckResult


def run(
    python: Path,
    module: str,
    folder: Path,
    device: str = "cpu",
    before: str = "",
    framework: str = "tensorflow",
    **variables: str,
) -> SystemRun:
    """What one system's file reports. before: what its process does first, once the framework is there."""
    found = [one for one in systems.load() if one.module == module]
    (system,) = [one for one in found if one.framework in ("", framework)]
    params = {
        "framework": system.framework,
        "device": device,
        "gpus": [],
        "memory_mib": None,
        "seconds": system.deadline,
        "pynvml": "",
        "libraries": {},
    }
    argv = command(python, module, params)
    if before:
        script = argv.index("-c") + 1
        lines = argv[script].splitlines()
        argv[script] = "\n".join([*lines[:-1], before, lines[-1]])
    env = environment(TMPDIR=str(folder), **variables)

    job: Any = jobs.SystemJob(system, on=device)
    job.open(process.Child(argv, 200, env=env, cwd=str(folder)))
    while job.worker.step():
        time.sleep(0.05)
    return msgspec.convert(job.facts(), SystemRun)


def judged(code: str, one: SystemRun) -> CheckResult:
    """What a check says of a run, where nothing else is known."""
    facts = Acceleration(systems=[one.system], runs=[one])
    document = Document(
        origin="live",
        location="machine",
        collected_at="2026-11-22T18:00:00Z",
        collector=Collector(version="0", python="3.11"),
        acceleration=Probe(outcome="ok", facts=facts),
    )
    snapshot = Snapshot(schema=SCHEMA, redacted=True, machine=document, target=document)
    (check,) = [one for one in all_checks() if one.code == code]
    (result,) = diagnose(snapshot, checks=[check]).results
    return result
