"""One run of a program, watched from outside: its time, its memory, and what it left on the disk when."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

LOOK = 0.01  # seconds between two looks
LIMIT = 3600.0  # seconds that a run may take


@dataclass
class Run:
    """What was seen. Times are seconds since the program was started."""

    seconds: float = 0.0
    peak: int = 0  # bytes: the most of its own process, without its children
    first_byte: float | None = None  # when uv's cache had the first byte of a wheel
    steps: dict[str, float] = field(default_factory=dict)  # of the journal
    killed: bool = False


def run(
    argv: Sequence[str | Path],
    env: Mapping[str, str],
    *,
    log: Path,
    cache: Path | None = None,
    journal: Path | None = None,
    kill_when: Callable[[], bool] | None = None,
) -> Run:
    """Run it to its end, or kill it (-9) as soon as ``kill_when`` says so.

    cache: uv's, to see the first byte. journal: that of its environment. Raises SystemExit with the
    end of its output where it fails.
    """
    result = Run()
    os.sync()  # what the run before wrote is not this one's business
    with log.open("wb") as output:
        started = time.perf_counter()
        process = subprocess.Popen(
            argv, env=dict(env), stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        try:
            while process.poll() is None:
                _look(result, process.pid, time.perf_counter() - started, cache, journal)
                if kill_when is not None and kill_when():
                    process.kill()
                    result.killed = True
                elif time.perf_counter() - started > LIMIT:
                    process.kill()
                time.sleep(LOOK)
        finally:
            process.kill()  # where this program is ended itself
            process.wait()
        result.seconds = time.perf_counter() - started
    _steps(result, result.seconds, journal)
    if process.returncode and not result.killed:
        words = log.read_text(errors="replace")[-3000:]
        raise SystemExit(f"{' '.join(map(str, argv))} ended with {process.returncode}:\n{words}")
    return result


def size(folder: Path) -> int:
    """Bytes in all files below."""
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(where) / name).stat().st_size
            except OSError:  # it was renamed meanwhile
                continue
    return total


def _look(run: Run, pid: int, now: float, cache: Path | None, journal: Path | None) -> None:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        for line in status.splitlines():
            if line.startswith("VmHWM:"):
                run.peak = max(run.peak, int(line.split()[1]) * 1024)
    except OSError:  # it has just ended
        pass
    if run.first_byte is None and cache is not None and _has_bytes(cache):
        run.first_byte = now
    _steps(run, now, journal)


def _has_bytes(cache: Path) -> bool:
    return any(size(folder) for part in (".tmp*", "archive-v*") for folder in cache.glob(part))


def _steps(run: Run, now: float, journal: Path | None) -> None:
    if journal is None or not journal.exists():
        return
    for line in journal.read_text().splitlines():
        try:
            run.steps.setdefault(json.loads(line)["step"], now)
        except ValueError:  # it is being written
            continue
