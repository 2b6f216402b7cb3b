"""The matrix of containers as people read it, and as programs do."""

from __future__ import annotations

import json
from typing import Any

import fit_machines as m

from envcheck import json_text
from envcheck.facts.snapshot import Snapshot
from envcheck.install.catalogue.containers import flavours, stack
from envcheck.install.fit.fit import fit_images as judge
from envcheck.install.reports.release_table import render
from envcheck.install.reports.releases import Chosen, build

TAKEN = Chosen(
    command="envcheck install ngc-tf2",
    stack="ngc-tf2",
    release="23.06",
    reference="nvcr.io/x:23.06",
    engine="podman",
    reasons=["so"],
)


def shown(snapshot: Snapshot, chosen: Chosen = TAKEN, **options: Any) -> str:
    matrix = build(
        "a machine", [judge(one, snapshot) for one in flavours()[:2]], chosen, mode="container"
    )
    return render(matrix, **options)


def lines(text: str, release: str) -> list[list[str]]:
    return [row.split() for row in text.splitlines() if row.startswith(f"  {release} ")]


def test_every_release_says_fits_or_why_not() -> None:
    text = shown(m.machine(["A100"], "460.32.03"))
    tf1, tf2 = lines(text, "22.10")
    assert tf1 == ["22.10", "no", "520", "6.0", "11.8.0", "1.15.5", "not", "known", "driver"]
    assert tf2[:5] == ["22.10", "no", "520", "6.0", "11.8.0"]
    yes = next(row for row in lines(text, "21.12"))
    assert yes[:3] == ["21.12", "yes", "495"]
    assert "if named" in text
    assert max(map(len, text.splitlines())) <= 80


def test_reasons_compat_branches_and_sisters_stand_below_the_table() -> None:
    text = " ".join(shown(m.machine(["H100"], "535.54.03")).split())
    for words in (
        "25.02 to 23.07: needs a driver, and no source says which version",
        "22.10: data-centre GPUs may have driver branches 450.51, 470.57, 510.47, 515.65, too",
        "25.02, 25.01: same-month base image, not confirmed: driver 560; compat branches 470.57, 525.85,"
        " 535.86, 545.23; compute capability 7.5",
        "23.06: Which compute capability it needs at least is not known.",
        "23.06: same-month base image, not confirmed: compat branches 450.51, 470.57, 510.47, 515.65, 525.85,"
        " 530.30; compute capability 6.0",
        "and 36 older: --all",
        "envcheck install ngc-tf2 would install nvcr.io/x:23.06 into podman: so.",
    ):
        assert words in text, (words, text)


def test_all_of_them_and_nothing_that_fits() -> None:
    refused = Chosen(refused="no container fits", hint="take wheels")
    text = shown(m.without_gpu(), refused, everything=True)
    assert len(lines(text, "20.06")) == 2
    assert "older: --all" not in text
    assert "not confirmed: compute capability" not in " ".join(text.split()), "of no use alone"
    assert "all: needs an NVIDIA GPU, and this machine has no NVIDIA GPU" in text
    assert "would install nothing: no container fits." in text and "hint: take wheels" in text


def test_as_json_nothing_is_cut() -> None:
    snapshot = m.machine(["A100"], "470.82.01")
    matrix = json.loads(
        json_text.render(
            build("a machine", [judge(stack("tf2"), snapshot)], TAKEN, mode="container")
        )
    )
    keys = ["schema", "mode", "machine", "chosen", "otherwise", "others", "stacks"]
    assert list(matrix) == keys and matrix["mode"] == "container"
    (flavour,) = matrix["stacks"]
    assert flavour["newest_that_fits"] == "23.01"
    assert len(flavour["releases"]) == len(stack("tf2").releases)
    newest, row = flavour["releases"][0], flavour["releases"][-2]
    assert list(row) == [
        "release",
        "fits",
        "cuda",
        "driver",
        "refusals",
        "notes",
        "reference",
        "compat_branches",
        "capability",
        "framework",
        "tensorflow",
        "python",
        "ubuntu",
        "sister",
    ]
    assert (newest["driver"], newest["sister"]["driver"], newest["fits"]) == ("", "560", "if-named")
    assert row["compat_branches"] == ["418.xx", "440.30"]
