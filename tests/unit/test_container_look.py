"""A look into a container that was captured: podman 4.3 on a Debian without a GPU, a Debian inside.

`envcheck collect --target image:localhost/tensorflow-standin:23.03-tf1-py3`: a stand-in for NVIDIA's image.
"""

from __future__ import annotations

import json
from pathlib import Path

from envcheck import json_text
from envcheck.checks.engine import diagnose
from envcheck.facts import snapshot as snapshots
from envcheck.reports.model import build

FILE = Path(__file__).with_name("container_look.json")


def captured() -> snapshots.Snapshot:
    return snapshots.load(FILE.read_bytes())


def test_it_replays_to_the_same_diagnosis_every_time() -> None:
    once, again = captured(), snapshots.load(snapshots.dump(captured()))
    reports = [json_text.render(build(one, diagnose(one))) for one in (once, again)]
    assert reports[0] == reports[1]
    assert json.loads(reports[0])["target"]["location"].startswith("image:localhost/tensorflow-")
