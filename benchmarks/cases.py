"""What the doctor tells of cases that it has never seen (tests/first_sight):

    .venv/bin/python benchmarks/cases.py CASE.toml…          prints their reports
    .venv/bin/python benchmarks/cases.py --build CASE.toml…  only makes their machines
    .venv/bin/python benchmarks/cases.py --score CASE.toml…  holds the reports against the cases

Needs gcc and name spaces (as root, or where users may make them).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
for folder in ("", "unit", "functional"):
    sys.path.insert(0, str(REPOSITORY / "tests" / folder))

from faulty import run  # noqa: E402
from first_sight import case, score  # noqa: E402
from world import enter  # noqa: E402
from world.machine import tree  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--build", action="store_true", help="make the machines and look at nothing")
    way.add_argument("--score", action="store_true", help="a line for each: what was named")
    parser.add_argument("case", nargs="+", type=Path)
    options = parser.parse_args()
    if missing := [str(path) for path in options.case if not path.is_file()]:
        parser.error(f"no such file: {', '.join(missing)}")
    show = _build if options.build else _score if options.score else _report
    # Read before there are threads: msgspec dies where two of them meet a type for the first time.
    cases = [(path.stem, case.read(path)) for path in options.case]
    for text in run.side_by_side(lambda one: show(*one), cases):
        print(text, flush=True)
    return 0


def _build(name: str, one: case.Case) -> str:
    return f"{name}: {len(tree(case.machine(one)))} files"


def _report(name: str, one: case.Case) -> str:
    machine = case.machine(one)
    ended = enter.run(machine, ["doctor", "--level=quick", *machine.arguments])
    words = (ended.stdout + ended.stderr).decode("utf-8", "replace")
    return f"==== {name} (exit code {ended.code})\n{words}"


def _score(name: str, one: case.Case) -> str:
    try:
        seen = score.judge(one, run.report(case.machine(one)))
    except (RuntimeError, TimeoutError) as error:
        return f"-- {name}: {error}"
    marks = ("n" if seen.named else "-") + ("r" if seen.remedied else "-")
    others = f"; besides: {', '.join(seen.others)}" if seen.others else ""
    return f"{marks} {name}: {', '.join(seen.codes) or 'nothing'}{others}"


if __name__ == "__main__":
    sys.exit(main())
