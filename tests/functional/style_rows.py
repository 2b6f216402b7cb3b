"""Rows of a style in a real framework's process, several in one: what its Training tells of each."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import msgspec
from processes import begun
from real_targets import real_target

import envcheck as package
from envcheck.facts.bench import BenchRow

_ENVIRON = {
    "CUDA_VISIBLE_DEVICES": "-1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "KERAS_BACKEND": "tensorflow",
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_backend_optimization_level=0",
}
ROOT = Path(package.__file__).parents[1]
SCRIPT = """
import json, sys
package = type(sys)("envcheck")
package.__path__ = [sys.argv[1] + "/envcheck"]
sys.modules["envcheck"] = package
from envcheck.collector.bench import styles
from envcheck.collector.bench.styles import Place
from envcheck.collector.kernels.failures import NotSupported

def reported(row, style, framework):
    try:
        training = style.build(framework, row, Place(**row.pop("place")))
        return WORK(training, row)
    except NotSupported as error:
        return {"not_supported": str(error)}

def WORK(training, row):
    found = {"parameters": training.parameters, "skipped": 0, "losses": []}
    for _step in range(row["taken"]):
        found["skipped"] += training.run(1)
        found["losses"].append(training.loss())
    if not row["unseen"]:
        found["evidence"] = training.evidence()
    return found

{setup}
rows = json.load(sys.stdin)
style = styles.load(rows[0]["style"])
framework = __import__(style.FRAMEWORK)
print("@" + json.dumps([reported(row, style, framework) for row in rows]))
"""


def row(style: str, model: str, **fields: Any) -> dict[str, Any]:
    """taken: steps. unseen: no evidence is asked for. place: a Place's fields."""
    usual = {"taken": 0, "unseen": False, "place": {}}
    own = {name: fields.pop(name, value) for name, value in usual.items()}
    fields = {"style": style, "small": True, "batch": 8, "compiled": style == "jax", **fields}
    return {
        **msgspec.structs.asdict(BenchRow(name=model, what=model, model=model, **fields)),
        **own,
    }


def start(
    rows: list[dict[str, Any]], target: str, setup: str = "", **environ: str
) -> subprocess.Popen[str]:
    """setup: code that comes before the rows; it may give WORK(training, row) another meaning."""
    python = real_target(target) / "bin" / "python"
    child = begun(
        [python, "-c", SCRIPT.replace("{setup}", setup), str(ROOT)],
        stdin=subprocess.PIPE,
        text=True,
        env={**os.environ, **_ENVIRON, **environ},
    )
    assert child.stdin is not None
    child.stdin.write(json.dumps(rows))
    child.stdin.close()
    child.stdin = None
    return child


def answer(child: subprocess.Popen[str], seconds: float = 500) -> list[dict[str, Any]]:
    try:
        output, errors = child.communicate(timeout=seconds)
    finally:
        child.kill()
    lines = [line for line in output.splitlines() if line.startswith("@")]
    assert lines, errors[-3000:]
    found: list[dict[str, Any]] = json.loads(lines[-1][1:])
    return found


def reported(rows: list[dict[str, Any]], target: str, **options: Any) -> list[dict[str, Any]]:
    return answer(start(rows, target, **options))
