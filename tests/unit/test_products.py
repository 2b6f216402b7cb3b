"""One product, one row: the tables about GPUs have one key, and agree in what they say of it."""

from __future__ import annotations

import re

import msgspec
import pytest

from envcheck import data
from envcheck.data.gpu_names import model
from envcheck.data.products import is_data_centre, named, products

PRODUCTS = {one.gpu: one for one in products()}
RATES = {row["gpu"] for row in data.table("gpus")}


def test_every_table_names_products_by_their_key() -> None:
    assert len(PRODUCTS) == len(products()) > 70
    assert PRODUCTS.keys() >= RATES
    assert {row["gpu"] for row in data.table("nccl_reference")} <= PRODUCTS.keys()
    models = [model(name) for name in PRODUCTS]
    for row in data.table("throughput_reference"):
        assert any(model(row["gpu"]) <= one for one in models), row["gpu"]


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_is_in_every_table_or_said_to_be_unknown_there(name: str) -> None:
    one = PRODUCTS[name]
    lacking = {"class": not one.data_centre, "board": not one.board, "rates": name not in RATES}
    assert one.not_known == tuple(what for what, is_unknown in lacking.items() if is_unknown)
    assert bool(one.data_centre_source) == bool(one.data_centre)
    assert bool(one.source) == bool(one.board)


@pytest.mark.parametrize("one", products(), ids=lambda one: one.gpu)
def test_a_name_of_the_driver_s_is_one_product(one: data.products.Product) -> None:
    called = "NVIDIA " + re.sub(r"\\b|\$|\(|\|.*", "", one.pattern)
    assert named(called) is one
    series = [row for row in data.table("data_centre_gpus") if re.search(row["pattern"], called)]
    if series and series[0]["data_centre"]:
        assert series[0]["data_centre"] == one.data_centre, "the tables disagree"
    assert is_data_centre(called) is {"yes": True, "no": False}.get(one.data_centre)


class Row(msgspec.Struct, frozen=True):
    gpu: str
    power_w: int


def test_a_cell_that_its_type_does_not_allow_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(power: str) -> tuple[Row, ...]:
        data._read.cache_clear()
        monkeypatch.setattr(data, "table", lambda _name: ({"gpu": "", "power_w": power},))
        return data.rows("made", Row)

    assert made("700") == (Row("", 700),)
    for power in ("", "much"):
        with pytest.raises(msgspec.ValidationError):
            made(power)
    data._read.cache_clear()
