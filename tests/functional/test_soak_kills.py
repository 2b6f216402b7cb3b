"""`envcheck soak` ended by kill -9 at any time, and on full disks: nothing stays, records are whole."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cli import PYTHON, environment
from processes import PATIENCE, running, wait_for
from world import folder

from envcheck import scratch

pytestmark = pytest.mark.drill

KILLS = 66  # of envcheck itself, of its collector, and of a GPU's process, in turn
AT_ONCE = 3
SMALL = 4 * 128  # cores: four multiprocessors
LONGEST = 120.0  # seconds until nothing may be left, on however busy a machine


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder.put(tmp_path_factory.mktemp("lib"))


def begun(libraries: Path, home: Path, *arguments: str | Path) -> subprocess.Popen[bytes]:
    (home / "tmp").mkdir(parents=True, exist_ok=True)
    env = environment(HOME=str(home), TMPDIR=str(home / "tmp"))
    env |= folder.variables(libraries, folder.describe(folder.h200(2, cores=SMALL), home / "gpus"))
    env |= {"SHIM_OOM_MIB": "128"}  # two GPUs' memory is the host's here
    argv = [PYTHON, "-m", "envcheck", "soak", *map(str, arguments)]
    return subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def lines_of(path: Path) -> list[dict[str, object]]:
    """Its records: each line is whole."""
    text = path.read_text() if path.exists() else ""
    assert text == "" or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def victim(home: Path, child: subprocess.Popen[bytes], kind: str) -> int | None:
    """The process to kill; None where it is not there at the time."""
    if kind == "itself":
        return child.pid
    word = {"collector": b"envcheck.collector", "worker": b"soak.child"}[kind]
    found = [pid for pid, _parent, command in running(home) if word in command]
    found = [pid for pid in found if pid != child.pid]
    return found[0] if found else None


def kill(libraries: Path, home: Path, number: int) -> tuple[str, int]:
    """(what was killed, how many records were written)."""
    kind = ("itself", "collector", "worker")[number % 3]
    kept = home / "lines.json"
    arguments = ("--for", "20m", "--every", "1s", "--fail-fast", "--format", "json")
    child = begun(libraries, home, *arguments, "--output", kept)
    try:
        time.sleep(random.Random(number).uniform(0.0, 12.0))
        pid = victim(home, child, kind)
        if pid is None:  # too early for that one
            kind, pid = "itself", child.pid
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            child.kill()
            kind = "itself"
        out, errors = child.communicate(timeout=LONGEST)
        assert b"Traceback" not in out + errors, (number, kind, errors)
        assert child.returncode in ({-9} if kind == "itself" else {1, 3, 4}), (number, kind, errors)
        assert wait_for(lambda: not running(home), LONGEST), (number, kind, running(home))
        minutes = [one["minute"] for one in lines_of(kept) if "minute" in one]
        assert minutes == list(range(1, len(minutes) + 1)), (number, kind)
        left = [*(home / "tmp").iterdir()]
        if kind == "itself":
            # Its directories stay. No living process holds them, so prune takes them after a moment.
            assert all(one.name.startswith(scratch.HELD) for one in left), left
            for one in left:
                os.utime(one, (0, 0))
            pruned = [PYTHON, "-m", "envcheck", "prune"]
            env = environment(HOME=str(home), TMPDIR=str(home / "tmp"))
            subprocess.run(pruned, env=env, capture_output=True, timeout=LONGEST, check=True)
            left = [*(home / "tmp").iterdir()]
        assert not left, (number, kind, left)
        return kind, len(minutes)
    finally:
        if child.poll() is None:
            child.kill()
            child.communicate()


def test_sixty_six_kills_leave_nothing_and_what_was_written_is_readable(
    libraries: Path, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        ended = list(pool.map(lambda n: kill(libraries, tmp_path / str(n), n), range(KILLS)))
    assert len(ended) == KILLS
    found = [written for _kind, written in ended]
    print(f"{KILLS} kills:", {kind: [k for k, _w in ended].count(kind) for kind, _w in ended})
    assert any(found), "none came to a record"


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "small", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, check=False).returncode:
        pytest.skip("no small file system here: it takes root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_fills_up_ends_no_soak_and_cuts_no_line(
    libraries: Path, tmp_path: Path, small: Path
) -> None:
    (small / "other").write_bytes(bytes(48 << 10))
    kept, lines = tmp_path / "kept.json", small / "lines.json"
    arguments = ("--for", "30s", "--every", "1s", "--format", "json")
    child = begun(libraries, tmp_path, *arguments, "--output", lines, "--save", kept)
    _out, errors = child.communicate(timeout=PATIENCE)
    output = errors.decode()
    assert (
        child.returncode == 2 and "No space left on device" in output and "Traceback" not in output
    )
    assert lines_of(lines), "what was written is whole"
    soak = json.loads(kept.read_text())["machine"]["soak"]["facts"]
    assert soak["seconds"] >= 30 and soak.get("stopped", "") == "", "it went on"
    assert wait_for(lambda: not running(tmp_path), LONGEST), running(tmp_path)


def test_a_full_disk_for_the_snapshot_keeps_no_result_back(
    libraries: Path, tmp_path: Path, small: Path
) -> None:
    (small / "other").write_bytes(bytes(60 << 10))
    child = begun(libraries, tmp_path, "--for", "30s", "--save", small / "kept.json")
    out, errors = child.communicate(timeout=PATIENCE)
    assert child.returncode == 2 and b"No space left on device" in errors
    assert b"products compared" in out, (out, errors)
    assert [path.name for path in small.iterdir()] == ["other"]


def test_a_full_temporary_directory_costs_no_result(
    libraries: Path, tmp_path: Path, small: Path
) -> None:
    (small / "tmp").mkdir()
    (small / "other").write_bytes(bytes(64 << 10))
    child = begun(libraries, small, "--for", "30s", "--every", "1s")
    out, errors = child.communicate(timeout=PATIENCE)
    assert b"Traceback" not in out + errors and b"internal" not in errors, errors
    # 1: a busy machine slows the stand-ins down, which is reported as a rate that fell
    assert child.returncode in (0, 1) and b"products compared" in out, (out, errors)
    assert wait_for(lambda: not running(small), LONGEST), running(small)
