"""A copy of envcheck in which the style "torch" is a stand-in, and a target whose PyTorch is one, too."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from cli import environment
from processes import PATIENCE
from pythons import bare_environment, put_distribution

import envcheck as package

STYLE = Path(__file__).with_name("standin_style.py")

# Runs rows as `envcheck bench` does, but those that a test names; prints the bench's facts and the events.
ROWS = """
import json, sys
import msgspec
from envcheck import collection
from envcheck.facts.bench import BenchRow
given = json.loads(sys.argv[1])
rows = [BenchRow(what="mlp", model="mlp", style="torch", **row) for row in given.pop("rows")]
target, where = given.pop("target"), given.pop("where", None)
events = []
work = collection.Work(seconds=200.0, bench=collection.BenchWork(asked=["mlp"], rows=rows, **given))
if where is not None:
    from envcheck.cli import sources
    seen = sources.live(where, redact=False, quiet=True).snapshot
    found = sources.live(where, quiet=True, seen=seen, work=work, events=events.append)
else:
    found = collection.collect(target, only=["host"], work=work, events=events.append)
bench = found.snapshot.target.bench
print(json.dumps({"bench": msgspec.to_builtins(bench), "events": events}))
"""


class Bench:
    """root: of the copy. target: the environment. home: its TMPDIR lies there."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "copy"
        self.home = folder
        self.variables: dict[str, str] = {}  # more of its environment
        (folder / "tmp").mkdir(parents=True)
        source = Path(package.__file__).parent
        _copy(source, self.root / "envcheck")
        style = self.root / "envcheck/collector/bench/torch"
        shutil.rmtree(style)
        style.mkdir()
        shutil.copy(STYLE, style / "__init__.py")
        self.target = make_target(folder / "target")

    def environment(self, **standin: Any) -> dict[str, str]:
        changes = self.variables | {"TMPDIR": f"{self.home}/tmp", "STANDIN": json.dumps(standin)}
        return environment(PYTHONPATH=str(self.root), **changes)

    def argv(self, *rows: dict[str, Any], **given: Any) -> list[str]:
        params = {"rows": list(rows), "target": str(self.target), "seconds": 0.1} | given
        params = {"repetitions": 3, "warm_up": 0.3} | params
        return [sys.executable, "-c", ROWS, json.dumps(params)]

    def rows(self, *rows: dict[str, Any], standin: Any = None, **given: Any) -> dict[str, Any]:
        """{name: RowRun as JSON}."""
        done = subprocess.run(
            self.argv(*rows, **given),
            cwd=self.root, env=self.environment(**(standin or {})), capture_output=True, timeout=PATIENCE,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr.decode()
        report = json.loads(done.stdout)
        self.events = report["events"]
        assert report["bench"]["outcome"] == "ok", report["bench"]
        self.bench = report["bench"]["facts"]
        return {run["row"]["name"]: run for run in self.bench["rows"]}

    def left(self) -> list[str]:
        """Files in TMPDIR."""
        return sorted(entry.name for entry in (self.home / "tmp").iterdir())


def make_target(folder: Path) -> Path:
    """An environment whose PyTorch is a version and nothing else."""
    write_torch(bare_environment(folder))
    return folder


def write_torch(packages: Path) -> None:
    (packages / "torch").mkdir(parents=True)
    (packages / "torch/__init__.py").write_text("__version__ = '2.9.0+standin'\n")
    put_distribution(packages, "torch", "2.9.0+standin", "torch/__init__.py")


def _copy(source: Path, copy: Path) -> None:
    """A package of links into envcheck, but a copy of the collector: that goes into containers as a file."""
    copy.mkdir(parents=True)
    for entry in source.iterdir():
        if entry.name == "collector":
            shutil.copytree(entry, copy / entry.name, ignore=shutil.ignore_patterns("__pycache__"))
        elif entry.name != "__pycache__":
            (copy / entry.name).symlink_to(entry)
