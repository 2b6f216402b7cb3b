"""NCCL between GPUs that are stand-ins: a libnccl made here really sums between processes, or misbehaves."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import probing
import pytest
from cli import environment
from processes import ran
from pythons import bare_environment
from system_records import Reported, command
from world import folder as loose

from envcheck.collector.runtime import process

Trials = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = loose.put(tmp_path_factory.mktemp("libraries"), ["libcuda.so.1", "libnccl.so.2"])
    return loose.describe(loose.h200(2), made)


class Ran:
    def __init__(self, report: Reported) -> None:
        self.run = report.run
        self.done = report.done
        self.trials: Trials = {one["name"]: one for one in report.trials}

    def evidence(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.trials[name].get("evidence", {})
        return found


def nccl(libraries: Path, folder: Path, seconds: float = 40.0, **shim: str) -> Ran:
    """What the system tells of two GPUs; it leaves nothing where it worked."""
    work = folder / "work"
    work.mkdir()
    params = {
        "root": str(probing.REPOSITORY),
        "module": "nccl",
        "seconds": seconds,
        "memory_mib": 80,
        "libraries": {"libnccl": [str(libraries / "libnccl.so.2")]},
    }
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("CUDA", "NCCL", "LD_"))}
    shim = {"CUDA_VISIBLE_DEVICES": "0,1", "SHIM_FOLDER": str(folder), **shim}
    argv = command(sys.executable, "nccl", params)
    ended = process.run(
        argv, 120, env=clean | loose.variables(libraries, libraries) | shim, cwd=str(work)
    )
    output = Reported(ended.stdout)
    assert output.done, ended.tail(20)
    assert list(work.iterdir()) == []
    return Ran(output)


def test_two_gpus_sum_exactly_and_one_rank_gives_its_own_numbers(
    libraries: Path, tmp_path: Path
) -> None:
    result = nccl(libraries, tmp_path)
    assert set(result.trials) == {"all-reduce", "one rank"}
    together = result.evidence("all-reduce")
    assert result.trials["all-reduce"]["outcome"] == "ok"
    assert together["compared"] == 2 * 3 * (1 << 20)
    assert together["wrong"] == 0
    assert together["algorithm"] == "Ring"
    assert together["transports"] == ["P2P/CUMEM"]
    assert (together["version"], together["built_cuda"]) == ("2.21.5", "12.4")
    assert {name for name in together if name.startswith("bus_")} == {"bus_1_mib", "bus_32_mib"}
    assert together["bus_32_mib"] == pytest.approx(300, rel=0.01)
    assert result.trials["one rank"]["control"]
    assert result.evidence("one rank") == {"ranks": 1, "own_numbers": 2}


def test_where_multicast_is_used_it_is_run_without_it_too(libraries: Path, tmp_path: Path) -> None:
    result = nccl(libraries, tmp_path, SHIM_NVLS="1")
    assert result.evidence("all-reduce")["algorithm"] == "NVLS"
    assert result.evidence("NCCL_NVLS_ENABLE=0")["algorithm"] == "Ring"
    assert result.evidence("NCCL_NVLS_ENABLE=0")["wrong"] == 0


def test_a_wrong_sum_is_told_by_its_rank_and_type_and_direct_transfers_are_tried_without(
    libraries: Path, tmp_path: Path
) -> None:
    result = nccl(libraries, tmp_path, SHIM_NCCL="wrong-p2p")
    assert result.evidence("all-reduce")["wrong"] == 1
    assert result.evidence("all-reduce")["wrong_in"] == ["rank 1, float32: 1 of 1048576"]
    assert result.evidence("NCCL_P2P_DISABLE=1")["wrong"] == 0
    assert result.evidence("NCCL_P2P_DISABLE=1")["transports"] == ["SHM"]


@pytest.mark.parametrize("how", ["hang", "hang-join"])
def test_a_hang_is_told_with_its_stage_and_leaves_no_shared_memory(
    libraries: Path, tmp_path: Path, how: str
) -> None:
    segment = f"/dev/shm/nccl-test-{os.getpid()}"
    result = nccl(libraries, tmp_path, 24.0, SHIM_NCCL=f"{how}-p2p", SHIM_SEGMENT=segment)
    assert result.trials["all-reduce"]["outcome"] == "error"
    stage = {"hang": "sum", "hang-join": "join"}[how]
    assert result.evidence("all-reduce")["hung"] is True
    assert result.evidence("all-reduce")["stages"] == [f"rank 0: {stage}", f"rank 1: {stage}"]
    assert result.evidence("one rank")["own_numbers"] == 2
    assert result.evidence("NCCL_P2P_DISABLE=1")["wrong"] == 0
    assert not Path(segment).exists()


def test_what_nccl_warns_of_is_told_with_its_error(libraries: Path, tmp_path: Path) -> None:
    warning = "Error while creating shared memory segment /dev/shm/nccl-x (size 9637888)"
    result = nccl(libraries, tmp_path, SHIM_NCCL="fail", SHIM_WARN=warning)
    assert result.trials["all-reduce"]["reason"].startswith(
        "RuntimeError: rank 0: NcclError: ncclCommInitRank: ncclSystemError"
    )
    assert result.evidence("all-reduce")["warnings"] == [warning]
    assert result.evidence("one rank")["own_numbers"] == 2
    assert set(result.trials) == {"all-reduce", "one rank"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shim", "state", "words"),
    [
        ({}, "pass", "exact sums on 2 GPUs, Ring over P2P/CUMEM"),
        ({"SHIM_NCCL": "wrong-p2p"}, "fail", "but not without direct transfers between the GPUs"),
    ],
    ids=["engaged", "wrong"],
)
def test_the_doctor_runs_it_on_two_gpus_and_says_what_it_saw(
    libraries: Path, tmp_path: Path, shim: dict[str, str], state: str, words: str
) -> None:
    target = tmp_path / "target"
    bare_environment(target)
    shim = loose.variables(libraries, libraries) | {"SHIM_FOLDER": str(tmp_path)} | shim
    env = {k: v for k, v in environment(**shim).items() if not k.startswith(("CUDA", "NCCL"))}
    arguments = ["doctor", "--target", str(target), "--only", "nccl", "--format", "json"]
    done = ran([sys.executable, "-m", "envcheck", *arguments], text=True, env=env)
    found = {one["code"]: one for one in json.loads(done.stdout)["results"]}
    assert found["ACC-012"]["outcome"] == state, done.stdout
    assert words in json.dumps(found["ACC-012"])
    assert found["ACC-013"]["outcome"] == ("pass" if state == "pass" else "skipped")


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    before = set(Path("/dev/shm").iterdir())
    yield
    assert set(Path("/dev/shm").iterdir()) - before == set()
