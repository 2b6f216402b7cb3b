"""NVIDIA's containers as the tables have them, and what the tables leave open."""

from __future__ import annotations

import pytest

from envcheck.data import table
from envcheck.data.products import is_data_centre
from envcheck.data.releases import month_key
from envcheck.install.catalogue.containers import stack

ROWS = {row["release"]: row for row in table("releases")}
LISTED = {(row["stack"], row["release"]): row for row in table("containers")}


@pytest.mark.parametrize(
    ("flavour", "newest", "oldest", "count"),
    [
        ("tf1", "23.03", "19.09", 35),
        ("tf2", "25.02", "20.03", 57),
        ("torch", "25.12", "19.03", 12),
        ("jax", "25.04", "25.04", 1),
    ],
)
def test_a_flavour_has_every_month_with_a_tag_newest_first(
    flavour: str, newest: str, oldest: str, count: int
) -> None:
    of = stack(flavour)  # type: ignore[arg-type]
    names = [one.release for one in of.releases]
    assert (of.name, of.flavour, len(names)) == (f"ngc-{flavour}", flavour, count)
    assert (names[0], names[-1]) == (newest, oldest)
    assert names == sorted(names, key=month_key, reverse=True)
    assert "21.01" not in names, "no container was released in that month"
    monthly = {name for name, row in ROWS.items() if row.get(f"tag_{flavour}")}
    assert set(names) == monthly | {name for of, name in LISTED if of == flavour}


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("NVIDIA A100-SXM4-80GB", True),
        ("A100-SXM4-40GB", True),
        ("Tesla T4", True),
        ("Tesla K80", True),
        ("NVIDIA H100 80GB HBM3", True),
        ("NVIDIA L40S", True),
        ("NVIDIA B200", True),
        ("NVIDIA GeForce RTX 3090", False),
        ("NVIDIA TITAN RTX", False),
        ("Quadro P5000", False),
        ("Quadro RTX 8000", None),  # select RTX cards, and nobody says which
        ("NVIDIA RTX A6000", None),
        ("NVIDIA RTX 6000 Ada Generation", None),
        ("GRID A100-40C", None),
        ("NVIDIA A100-40C", None),
        ("NVIDIA GB10", None),
        ("", None),
    ],
)
def test_which_gpus_are_data_centre_gpus(name: str, answer: bool | None) -> None:
    assert is_data_centre(name) is answer
