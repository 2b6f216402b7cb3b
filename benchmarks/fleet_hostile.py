"""A million hostile inputs for what a fleet reads of machines: the relay, Ansible's events.

    nice .venv/bin/python benchmarks/fleet_hostile.py [--inputs 1000000] [--seed 1] [--only relay]

Each input has to cost its machine alone. The first one that does more is printed, and the exit code is 1.
What is told: inputs by kind, and seconds.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY / "tests" / "unit"), str(REPOSITORY / "tests"), str(REPOSITORY)]

# Of all inputs, how many each kind has.
SHARES = {"relay": 0.65, "events": 0.35}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=SHARES, help="this kind's share of them alone")
    options = parser.parse_args()
    import fleet_fuzz  # type: ignore[import-not-found]
    from whole import whole  # type: ignore[import-not-found]

    from envcheck.facts import snapshot as snapshots

    data = snapshots.dump(whole())
    for target, share in SHARES.items():
        if options.only not in (None, target):
            continue
        count = round(share * options.inputs)
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                fleet_fuzz.fuzz(target, options.seed, count, Path(folder), data)
            except AssertionError as error:
                print(f"{error}\n{error.__cause__!r}")
                return 1
        print(f"{target:7} {count:9,} inputs {time.monotonic() - began:7.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
