"""Profiles of several products: which tables a machine is held against."""

from __future__ import annotations

import pytest
from h100 import gpu, machine, with_fault
from judged import told
from test_profiles import held

from envcheck.attributes import profile_reading as reading
from envcheck.attributes.bounds import fits
from envcheck.exit_codes import UsageError

PRODUCTS = """\
[driver]
version = "535"

[[products]]
name = "8 x NVIDIA H100 80GB HBM3"

[products.machine]
cpus = 224

[[products.gpus]]
name = "NVIDIA H100 80GB HBM3"
count = 8
nvlinks = 18

[[products]]
name = "4 × NVIDIA L4"

[products.driver]
version = "570"

[[products.gpus]]
count = 4
nvlinks = 0
"""


def test_a_machine_is_held_against_its_own_product() -> None:
    well = held(machine(), PRODUCTS)
    assert {well[code].outcome for code in ("EXP-002", "EXP-003", "EXP-004", "EXP-012")} == {"pass"}
    assert well["EXP-012"].detail == "compared with 8 x NVIDIA H100 80GB HBM3"
    slow = held(with_fault(nvlinks=[]), PRODUCTS)["EXP-004"]
    assert "NVLinks 18 (lab.toml); here it is 0" in told(slow)
    other = held(machine([gpu(n, name="NVIDIA L4", nvlinks=[]) for n in range(4)]), PRODUCTS)
    assert "driver 570 (lab.toml)" in told(other["EXP-002"]), "its own comes before all's"
    assert other["EXP-004"].outcome == "pass"


def test_a_machine_that_lost_a_gpu_is_still_of_its_product() -> None:
    found = held(machine([gpu(n) for n in range(7)]), PRODUCTS)
    assert found["EXP-012"].outcome == "pass"
    assert "8 (lab.toml); here it is 7" in told(found["EXP-003"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "[[products]]\n[products.driver]\nversion = '5'",
            "lab.toml: products[0].name: it must be its GPUs",
        ),
        (PRODUCTS + 'ecc = "on"', "lab.toml: products[1].gpus[0].ecc: it must be true or false"),
        (PRODUCTS + "[products.gpuz]", 'products[1].gpuz: there is no section "gpuz"'),
        ("products = 3", "products: it must be a table: [[products]]"),
        ('[[products]]\nname = "a"\n[[products.driver]]', "it must be a table: [products.driver]"),
        ('[[products]]\nname = "a"', "nothing is wanted in it"),
    ],
)
def test_a_mistake_names_its_product_and_its_line(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        reading.parse(text, "lab.toml")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("wanted", "value", "good"),
    [
        ("2.4.0+cu121", "2.4.0+cu121", True),
        ("2.4.0+cu121", "2.4.0+cu118", False),
        ("6.8.0-45-generic", "6.8.0-45-lowlatency", False),
        ("6.8.0-45", "6.8.0-45-generic", True),
        ("2.4.0rc1", "2.4.0rc12", False),
    ],
)
def test_a_version_with_words_in_it_is_that_one(wanted: str, value: str, good: bool) -> None:
    assert fits(wanted, value, "version") is good
