"""Memory, links and peers as they run, in their own processes, on a stand-in libcuda that really copies.

No GPU is in here: rates are made up, and the kernels are those of tests/world/c/patterns.c.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli import envcheck
from processes import lines
from system_records import Reported, command
from world import folder

from envcheck.collector.systems import links

# Slow enough that few copies are made in the time of a measurement.
RATES = {"DTOD": 20, "H2D": 5, "D2H": 4, "PEER": 6}
QUICK = {f"SHIM_{name}": str(rate) for name, rate in RATES.items()}
Told = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder.put(tmp_path_factory.mktemp("libraries"))


class Ran:
    """What a system's process told."""

    def __init__(self, stdout: bytes, killed: bool) -> None:
        result = Reported(stdout)
        self.run, self.done, self.killed = result.run, result.done, killed
        self.begun = result.stage
        self.trials: Told = {one["name"]: one for one in result.trials}

    def __getitem__(self, name: str) -> dict[str, Any]:
        """A trial's evidence."""
        evidence: dict[str, Any] = self.trials[name].get("evidence", {})
        return evidence


Runs = Callable[..., Ran]


@pytest.fixture
def ran(libraries: Path, tmp_path: Path) -> Runs:
    def start(
        module: str, mib: int | None = 24, until: str = "", gpus: int = 1, **shim: object
    ) -> Ran:
        """until: the stage in which it hangs; then it is ended."""
        params = {"device": "gpu", "gpus": [], "memory_mib": mib}
        params |= {"seconds": 30.0, "pynvml": None}
        argv = command(sys.executable, module, params)
        env = {k: v for k, v in os.environ.items() if not k.startswith(("CUDA", "SHIM_"))}
        knobs = {f"SHIM_{name.upper()}": str(value) for name, value in shim.items()}
        env |= (
            folder.variables(libraries, folder.describe(folder.h200(gpus), tmp_path))
            | QUICK
            | knobs
        )
        child = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        stdout = b""
        with child:
            for line in lines(child, child.stdout):
                stdout += line
                if until and Reported(stdout).stage == until:
                    with pytest.raises(subprocess.TimeoutExpired):
                        child.wait(0.5)
                    child.kill()
                    return Ran(stdout, True)
        assert not until, f"it ended: {stdout.decode()}"
        return Ran(stdout, False)

    return start


# -- the GPU's memory


def test_memory_that_is_well(ran: Runs) -> None:
    result = ran("memory")
    assert result.done and {one["outcome"] for one in result.trials.values()} == {"ok"}
    assert result["pattern"] == {"MiB": 24, "wrong": 0} == result["inverted pattern"]
    assert result["device"] == {
        "L2_MiB": 4.0,
        "free_MiB": 300,
        "instance": False,
        "integrated": False,
    }
    for way, mib in (("copy", 16), ("read", 8)):
        assert result[way]["GB/s"] == pytest.approx(20.0, rel=0.01), way
        assert result[way]["MiB"] == mib and result[way]["runs"] >= 3


def test_memory_that_gives_back_something_else(ran: Runs) -> None:
    result = ran("memory", wrong="memory")
    assert result["pattern"]["wrong"] == 2 and result["pattern"]["bits"] == "0x0000000000000010"
    assert len(result["pattern"]["where"]) == 1
    first, last = (int(word, 16) for word in result["pattern"]["where"][0].split(" to "))
    assert last - first == 3 * 8 - 1


