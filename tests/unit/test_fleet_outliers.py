"""Outliers of a fleet: what differs, what is slow, and what is neither."""

from __future__ import annotations

import random
from collections.abc import Iterable
from statistics import median
from typing import Any

import pytest

from envcheck.attributes.model import Attribute, Measurement
from envcheck.fleet.attribute_outliers import attribute_outliers
from envcheck.fleet.model import JudgedMachine, MachineProblem
from envcheck.fleet.products import products
from envcheck.fleet.rate_outliers import _beside, _Figure, rate_outliers
from envcheck.reports.plain import number_of


def machine(name: str, *attributes: Attribute, **changes: Any) -> JudgedMachine:
    facts: dict[str, Any] = {"state": "healthy", "product": "8 × H100"} | changes
    return JudgedMachine(name=name, attributes=list(attributes), **facts)


def shown(value: str, key: str = "driver.version", device: str = "") -> Attribute:
    return Attribute(key=key, words=key, value=value, device=device)


def valued(*values: str) -> list[JudgedMachine]:
    return [machine(f"m{number}", shown(value)) for number, value in enumerate(values)]


def test_one_of_four_is_the_odd_one() -> None:
    odd, splits = attribute_outliers("p", valued("570", "570", "550", "570"))
    assert [(one.machine, one.value, one.usual, one.agree, one.of) for one in odd] == [
        ("m2", "550", "570", 3, 4)
    ]
    assert splits == []


@pytest.mark.parametrize("values", [("570", "550"), ("570", "570", "550"), ("570",)])
def test_a_few_machines_have_no_usual_value(values: tuple[str, ...]) -> None:
    assert attribute_outliers("p", valued(*values)) == ([], [])


def test_two_camps_are_a_split_and_nobody_is_odd() -> None:
    odd, (split,) = attribute_outliers("p", valued("570", "550", "570", "550", "570"))
    assert odd == []
    assert [(camp.value, camp.hosts) for camp in split.camps] == [
        ("570", "m[0,2,4]"),
        ("550", "m[1,3]"),
    ]


def upgraded(*drivers: str) -> list[JudgedMachine]:
    """Machines with these drivers, and what comes with each: a package of its name, and the kernel."""
    return [
        machine(
            f"m{n}", shown(one), shown(one, "driver.fabric_manager_version"), shown("6", "gpus.pcie_lanes"),
            shown(f"{one}-1", f"system_packages.nvidia-driver-{one}"),
            shown(f"6.{one}", "machine.kernel"), shown("on", "driver.persistence_daemon"),
        )
        for n, one in enumerate(drivers)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("drivers", "camps", "outlier"),
    [
        (["570"] * 10 + ["580"] * 10 + ["550"], [10, 10], "570 or 580"),
        (["570"] * 188 + ["580"] * 12, [188, 12], ""),
        (["570"] * 20 + ["580"], [], "570"),
    ],
)
def test_what_moves_with_the_driver_is_one_line(
    drivers: list[str], camps: list[int], outlier: str
) -> None:
    odd, splits = attribute_outliers("p", upgraded(*drivers))
    of_driver = {"driver.fabric_manager_version", number_of(len(set(drivers)), "package")}
    for one in (one for one in [*odd, *splits] if one.key == "driver.version"):
        assert of_driver <= {*one.also}
    sizes = [[len(camp.machines) for camp in split.camps] for split in splits[:1]]
    assert sizes == [camps] * bool(camps)
    found = {one.key: (one.machine, one.usual) for one in odd}
    expected = {"driver.version": (f"m{len(drivers) - 1}", outlier)} if outlier else {}
    # of one machine, a kernel says nothing of its driver
    kernels = {"machine.kernel": (f"m{len(drivers) - 1}", "6." + outlier.replace("r ", "r 6."))}
    assert found == expected | (kernels if outlier else {})


def test_lanes_that_some_have_are_outliers_however_many() -> None:
    machines = [
        machine(f"m{n}", shown(v, "gpus.pcie_lanes")) for n, v in enumerate(["16"] * 17 + ["8"] * 3)
    ]
    odd, splits = attribute_outliers("p", machines)
    assert len(odd) == 3 and splits == []


def test_a_gpu_that_differs_from_its_own_machine_s_others_is_told_of_one_machine() -> None:
    gpus = [shown("B" if n == 3 else "A", "gpus.vbios", f"GPU {n}") for n in range(8)]
    (odd,), splits = attribute_outliers("p", [machine("m", *gpus)])
    assert (odd.devices, odd.value, odd.usual, odd.of) == (["GPU 3"], "B", "A", 8)
    assert odd.per == "device" and splits == []


def nodes(swapped: str = "") -> list[JudgedMachine]:
    """GPUs 0 and 1 are on another NUMA node than 2 and 3, on every machine."""
    return [
        machine(
            name,
            *(
                shown(str(int((n < 2) == (name == swapped))), "gpus.numa", f"GPU {n}")
                for n in range(4)
            ),
        )
        for name in ("m0", "m1", "m2", "m3", "m4")
    ]


def test_what_belongs_to_a_gpu_s_place_is_not_odd() -> None:
    assert attribute_outliers("p", nodes()) == ([], [])
    odd, _ = attribute_outliers("p", nodes("m3"))
    assert {one.machine for one in odd} == {"m3"}


