"""Pages: how long one takes to be written, and from its opening in Chromium to its first paint.

    .venv/bin/python benchmarks/pages.py [--machines 1000] [--repeat 7]

Needs playwright and a Chromium (pip install -e '.[test,browser]'). Written: from the report (or the
fleet's result) to the file, in this process, which has written one before. Opened: Chromium's own
"first-contentful-paint", headless, each time in a new window. The median of the repetitions, and the worst.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1] / "tests"
for _folder in ("", "unit", "functional"):
    sys.path.insert(0, str(TESTS / _folder))

WRITTEN, OPENED = 0.3, 0.5  # seconds: what is to be reached


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=7)
    arguments = parser.parse_args()

    import demos
    import fleet_page_results
    from browser import started

    from envcheck.checks.engine import diagnose
    from envcheck.facts.snapshot import load
    from envcheck.fleet.reports import page
    from envcheck.reports import machine_page
    from envcheck.reports.model import build

    snapshot = load(demos.build("bench"))
    report = build(snapshot, diagnose(snapshot))
    fleet = fleet_page_results.fleet(arguments.machines)

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        one, many = folder / "machine.html", folder / page.INDEX

        def write_one() -> None:
            one.write_bytes(machine_page.render(report, snapshot).encode())

        written = {
            "a machine of 8 GPUs, with a bench": (one, _times(write_one, arguments.repeat)),
            f"a fleet of {arguments.machines:,}": (
                many,
                _times(lambda: page.write(fleet, folder), arguments.repeat),
            ),
        }
        print("| page | KiB | written (s): median, worst | to first paint (s): median, worst |")
        print("|---|---|---|---|")
        with started(folder / "browser") as chromium:
            for name, (file, times) in written.items():
                paints = []
                for _ in range(arguments.repeat + 1):
                    with chromium.open(file) as opened:
                        paints.append(opened.first_paint())
                size = file.stat().st_size / 1024
                print(f"| {name} | {size:.0f} | {_told(times)} | {_told(paints[1:])} |")
        print(f"| to reach | | {WRITTEN} | {OPENED} |")


def _times(run: Callable[[], None], repeat: int) -> list[float]:
    run()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return times


def _told(times: list[float]) -> str:
    return f"{statistics.median(times):.3f}, {max(times):.3f}"


if __name__ == "__main__":
    main()