def test_every_area_of_a_pattern_is_another(ran: Runs) -> None:
    from envcheck.collector.systems.shared.transfers.pattern import CHUNK, _seed
    from envcheck.collector.systems.shared.transfers.pattern_ptx import FACTOR, MASK

    assert (_seed(0), _seed(1)) == (0, CHUNK // 8 * FACTOR & MASK)


def test_an_uncorrectable_error_stands_in_the_trial(ran: Runs) -> None:
    result = ran("memory", ecc=1)
    assert "CUDA_ERROR_ECC_UNCORRECTABLE" in result.trials["pattern"]["reason"]
    assert result.done


def test_little_memory_is_made_do_with(ran: Runs) -> None:
    result = ran("memory", mib=3000, oom_mib=20)
    assert result["pattern"] == {"MiB": 20, "wrong": 0} or (
        result.trials["pattern"]["outcome"] == "out-of-memory"
    )
    assert result.trials["copy"]["outcome"] == "out-of-memory"
    assert "CUDA_ERROR_OUT_OF_MEMORY" in result.trials["copy"]["reason"]
    assert result.done


# -- the link


def test_links_that_are_well(ran: Runs) -> None:
    result = ran("links")
    assert result.done and result["round trip"] == {"MiB": 4, "wrong": 0}
    assert result["pinned to the GPU"]["GB/s"] == pytest.approx(5.0, rel=0.01)
    assert result["pinned from the GPU"]["GB/s"] == pytest.approx(4.0, rel=0.01)


def test_a_link_that_damages_data(ran: Runs) -> None:
    result = ran("links", wrong="link")
    assert result["round trip"]["wrong"] == 2
    assert result["round trip"]["where"] == ["byte 0x200000 to 0x200017 of the copy"]


def test_a_gpu_that_shares_the_host_s_memory_has_no_link(ran: Runs) -> None:
    result = ran("links", integrated=1)
    assert result.run["outcome"] == "not-applicable" and not result.trials


# -- from GPU to GPU


ONE, OTHER = "0000:83:00.0", "0000:84:00.0"


def test_peers_that_are_well(ran: Runs) -> None:
    result = ran("peers", gpus=3)
    assert result.done and len(result.trials) == 6
    assert {one["outcome"] for one in result.trials.values()} == {"ok"}
    direct = result[f"directly {ONE} to {OTHER}"]
    assert direct["GB/s"] == pytest.approx(6.0, rel=0.01)
    assert (direct["wrong"], direct["wrong_read"]) == (0, 0)


@pytest.mark.parametrize("how", ["peer", "load"])
def test_direct_access_that_damages_data(ran: Runs, how: str) -> None:
    result = ran("peers", gpus=2, wrong=how)
    direct = result[f"directly {OTHER} to {ONE}"]
    assert (direct["wrong"], direct["wrong_read"]) == ((2, 0) if how == "peer" else (0, 1))


def test_no_direct_access(ran: Runs) -> None:
    result = ran("peers", gpus=2, no_peer=1)
    assert result.trials[f"directly {ONE} to {OTHER}"]["outcome"] == "not-supported"


def test_one_gpu_and_instances_have_no_peers(ran: Runs) -> None:
    assert ran("peers", gpus=1).run["reason"] == "CUDA lists one GPU"
    assert "MIG instances" in ran("peers", gpus=2, mig=1).run["reason"]


# -- by the doctor


def test_the_doctor_fails_a_gpu_whose_memory_is_wrong_and_a_replay_says_the_same(
    libraries: Path, tmp_path: Path
) -> None:
    saved = tmp_path / "machine.json"
    unknown = folder.h200(name="NVIDIA Stand-in")  # no table knows its rate
    machine = folder.variables(libraries, folder.describe(unknown, tmp_path))
    shim = machine | QUICK | {"SHIM_WRONG": "memory"}
    asked = ("--only", "memory", "--format", "json")
    ended = envcheck("doctor", *asked, "--level", "deep", "--save", str(saved), **shim)
    report = json.loads(ended.stdout)
    checks = {one["code"]: one for one in report["results"] if one["area"] == "memory"}
    assert ended.returncode == 1, ended.stderr.decode()
    assert "words of 8 bytes in" in checks["MEM-001"]["findings"][0]["message"]
    assert {code: one["outcome"] for code, one in checks.items()} == {
        "MEM-001": "fail",
        "MEM-002": "pass",
        "MEM-003": "skipped",
        "MEM-005": "skipped",
        "MEM-006": "skipped",
    }
    # The pattern that goes over the link is damaged before it goes.
    assert checks["MEM-003"]["consequence_of"] == "MEM-001"
    assert checks["MEM-005"]["reason"] == "not applicable: one GPU"
    again = json.loads(envcheck("doctor", *asked, "--from", str(saved)).stdout)
    assert [one for one in again["results"] if one["area"] == "memory"] == list(checks.values())


# -- the host's memory


@pytest.mark.parametrize(
    ("text", "processors"), [("0-3,8\n", {0, 1, 2, 3, 8}), ("7\n", {7}), ("\n", set())]
)
def test_processors_near_a_gpu(text: str, processors: set[int]) -> None:
    assert links.processors_of(text) == processors


def test_this_thread_moves_near_the_gpu_where_the_kernel_tells(tmp_path: Path) -> None:
    device = tmp_path / "sys/bus/pci/devices" / ONE
    device.mkdir(parents=True)
    for text, moved in (("0-4095\n", True), ("\n", False), ("0-x\n", False)):
        (device / "local_cpulist").write_text(text)
        assert links.run_near(ONE, str(tmp_path)) is moved
    assert links.run_near("", str(tmp_path)) is False
