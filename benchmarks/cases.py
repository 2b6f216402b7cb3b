"""What the doctor tells of cases that it has never seen:

    .venv/bin/python benchmarks/cases.py CASE.toml…          prints their reports
    .venv/bin/python benchmarks/cases.py --build CASE.toml… only makes their machines

Needs gcc and name spaces (as root, or where users may make them).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
for folder in ("", "unit", "functional"):
    sys.path.insert(0, str(REPOSITORY / "tests" / folder))

from first_sight import case  # noqa: E402
from world import enter  # noqa: E402
from world.machine import tree  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--build", action="store_true", help="make the machines and look at nothing"
    )
    parser.add_argument("case", nargs="+", type=Path)
    options = parser.parse_args()
    for path in options.case:
        machine = case.machine(case.read(path))
        if options.build:
            print(f"{path.stem}: {len(tree(machine))} files")
            continue
        ended = enter.run(machine, ["doctor", "--level=quick", *machine.arguments])
        print(f"==== {path.stem} (exit code {ended.code})")
        print(ended.stdout.decode("utf-8", "replace"), ended.stderr.decode("utf-8", "replace"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