def test_a_package_that_one_machine_does_not_have() -> None:
    numpy, torch = shown("1.26", "packages.numpy"), shown("2.6", "packages.torch")
    machines = [machine(f"m{n}", numpy, torch) for n in range(4)]
    machines += [machine("bare", numpy), machine("unlooked", shown("570"))]
    (odd,), _ = attribute_outliers("p", machines)
    assert (odd.machine, odd.value, odd.usual, odd.of) == ("bare", "", "2.6", 5)


def test_a_problem_about_the_same_is_pointed_to() -> None:
    problem = MachineProblem(
        code="PCI-008",
        level="warn",
        title="PCIe link",
        headline="has a slower PCIe link",
        message="",
        devices=["GPU 3 H100 at 0000:01:00.0"],
    )
    wide = [shown("16", "gpus.pcie_lanes", f"GPU {n}") for n in range(4)]
    narrow = [*wide[:3], shown("8", "gpus.pcie_lanes", "GPU 3")]
    (odd,), _ = attribute_outliers(
        "p", [machine("m", *narrow, problems=[problem]), machine("n", *wide)]
    )
    assert odd.because == "PCI-008"


def test_a_machine_that_has_lost_a_gpu_is_held_against_the_whole_ones() -> None:
    whole = [machine(f"m{n}", product="8 × H100") for n in range(4)]
    lost, small = machine("lost", product="7 × H100"), machine("small", product="1 × H100")
    dead = machine("dead", state="silent", answer="unreachable")
    found = products([*whole, lost, small, dead, machine("blind", product="")])
    assert {name: len(these) for name, these in found.items()} == {"8 × H100": 5, "1 × H100": 1}


def measured(
    count: int,
    slow: dict[tuple[str, int], float] | None = None,
    keys: Iterable[str] = ("kernels.a", "kernels.b", "kernels.c", "memory.copy"),
    seed: int = 0,
    chip: float = 0.006,
    **changes: Any,
) -> list[JudgedMachine]:
    """Machines of 8 GPUs whose figures are normal around 900, by 0.6 % in each GPU (chip) and figure."""
    chance = random.Random(seed)
    machines = []
    for number in range(count):
        name, rates = f"m{number}", []
        for gpu in range(8):
            share = (1 - (slow or {}).get((name, gpu), 0)) * chance.gauss(1, chip)
            for key in keys:
                value = 900 * share * chance.gauss(1, 0.006)
                rates.append(
                    Measurement(key=key, words=key, value=value, unit="T", device=f"GPU {gpu}")
                )
        machines.append(machine(name, rates=rates, **changes))
    return machines


@pytest.mark.parametrize("count", [4, 20, 100])
def test_five_percent_on_one_gpu_is_found(count: int) -> None:
    for seed in range(5):
        odd, splits = rate_outliers({"p": measured(count, {("m1", 6): 0.06}, seed=seed)})
        assert [(one.machine, one.devices) for one in odd] == [("m1", ["GPU 6"])]
        assert splits == [] and 0.03 <= odd[0].below < 0.1


@pytest.mark.parametrize("count", [1, 2, 5, 30])
def test_noise_is_not_odd(count: int) -> None:
    for seed in range(10):
        assert rate_outliers({"p": measured(count, seed=seed)}) == ([], [])


@pytest.mark.parametrize("count", [4, 5, 8])
def test_the_median_of_the_others(count: int) -> None:
    rate = Measurement(key="k", words="", value=1, unit="")
    ways = [random.Random(count + n).gauss(0, 1) for n in range(count)]
    for figure, way in _beside([_Figure("m", rate, deviation=one) for one in ways]):
        others = [one for one in ways if one != figure.deviation]
        assert way == pytest.approx(figure.deviation - median(others))
    assert list(_beside([_Figure("m", rate)] * 3)) == []


def test_five_percent_beyond_the_noise_of_chips_needs_several_looks() -> None:
    found = {}
    for looks in (1, 4):
        fleets = [
            measured(40, {("m1", 6): 0.05}, seed=seed, chip=0.01, looks=looks) for seed in range(8)
        ]
        odd = [rate_outliers({"p": fleet})[0] for fleet in fleets]
        assert {one.machine for several in odd for one in several} == {"m1"}
        found[looks] = sum(map(len, odd))
    assert found[1] < found[4] and found[4] >= 6


def test_a_slow_machine_is_one_odd_rate() -> None:
    slow = {("m7", gpu): 0.1 for gpu in range(8)}
    (odd,), _ = rate_outliers({"p": measured(40, slow)})
    assert odd.machine == "m7" and len(odd.devices) == 8 and len(odd.also) == 3


def test_a_slow_gpu_of_one_machine_is_found_beside_its_mates() -> None:
    (odd,), _ = rate_outliers({"p": measured(1, {("m0", 2): 0.3})})
    assert odd.devices == ["GPU 2"] and odd.of == 8


def test_nothing_is_odd_that_a_third_of_the_machines_have() -> None:
    slow = {(f"m{m}", gpu): 0.2 for m in range(7) for gpu in range(8)}
    odd, splits = rate_outliers({"p": measured(20, slow)})
    assert odd == [] and len(splits) == 4
    assert [len(camp.machines) for camp in splits[0].camps] == [13, 7]


def test_hostile_figures_crash_nothing() -> None:
    machines = measured(4)
    values = [0.0, -1.0, float("inf"), float("nan"), 1e308, 5e-324]
    rates = [Measurement(key="kernels.a", words="", value=v, unit="") for v in values]
    rate_outliers({"p": [*machines, machine("hostile", rates=rates)]})
