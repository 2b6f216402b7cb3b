"""Training on several devices and processes, with real frameworks on the CPU (opt-in: pytest -m slow).

Engaged for real: MirroredStrategy and MultiWorkerMirrored on three TensorFlows, Horovod with Gloo on two.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import system_alone
from cli import envcheck
from processes import PATIENCE, running
from real_targets import real_target

from envcheck.findings.model import CheckResult

pytestmark = pytest.mark.slow

TENSORFLOWS = pytest.mark.parametrize(
    "target", ["tensorflow-1.15", "tensorflow-2.15", "tensorflow-newest"]
)
HOROVODS = pytest.mark.parametrize("target", ["horovod-1.15", "horovod-2.15"])
STRATEGIES = ("mirrored", "multiworker")
CODES = {"ACC-014": "horovod", "ACC-015": "mirrored", "ACC-016": "multiworker"}


def doctor(target: str, *only: str, **changes: str) -> dict[str, dict[str, Any]]:
    """The results of these systems, by their names."""
    result = envcheck(
        "doctor", "--target", real_target(target), "--format", "json", "--only", *only,
        timeout=PATIENCE,
        **changes,
    )  # fmt: skip
    results = json.loads(result.stdout)["results"]
    found = {CODES[one["code"]]: one for one in results if one["code"] in CODES}
    return {name: dict(found[name]) for name in only}


def broken(target: str, module: str, setup: str, folder: Path) -> CheckResult:
    """The judgement of a system whose own parts were replaced."""
    python = real_target(target) / "bin" / "python"
    before = f"from envcheck.collector.systems import {module} as system\n{setup}"
    run = system_alone.run(python, module, folder, before=before, CUDA_VISIBLE_DEVICES="-1")
    code = next(code for code, name in CODES.items() if name == run.system)
    return system_alone.judged(code, run)


@TENSORFLOWS
def test_strategies_are_engaged_on_every_tensorflow(target: str, tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    found = doctor(target, *STRATEGIES, TMPDIR=str(tmp_path / "tmp"))
    assert {name: one["outcome"] for name, one in found.items()} == dict.fromkeys(
        STRATEGIES, "pass"
    ), found
    assert "2 replicas, sum 3 of 3" in found["mirrored"]["detail"]
    assert "2 workers in sync, sum 3 of 3" in found["multiworker"]["detail"]
    assert not running(tmp_path) and not list((tmp_path / "tmp").glob("envcheck-*"))


@HOROVODS
def test_horovod_is_engaged_over_gloo(target: str) -> None:
    found = doctor(target, "horovod")["horovod"]
    assert found["outcome"] == "pass", found
    assert "2 ranks, sum 3 of 3, equal weights, over Gloo, on the CPU" in found["detail"]


@pytest.mark.parametrize("target", ["tensorflow-1.15", "tensorflow-2.15"])
def test_a_proxy_between_workers_is_found_and_named(target: str) -> None:
    nobody = {"http_proxy": "http://127.0.0.1:9", "no_proxy": "example.org"}
    found = doctor(target, "multiworker", **nobody)["multiworker"]
    assert found["outcome"] == "warn", found
    assert "http_proxy without no_proxy" in found["findings"][0]["headline"]


ALONE = """
own = system._environ
def environ(more):
    own(more)
    return lambda rank: {"TF_CONFIG": None}
system._environ = environ
"""


def test_workers_without_tf_config_are_not_engaged(tmp_path: Path) -> None:
    result = broken("tensorflow-1.15", "multi_worker", ALONE, tmp_path)
    assert result.outcome == "fail", result
    assert "each worker trains alone" in result.findings[0].headline


def test_ranks_that_do_not_find_each_other_are_not_engaged(tmp_path: Path) -> None:
    setup = (
        "own = system.ranks.run\n"
        "one = dict(HOROVOD_RANK='0', HOROVOD_SIZE='1', HOROVOD_LOCAL_RANK='0', HOROVOD_LOCAL_SIZE='1')\n"
        "system.ranks.run = lambda params, number, seconds, environ, **more: own(\n"
        "    params, number, seconds, lambda rank: dict(environ(rank), **one), **more)"
    )
    result = broken("horovod-1.15", "horovod", setup, tmp_path)
    assert result.outcome == "fail", result
    assert "ranks train alone" in result.findings[0].headline


def horovod(folder: Path, source: str) -> str:
    """A PYTHONPATH with a Horovod for TensorFlow of this source."""
    (folder / "horovod").mkdir(parents=True)
    (folder / "horovod" / "__init__.py").write_text('__version__ = "0.28.1"\n')
    (folder / "horovod" / "tensorflow.py").write_text(source)
    return str(folder)


def test_horovod_without_its_extension_could_not_run_and_names_the_limit(tmp_path: Path) -> None:
    words = "Extension horovod.tensorflow has not been built: /x/mpi_lib.cpython-312.so not found"
    path = horovod(tmp_path / "path", f"raise ImportError({words!r})\n")
    found = doctor("tensorflow-newest", "horovod", PYTHONPATH=path)
    assert found["horovod"]["outcome"] == "could-not-run", found
    assert "has not been built" in found["horovod"]["reason"]
    assert "horovod#4290" in found["horovod"]["reason"]


def test_horovod_without_gloo_could_not_run(tmp_path: Path) -> None:
    path = horovod(tmp_path / "path", "def mpi_built(): return True\n")
    found = doctor("tensorflow-2.15", "horovod", PYTHONPATH=path)
    assert found["horovod"]["outcome"] == "could-not-run", found
    assert "it is built without Gloo" in found["horovod"]["reason"]
