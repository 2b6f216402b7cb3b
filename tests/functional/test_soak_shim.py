"""`envcheck soak` from the command line to the kernels' launches, on stand-ins for libcuda and NVML.

No GPU is in here: products take made-up time, and are C (tests/world/c); the PTX is run by
tests/unit/test_soak_ptx.py.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli import PYTHON, environment
from processes import PATIENCE, lines, ran, running, wait_for
from world import folder

from envcheck.facts.snapshot import load
from envcheck.facts.soak import Soak

pytestmark = pytest.mark.heavy

Soaked = Callable[..., tuple[int, Soak, str]]


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder.put(tmp_path_factory.mktemp("lib"))


class Begun:
    """A soak that runs."""

    def __init__(self, child: subprocess.Popen[bytes], home: Path) -> None:
        self.child, self.home = child, home
        self.lines: list[str] = []

    def until(self, words: str) -> str:
        """The line that has these words; it fails where the soak ends without."""
        for raw in lines(self.child, self.child.stdout):
            self.lines.append(raw.decode())
            if words in self.lines[-1]:
                return self.lines[-1]
        raise AssertionError(f"no {words!r} in {self.lines}; {self.rest()}")

    def until_all_compute(self, gpus: int = 2) -> None:
        """Each has shown a rate: it has finished its first round, and more products after it."""
        computed: set[str] = set()
        while len(computed) < gpus:
            computed |= set(re.findall(r"(GPU \d+)  \S+ TFLOP/s", self.until("TFLOP/s")))

    def rest(self) -> str:
        out, errors = self.child.communicate(timeout=PATIENCE)
        return out.decode() + errors.decode()


Begin = Callable[..., Begun]


@pytest.fixture
def begin(libraries: Path, tmp_path: Path) -> Iterator[Begin]:
    begun: list[Begun] = []

    def start(*arguments: str | Path, gpus: int = 2, used: bool = False, **shim: object) -> Begun:
        (tmp_path / "tmp").mkdir(exist_ok=True)
        machine = folder.h200(gpus, cores=4 * 128)
        if used:
            machine.gpu(0).change(processes=[(4242, 20480)])
        knobs = {f"SHIM_{name.upper()}": str(value) for name, value in shim.items()}
        env = environment(HOME=str(tmp_path), TMPDIR=str(tmp_path / "tmp"))
        env |= folder.variables(libraries, folder.describe(machine, tmp_path / "gpus")) | knobs
        argv = [PYTHON, "-m", "envcheck", "soak", *map(str, arguments)]
        child = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        begun.append(Begun(child, tmp_path))
        return begun[-1]

    yield start
    for one in begun:
        if one.child.poll() is None:
            one.child.kill()
        one.child.communicate()


@pytest.fixture
def failed_fast(begin: Begin, tmp_path: Path) -> Soaked:
    """A soak that ends at its first failure: (exit code, its facts, what it wrote)."""

    def run(**shim: Any) -> tuple[int, Soak, str]:
        kept = tmp_path / "kept.json"
        arguments = ("--for", "5m", "--every", "1s", "--fail-fast", "--save", kept)
        one = begin(*arguments, **shim)
        output = one.rest()
        assert kept.is_file(), output
        probe = load(kept.read_bytes()).machine.soak
        assert probe is not None and probe.facts is not None, output
        return one.child.returncode, probe.facts, output

    return run


def test_a_flipped_bit_ends_it_and_is_told_with_gpu_place_and_words(failed_fast: Soaked) -> None:
    code, soak, output = failed_fast(flip="1:40")
    assert (code, soak.stopped) == (1, "fail-fast")
    assert soak.gpus[0].wrong == 0 and soak.gpus[0].products > 0
    (seen,) = soak.gpus[1].mismatches
    # block 1 of the 40th product, on the multiprocessor that had it then
    assert (seen.what, seen.product, seen.words, seen.unit) == ("product", 40, 1, 40 + 41 % 8)
    assert int(seen.found, 16) ^ int(seen.wanted, 16) == 1 << 5
    assert "FAIL: 1 wrong result" in output and "SOAK-001" in output
    assert "FAIL: GPU 1 NVIDIA H200 at 0000:84:00.0 computed wrong results under load: 1" in output


def test_a_multiprocessor_that_is_always_wrong_is_found_at_the_first(failed_fast: Soaked) -> None:
    code, soak, output = failed_fast(odd_unit="0:0")
    first, *others = soak.gpus[0].mismatches
    assert code == 1 and first.what == "first" and {one.unit for one in (first, *others)} == {42}
    assert "came from multiprocessor 42: a defect" in " ".join(output.split())


def test_a_gpu_that_always_computes_otherwise_is_found_beside_its_peers(
    begin: Begin, tmp_path: Path
) -> None:
    kept = tmp_path / "kept.json"
    one = begin("--for", "20m", "--every", "1s", "--save", kept, odd="1:0", gpus=3)
    one.until_all_compute(3)
    one.child.send_signal(signal.SIGINT)
    output = one.rest()
    probe = load(kept.read_bytes()).machine.soak
    assert probe is not None and probe.facts is not None, output
    gpus = probe.facts.gpus
    assert [gpu.wrong > 0 for gpu in gpus] == [False, True, False]
    assert {one.what for one in gpus[1].mismatches} == {"peers"}


def test_memory_that_forgets_a_bit_is_found(failed_fast: Soaked) -> None:
    _code, soak, _told = failed_fast(memory_flip="0:30")
    (seen,) = soak.gpus[0].mismatches
    assert (seen.what, seen.words, seen.bits) == ("memory", 1, "0x0000001000000000")


def test_the_others_go_on_where_one_dies_and_its_death_has_a_time(
    begin: Begin, tmp_path: Path
) -> None:
    kept = tmp_path / "kept.json"
    one = begin(
        "--for", "30s", "--every", "3s", "--format", "json", "--save", kept, dies="0:20", gpus=2
    )  # fmt: skip
    lines = [json.loads(line) for line in one.rest().splitlines() if line.startswith("{")]
    assert one.child.returncode == 1
    minutes, summary = lines[:-1], lines[-1]["summary"]
    assert [line["minute"] for line in minutes] == list(range(1, len(minutes) + 1))
    deaths = [
        line["minute"]
        for line in minutes
        for g in line["gpus"]
        if any("died" in failure for failure in g["failures"])
    ]
    assert len(deaths) == 1, minutes
    after = [line for line in minutes if line["minute"] > deaths[0]]
    assert {g["index"] for line in after for g in line["gpus"]} == {1}, "one alone is left"
    dead, alive = summary["gpus"]
    assert dead["outcome"] == "died" and 0 < dead["ended"] < 30 and alive["outcome"] == "ok"
    assert summary["verdict"] == "fail" and summary["stopped"] == ""
    assert summary["seconds"] >= 30 and alive["products"] > 100
    again = ran(
        [sys.executable, "-m", "envcheck", "doctor", "--only", "soak", "--from", kept],
        env=environment(),
    )
    assert again.returncode == 1 and "died under load" in " ".join(again.stdout.decode().split())


def test_ctrl_c_shows_what_is_done(begin: Begin) -> None:
    one = begin("--for", "20m", "--every", "1s")
    one.until("0:0")
    one.child.send_signal(signal.SIGINT)
    output = one.rest()
    assert one.child.returncode == 130
    assert "stopped by its user" in " ".join(output.split()) and "products" in output
    assert wait_for(lambda: not running(one.home)), running(one.home)


@pytest.mark.parametrize("victim", ["envcheck", "collector"])
def test_kill_9_leaves_no_process_and_its_lines_are_whole(
    begin: Begin, tmp_path: Path, victim: str
) -> None:
    kept = tmp_path / "lines.json"
    one = begin("--for", "20m", "--every", "1s", "--format", "json", "--output", kept, oom_mib=128)
    assert wait_for(lambda: kept.exists() and kept.read_bytes().count(b"\n") > 1)
    there = running(one.home)
    assert len(there) >= 4, "itself, the collector, two GPUs, and what samples"
    (collector,) = [pid for pid, parent, _words in there if parent == one.child.pid]
    os.kill(one.child.pid if victim == "envcheck" else collector, signal.SIGKILL)
    assert "Traceback" not in one.rest()
    assert wait_for(lambda: not running(one.home)), running(one.home)
    text = kept.read_text()
    found = [json.loads(line) for line in text.splitlines()]
    assert text.endswith("\n") and [line.get("minute") for line in found[:2]] == [1, 2]


def test_a_disk_that_fills_up_ends_no_soak_and_cuts_no_line(begin: Begin, tmp_path: Path) -> None:
    small, kept = tmp_path / "small", tmp_path / "kept.json"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "small", str(small)]
    if ran(mount).returncode:
        pytest.skip("no small file system here: it takes root")
    try:
        (small / "other").write_bytes(bytes(48 << 10))
        words = ("--for", "30s", "--every", "1s", "--format", "json", "--output")
        one = begin(*words, small / "lines.json", "--save", kept, oom_mib=128)
        output = one.rest()
        assert one.child.returncode == 2 and "No space left on device" in output
        assert "Traceback" not in output
        text = (small / "lines.json").read_text()
        assert [json.loads(line) for line in text.splitlines()] and text.endswith("\n")
    finally:
        subprocess.run(["umount", str(small)], check=True)
    soak = json.loads(kept.read_text())["machine"]["soak"]["facts"]
    assert soak["seconds"] >= 30 and soak.get("stopped", "") == "", "it went on"


def test_a_killed_process_of_one_gpu_is_that_gpus_death(begin: Begin) -> None:
    one = begin("--for", "20m", "--every", "1s", "--fail-fast")
    one.until_all_compute()
    workers = [pid for pid, _parent, command in running(one.home) if b"soak.child" in command]
    assert len(workers) == 2
    os.kill(workers[0], signal.SIGKILL)
    output = " ".join(one.rest().split())
    assert one.child.returncode == 1 and "died by signal 9 (SIGKILL)" in output


def test_a_gpu_in_use_is_left_alone_and_taken_where_that_is_wanted(begin: Begin) -> None:
    one = begin("--for", "30s", "--gpu", "0", used=True)
    output = one.rest()
    assert one.child.returncode == 3 and "is using it" in output
    other = begin("--for", "20m", "--every", "1s", "--gpu", "0", "--busy-ok", used=True)
    assert "GPU 0" in other.until("0:0")


def test_no_gpu_is_one_sentence(begin: Begin) -> None:
    one = begin("--for", "30s", gpus=0)
    output = one.rest()
    assert one.child.returncode == 3 and "CUDA lists no GPU" in output and "Traceback" not in output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--for", "30"), "is not a duration: write 90s, 30m, 12h, 2d or 1h30m"),
        (("--for", "1s"), "'1s' is not between 30s and 30d"),
        (("--for", "60d"), "'60d' is not between 30s and 30d"),
        (("--for", "1d", "--every", "1s"), "too short for so long a soak: 60s is the least"),
        (("--for", "1m", "--gpu", "x"), "is not a GPU's number"),
        (("--for", "1m", "--gpu", "9"), "nvidia-smi lists no such GPU"),
        (("--for", "1m", "--target", "image:x"), "not in a container"),
        ((), "the following arguments are required: --for"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(
    begin: Begin, arguments: tuple[str, ...], words: str
) -> None:
    one = begin(*arguments)
    output = one.rest()
    assert one.child.returncode == 2 and words in output and "Traceback" not in output
