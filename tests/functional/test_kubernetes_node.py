"""`envcheck fleet kubernetes-node` against a stand-in for the API server that has the chart's rules."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import helm_chart
import pytest
from cli import environment
from first_sight import case
from kubernetes_api import StandInApi, serve
from processes import PATIENCE, lines, ran
from world import enter

from envcheck import collection
from envcheck.cli.main import run
from envcheck.collection import Collected
from envcheck.exit_codes import CouldNotLook
from envcheck.facts import snapshot as snapshots
from envcheck.fleet.engines import slurm_drain

pytestmark = [
    pytest.mark.fleet,
    pytest.mark.skipif(find_spec("kubernetes") is None, reason="needs the extra kubernetes"),
]
DEMOS = Path(collection.__file__).parent / "data" / "demos"
POD = case.HERE / "second" / "faults" / "pod-without-a-gpu-request.toml"
CONDITIONS = ("fleet", "kubernetes-node", "--once", "--conditions", "--node")
TAINT = ("fleet", "kubernetes-node", "--once", "--taint", "--node")
BROKEN, DEGRADED, HEALTHY = "driver-update", "odd-machine", "healthy"
OURS = ("envcheck/gpu-broken", "DRV-002")


def rules() -> list[dict[str, Any]]:
    """Of the plain manifests."""
    import yaml

    every = yaml.safe_load_all(helm_chart.MANIFESTS.read_text())
    return next(one["rules"] for one in every if one["kind"] == "ClusterRole")


WITH_TAINT = [
    *({"verbs": ["get", "list", "patch"], "resources": ["nodes"]},),
    {"verbs": ["patch"], "resources": ["nodes/status"]},
]


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInApi]:
    api = StandInApi(rules(), "gpu01", "gpu02", "gpu03")
    monkeypatch.setattr(slurm_drain, "SETTLES", 0.0)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    with serve(api, tmp_path) as kubeconfig:
        monkeypatch.setenv("KUBECONFIG", kubeconfig)
        yield api


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Which demo the collector sees; None: it fails."""

    def see(demo: str | None) -> None:
        def collect() -> Collected:
            if demo is None:
                raise CouldNotLook("the collector was killed by SIGKILL")
            return Collected(snapshots.load((DEMOS / f"{demo}.json").read_bytes()), {})

        monkeypatch.setattr(collection, "collect", collect)

    return see


def test_the_conditions_follow_what_is_found(api: StandInApi, seen: Any) -> None:
    since = {}
    for demo, code, broken, degraded in (
        (BROKEN, 1, "True", "False"),
        (BROKEN, 1, "True", "False"),
        (None, 4, "Unknown", "Unknown"),
        (DEGRADED, 0, "False", "True"),
        (HEALTHY, 0, "False", "False"),
    ):
        seen(demo)
        api.nodes["gpu01"]["status"]["conditions"] = [
            one | {"lastTransitionTime": "2026-11-01T00:00:00Z"}
            for one in api.nodes["gpu01"]["status"]["conditions"]
        ]
        assert run([*CONDITIONS, "gpu01"]) == code
        found = api.condition("gpu01", "GPUBroken")
        assert found["status"] == broken
        assert api.condition("gpu01", "GPUDegraded")["status"] == degraded
        since[len(since)] = found["lastTransitionTime"] == "2026-11-01T00:00:00Z"
    assert list(since.values()) == [False, True, False, False, True]
    assert api.condition("gpu01", "Ready")["status"] == "True"
    assert {one for one in api.asked if not api.may(*one.split())} == set()
    assert set(api.asked) == {"get nodes", "patch nodes/status"}
    assert "DRV-002" not in found["message"] and found["reason"] == "EnvcheckHealthy"


@pytest.mark.parametrize(
    ("change", "node", "words"),
    [
        ({"rules": []}, "gpu01", "refuses a request of envcheck's (read node): 403 Forbidden"),
        ({"down": True}, "gpu01", "(read node): 503 Service Unavailable"),
        ({}, "gpu99", "404 Not Found"),
    ],
)
def test_a_refusal_is_one_sentence(
    api: StandInApi,
    seen: Any,
    capsys: pytest.CaptureFixture[str],
    change: dict[str, Any],
    node: str,
    words: str,
) -> None:
    for name, value in change.items():
        setattr(api, name, value)
    seen(BROKEN)
    assert run([*CONDITIONS, node]) == 4
    errors = capsys.readouterr().err
    assert words in errors and "Traceback" not in errors and len(errors.splitlines()) <= 2


