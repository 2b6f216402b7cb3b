"""Every machine that the tests know: the demos, the corpus of public reports, and the simulated ones."""

from __future__ import annotations

import functools
from importlib.resources import files

import corpus
from modes_well import WELL
from test_failure_modes import OTHERS, ROWS
from test_purpose import CPU, on_no_gpu
from whole import host, whole

from envcheck.attributes import profile_reading as reading
from envcheck.attributes import profile_writing as writing
from envcheck.attributes.registry import FORMATS
from envcheck.facts.profile import Profile
from envcheck.facts.snapshot import Snapshot, load
from envcheck.facts.view import SnapshotView


@functools.cache
def machines() -> dict[str, Snapshot]:
    """{name: Snapshot}; "demo …" for those that a test that samples always takes."""
    demos = files("envcheck.data").joinpath("demos")
    found = {
        f"demo {path.name}": load(path.read_bytes())
        for path in sorted(demos.iterdir(), key=lambda path: path.name)
        if path.name.endswith(".json")
    }
    found |= {f"corpus {name}": corpus.snapshot(one) for name, one in corpus.reports().items()}
    made = ROWS | OTHERS
    found |= {f"simulated {name}": make() for name, (make, _results) in made.items()}
    found["demo without a GPU, for a target that needs none"] = on_no_gpu(CPU)
    found["demo of little shared memory"] = whole(host=host(shm_total_mib=256))
    return found | {f"healthy {name}": make() for name, make in WELL.items()}


@functools.cache
def profile() -> Profile:
    """A profile with every key that a machine gives."""
    return reading.parse(writing.write(SnapshotView(whole()), list(FORMATS)), "profile.toml")
