"""The matrix of releases as people read it, and as programs do."""

from __future__ import annotations

import json
from typing import Any

import fit_machines as m
import msgspec
import whole

from envcheck import json_text
from envcheck.facts.snapshot import Snapshot
from envcheck.install.catalogue.containers import flavours
from envcheck.install.fit.fit import fit_images
from envcheck.install.reports.release_table import render
from envcheck.install.reports.releases import Chosen, Releases, rows

NOBODY = Chosen(refused="no stack fits this machine", hint="buy one")


def matrix(*fits: Any, chosen: Chosen = NOBODY) -> Releases:
    return Releases(mode="wheel", machine="a machine", chosen=chosen, stacks=rows(fits))


def shown(snapshot: Snapshot, chosen: Chosen = NOBODY, **options: Any) -> str:
    fits = [m.judged(m.nvidia_tf1(), snapshot), m.judged(m.tensorflow(), snapshot)]
    return render(matrix(*fits, chosen=chosen), **options)


def line(text: str, release: str) -> str:
    return next(row for row in text.splitlines() if row.startswith(f"  {release} "))


def test_every_release_says_fits_or_why_not() -> None:
    text = shown(m.machine(["A100"], "470.82.01"))
    assert line(text, "23.03").split() == ["23.03", "no", "3.8", "12.1.0", "525.60.13", "driver"]
    assert line(text, "22.10").split() == ["22.10", "yes", "3.8", "11.8.0", "455"]
    unknown = line(text, "23.02")
    assert "if named" in unknown and unknown.endswith("not known") and "23.02" in unknown
    assert "23.03, 23.01: needs driver 525.60.13 or newer, and this machine has" in text


def test_what_is_not_known_of_a_machine_is_no_yes() -> None:
    judged = m.judged(m.tensorflow(), m.machine(["A100"], glibc=whole.ABSENT))
    found = matrix(judged)
    assert "perhaps" in line(render(found), "2.20.0")
    fits = {row.release: row.fits for row in found.stacks[0].releases}
    assert fits["2.20.0"] == "perhaps" and fits["2.22.0rc0"] == "if-named"


def test_containers_have_their_own_columns() -> None:
    judged = [fit_images(one, m.machine(["A100"], "460.32.03")) for one in flavours()[:2]]
    text = render(msgspec.structs.replace(matrix(*judged), mode="container"))
    rows = [row.split() for row in text.splitlines() if row.startswith("  22.10 ")]
    assert rows[0][:6] == ["22.10", "no", "520", "6.0", "11.8.0", "1.15.5"]
    assert rows[1][:5] == ["22.10", "no", "520", "6.0", "11.8.0"]
    assert "  21.12    yes" in text and max(map(len, text.splitlines())) <= 80


def test_json_has_every_release_and_reason() -> None:
    judged = m.judged(m.tensorflow(), m.without_gpu())
    raw = json.loads(json_text.render(matrix(judged)))
    assert list(raw) == ["schema", "mode", "machine", "chosen", "stacks"]
    rows = raw["stacks"][0]["releases"]
    assert len(rows) == len(m.tensorflow().releases)
    assert rows[1]["refusals"][0]["kind"] == "gpu" and rows[1]["driver"] == "525.60.13"
    assert "tags" not in json.dumps(raw)
    (stack,) = raw["stacks"]
    for row, candidate in zip(stack["releases"], judged.candidates, strict=True):
        known = candidate.release
        assert (row["cudnn"], row["tensorrt"]) == (known.cudnn, known.tensorrt)


def test_of_many_stacks_each_has_a_line_with_what_comes_nearest() -> None:
    snapshot = m.machine(["A100"], "470.82.01")
    fits = [m.judged(one, snapshot) for one in (m.nvidia_tf1(), m.tensorflow(), m.tensorflow_cpu())]
    text = render(matrix(*fits))
    rows = {row.split()[0]: row.split()[1:3] for row in text.splitlines() if "  yes  " in row}
    assert rows["nvidia-tf1"] == ["22.10", "yes"] and rows["tensorflow"] == ["2.14.1", "yes"]
    assert "envcheck releases nvidia-tf1" in text and "2.13" not in text
    assert len(text.splitlines()) < 15 and "…" not in text