def test_no_answer_is_one_sentence(
    api: StandInApi, seen: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(file.read_text().replace("http://127.0.0.1", "http://127.0.0.1:1/"))
    seen(BROKEN)
    assert run([*CONDITIONS, "gpu01"]) == 4
    assert "Kubernetes' API server gives no answer" in capsys.readouterr().err


def test_a_node_without_gpus_is_left_alone(api: StandInApi, seen: Any) -> None:
    del api.nodes["gpu01"]["status"]["capacity"]["nvidia.com/gpu"]
    seen(BROKEN)
    assert run([*CONDITIONS, "gpu01"]) == 1
    assert api.asked == ["get nodes"]


def test_a_taint_comes_stays_and_goes_beside_those_of_others(api: StandInApi, seen: Any) -> None:
    api.rules = WITH_TAINT
    other = {"key": "maintenance", "value": "x", "effect": "NoSchedule"}
    changes = iter([True, True])

    def between() -> None:  # somebody else taints the node, in between
        if next(changes, False):
            api.nodes["gpu01"]["spec"]["taints"] = [other]
            api.touch("gpu01")

    api.between = between
    for demo, taints in (
        (BROKEN, [("maintenance", "x"), OURS]),
        (None, [("maintenance", "x"), OURS]),
        (HEALTHY, [("maintenance", "x")]),
    ):
        seen(demo)
        run([*TAINT, "gpu01"])
        assert api.taints("gpu01") == taints


def test_a_cause_that_many_nodes_have_taints_one(
    api: StandInApi, seen: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    api.rules = WITH_TAINT
    seen(BROKEN)
    for name in api.nodes:
        assert run([*TAINT, name]) == 1
    assert [name for name in api.nodes if api.taints(name)] == ["gpu01"]
    said = capsys.readouterr().out
    assert "gpu01: tainted: DRV-002" in said
    assert "gpu03: NOT tainted, for envcheck has tainted 1 of the nodes within the hour" in said


def test_a_node_that_changes_all_the_time_is_not_tainted(
    api: StandInApi, seen: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    api.rules = WITH_TAINT
    api.between = lambda: api.touch("gpu01")
    seen(BROKEN)
    assert run([*TAINT, "gpu01"]) == 4
    assert api.taints("gpu01") == [] and "409 Conflict" in capsys.readouterr().err


def test_the_results_for_others_are_written(seen: Any, tmp_path: Path) -> None:
    look = ["fleet", "kubernetes-node", "--once", "--directory", str(tmp_path)]
    script = helm_chart.CHART / "files" / "envcheck-node-problem-detector.sh"
    for demo, codes in ((BROKEN, (1, 0)), (DEGRADED, (0, 1)), (HEALTHY, (0, 0)), (None, (2, 2))):
        seen(demo)
        run(look)
        for condition, code in zip(("GPUBroken", "GPUDegraded"), codes, strict=True):
            argv = ["sh", str(script), condition, "5", str(tmp_path)]
            done = ran(argv, text=True)
            assert done.returncode == code
            assert len(done.stdout.splitlines()) == 1 and not done.stderr
    assert snapshots.load((tmp_path / "snapshot.json").read_bytes())


def test_a_pod_that_was_not_given_the_gpus_says_nothing_of_the_node() -> None:
    enter.prepare()
    machine = case.machine(case.read(POD))
    done = enter.run(machine, ["fleet", "kubernetes-node", "--once"])
    assert done.code == 4, done.stderr
    assert done.stdout.startswith(b"silent: the GPUs could not be judged: KRN-006 This container")


@pytest.mark.parametrize("text", ["", "x", "1 a[$(touch${IFS}hacked)] x", "0 1000000000 old"])
def test_other_results_are_unknown_to_node_problem_detector(tmp_path: Path, text: str) -> None:
    (tmp_path / "GPUBroken").write_text(text + "\n")
    script = helm_chart.CHART / "files" / "envcheck-node-problem-detector.sh"
    argv = ["bash", str(script), "GPUBroken", "5", str(tmp_path)]
    done = ran(argv, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout == "envcheck has not looked for 5 minutes\n"
    assert [one.name for one in tmp_path.iterdir()] == ["GPUBroken"]


def test_it_outlives_an_api_server_that_is_away_and_ends_at_once(
    api: StandInApi, tmp_path: Path
) -> None:
    api.down = True
    argv = [sys.executable, "-m", "envcheck", "fleet", "kubernetes-node"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    argv += ["--conditions", "--node", "gpu01", "--metrics", str(port)]
    env = environment(KUBECONFIG=str(tmp_path / "kubeconfig"))
    with subprocess.Popen(
        argv, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=env
    ) as child:
        said = next(line for line in lines(child, child.stderr) if b"503" in line)
        assert said.startswith(b"envcheck: Kubernetes' API server refuses")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as answer:
            assert b"envcheck_state{" in answer.read()
        assert child.poll() is None
        child.terminate()
        assert child.wait(PATIENCE) == 0
