"""Deep looks for made-up machines: recorded ones of real frameworks on a CPU, and one of GPUs in use.

deep_looks.json holds the acceleration sections of `envcheck collect --level deep` on a machine without a GPU,
a target each; `python tests/unit/deep.py FILE…` makes it of such Snapshots.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from targets import good_target

from envcheck.collector import systems
from envcheck.collector.kernels.selection import choose
from envcheck.collector.options import Options
from envcheck.collector.systems.running import jobs
from envcheck.facts.acceleration import Acceleration
from envcheck.facts.base import Probe
from envcheck.facts.snapshot import Snapshot

FILE = Path(__file__).with_name("deep_looks.json")


@cache
def recorded() -> dict[str, dict[str, Acceleration]]:
    """{"TensorFlow 2.15.1": {"machine", "target"}}."""
    report: dict[str, dict[str, Any]] = json.loads(FILE.read_text())
    return {
        name: {place: msgspec.convert(one, Acceleration) for place, one in both.items()}
        for name, both in report.items()
    }


def looked(snapshot: Snapshot, name: str) -> Snapshot:
    """The machine with the recorded look into a target of that name."""
    return _with(snapshot, recorded()[name])


def in_use(snapshot: Snapshot) -> Snapshot:
    """The machine as a deep look finds it while all of its GPUs work: nothing is run on them."""
    snapshot = _with_target(snapshot)
    documents: dict[str, Any] = {
        "machine": json.loads(msgspec.json.encode(snapshot.machine)),
        "target": json.loads(msgspec.json.encode(snapshot.target)),
    }
    devices, why = choose(documents["machine"], Options(), {})
    for device in devices:
        device.outcome, device.reason = "busy", "python3 (process 4711) is using it"
    loaded = systems.load()
    planned = jobs.plan(loaded, sorted(one.name for one in loaded), (devices, why), documents)
    sections = {}
    for place in ("machine", "target"):
        here = [job for job in planned if job.outcome and job.system.document == place]
        runs = [job.facts() for job in here]
        of_it = sorted({one.name for one in loaded if one.document == place})
        sections[place] = msgspec.convert({"systems": of_it, "runs": runs}, Acceleration)
    return _with(snapshot, sections)


def _with(snapshot: Snapshot, sections: dict[str, Acceleration]) -> Snapshot:
    replace = msgspec.structs.replace
    snapshot = _with_target(snapshot)
    places = {
        place: replace(document, acceleration=Probe(outcome="ok", facts=sections[place]))
        for place in ("machine", "target")
        if (document := getattr(snapshot, place)) is not None
    }
    return replace(snapshot, **places)


def _with_target(snapshot: Snapshot) -> Snapshot:
    """The machine with an environment in which TensorFlow works, where none was looked at."""
    if snapshot.target is not None:
        return snapshot
    return msgspec.structs.replace(snapshot, target=good_target())


def main() -> None:
    values = {}
    for file in sys.argv[1:]:
        snapshot = json.loads(Path(file).read_text())
        both = {place: snapshot[place]["acceleration"]["facts"] for place in ("machine", "target")}
        versions = {
            f"{run['framework']} {run['framework_version']}"
            for run in both["target"]["runs"]
            if isinstance(run.get("framework_version"), str)
        }
        values[", ".join(sorted(versions)) or "without a framework"] = both
    FILE.write_text(json.dumps(values, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
