"""The harness of envcheck bench with a real PyTorch on the CPU (opt-in: pytest -m slow)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cli import environment
from processes import PATIENCE
from real_targets import real_target
from standin_bench import ROWS

import envcheck as package
from envcheck.facts.bench import Bench

pytestmark = pytest.mark.slow


def bench(folder: Path, target: str, *rows: dict[str, Any], **said: Any) -> Bench:
    told = {"rows": rows, "target": str(real_target(target)), "seconds": 0.3, "warm_up": 2.0} | said
    (folder / "tmp").mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", ROWS, json.dumps(told)],
        cwd=Path(package.__file__).parents[1], env=environment(TMPDIR=str(folder / "tmp")),
        capture_output=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    assert not list((folder / "tmp").iterdir())
    return msgspec.convert(json.loads(done.stdout)["bench"]["facts"], Bench)


def test_two_ranks_of_torch_distributed_train_one_model(tmp_path: Path) -> None:
    row = {"batch": 16, "small": True}
    together = bench(tmp_path, "torch", {"name": "all", "together": "ddp", "ranks": 2, **row})
    (run,) = together.rows
    assert run.outcome == "ok", run.reason
    assert len(run.ranks) == 2 and all(len(rank.repetitions) == 5 for rank in run.ranks)
    assert run.parameters == 396_554 or isinstance(run.parameters, int)


def test_rows_in_turn_and_the_largest_batch_on_a_cpu(tmp_path: Path) -> None:
    found = bench(
        tmp_path,
        "torch",
        {"name": "a", "group": "g", "batch": 16, "small": True},
        {"name": "b", "group": "g", "batch": 2, "small": True, "largest": True},
        repetitions=3,
    )
    a, b = found.rows
    assert a.outcome == b.outcome == "ok" and a.in_turn and b.in_turn, (a.reason, b.reason)
    assert b.row.batch == 64 and len(b.tried) == 6 and b.evidence["largest_by"] == "doubling"
    assert isinstance(a.memory.process_mib, int) and a.memory.process_mib > 50
    assert a.losses and all(loss is not None for loss in a.losses)
