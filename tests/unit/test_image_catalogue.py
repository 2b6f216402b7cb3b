"""NVIDIA's containers as the tables have them, and what the tables leave open."""

from __future__ import annotations

import re

import pytest

from envcheck.data import table
from envcheck.data.data_centre_gpus import is_data_centre
from envcheck.data.releases import month_key, releases
from envcheck.install.catalogue.containers import ImageRelease, by_reference, flavours, own, stack

ROWS = {row["release"]: row for row in table("releases")}
LISTED = {(row["stack"], row["release"]): row for row in table("containers")}
SISTERS = {row["release"]: row for row in table("releases_sister")}


def release(flavour: str, month: str) -> ImageRelease:
    (found,) = [one for one in stack(flavour).releases if one.release == month]  # type: ignore[arg-type]
    return found


def own_row(flavour: str, month: str) -> dict[str, str]:
    """What a table says of a container itself, by the same names whichever table it is."""
    if (flavour, month) in LISTED:
        row = LISTED[flavour, month]
        return {**row, "reference": f"nvcr.io/nvidia/{row['tag']}"}
    row = ROWS[month]
    return {**row, "reference": row[f"tag_{flavour}"], "framework": row[f"{flavour}_upstream"]}


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


def test_every_value_is_the_table_s_own() -> None:
    for of in flavours():
        for one in of.releases:
            row = own_row(of.flavour, one.release)
            assert one.reference == row["reference"]
            assert one.framework == row["framework"]
            assert ";".join(one.compat_branches) == row["compat_driver_branches"]
            told = (one.min_driver, one.min_capability, one.cuda, one.python, one.ubuntu)
            columns = ("min_driver", "min_cc", "cuda", "python", "ubuntu")
            assert told == tuple(row[column] for column in columns), one.release
            assert one.source.startswith(("releases", "docs.nvidia.com", "github.com/NVIDIA"))


def test_a_sister_speaks_only_where_the_month_itself_is_silent() -> None:
    for of in flavours():
        for one in of.releases:
            sister, row = SISTERS.get(one.release, {}), own_row(of.flavour, one.release)
            for name, column in (
                ("driver", "min_driver"),
                ("compute capability", "min_cc"),
                ("CUDA", "cuda"),
                ("Python", "python"),
            ):
                expected = sister.get(column, "") if not row[column] else ""
                assert one.sister.get(name, "") == expected, (one.release, name)
            assert "TensorFlow" not in one.sister or of.flavour == "tf2"


def test_what_sisters_say_of_the_newest() -> None:
    assert release("tf2", "25.02").min_driver == ""
    assert release("tf2", "25.02").sister["driver"] == "560"
    assert release("tf2", "25.02").sister["compat branches"] == "470.57, 525.85, 535.86, 545.23"
    assert release("tf2", "25.02").sister["compute capability"] == "7.5"


def test_a_tensorflow_of_nvidia_s_must_import_and_see_its_gpus() -> None:
    for of in flavours():
        assert of.must_pass == ["FRM-001", "FRM-002"]
        needed = ["avx"] if of.framework == "TensorFlow" else []
        assert (of.architectures, of.cpu_flags) == (["x86_64"], needed)
    assert (own().name, own().must_pass, own().releases) == ("image", [], [])


def test_a_release_is_known_by_its_reference() -> None:
    found = by_reference("nvcr.io/nvidia/tensorflow:23.03-tf1-py3@sha256:" + "0" * 64)
    assert found is not None
    assert (found[0].name, found[1].release) == ("ngc-tf1", "23.03")
    assert by_reference("nvcr.io/nvidia/pytorch:18.01-py3") is None
    found = by_reference("nvcr.io/nvidia/pytorch:19.11-py3")
    assert found is not None and found[0].name == "ngc-torch"


def test_sources_are_told_cell_by_cell() -> None:
    month = next(one for one in releases() if one.month == "22.10")
    assert month.sources["min_driver"] and month.sources["compat"]
    assert f"min_driver={month.sources['min_driver']}" in release("tf2", "22.10").source


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


def test_rows_of_data_centre_gpus_have_patterns_answers_and_sources() -> None:
    for row in table("data_centre_gpus"):
        re.compile(row["pattern"])
        assert row["data_centre"] in ("yes", "no", "")
        assert row["source"]
