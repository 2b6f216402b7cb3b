"""A baseline of a fleet: what its healthy machines have in common, which each of them fits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import demos
import msgspec
import pytest
from h100 import COUNT, gpu, machine

from envcheck import safe_text
from envcheck.attributes import profile_reading as reading
from envcheck.attributes.model import Attribute, Measurement
from envcheck.facts.profile import Profile
from envcheck.facts.snapshot import Snapshot, load
from envcheck.fleet import simulated
from envcheck.fleet.baseline import FleetBaseline, baseline
from envcheck.fleet.baseline_rates import bound
from envcheck.fleet.folder import FleetFolder, Member
from envcheck.fleet.judging import judge_snapshot
from envcheck.fleet.model import JudgedMachine
from envcheck.fleet.result import result


def judged(
    snapshots: Mapping[str, Snapshot], profile: Profile | None = None
) -> list[JudgedMachine]:
    return [judge_snapshot(Member(name=name), one, profile)[0] for name, one in snapshots.items()]


def of(snapshots: Mapping[str, Snapshot]) -> FleetBaseline:
    return baseline(result(judged(snapshots)))


def parsed(text: str) -> Profile:
    return reading.parse(text, "fleet.toml")


def wrong(machines: Iterable[JudgedMachine]) -> list[str]:
    return [
        f"{one.name}: {problem.code} {problem.message}"
        for one in machines
        for problem in one.problems
        if problem.code.startswith("EXP-")
    ]


class Forty(NamedTuple):
    snapshots: dict[str, Snapshot]
    made: FleetBaseline


@pytest.fixture(scope="module")
def forty(tmp_path_factory: pytest.TempPathFactory) -> Forty:
    """The demo's fleet, of machines that answered."""
    folder = FleetFolder(tmp_path_factory.mktemp("fleet"))
    simulated.write(folder, {name: demos.build(name) for name in simulated.DEMOS})
    members = [one for one in folder.members() if one.outcome == "answered"]
    there = {one.name: load(folder.file(one.name).read_bytes()) for one in members}
    return Forty(there, of(there))


def test_every_machine_that_was_kept_fits_and_the_others_are_named(
    forty: Forty,
) -> None:
    made = forty.made
    profile = parsed(made.text)
    some = [*made.kept[:8], *dict(made.left_out)]
    again = judged({name: forty.snapshots[name] for name in some}, profile)
    assert not wrong(one for one in again if one.name in made.kept)
    left_out = dict(made.left_out)
    assert len(made.kept) + len(left_out) == len(forty.snapshots) and len(made.kept) > 20
    assert "does not match" in left_out["gpu03"] or "do not match" in left_out["gpu03"]
    assert left_out["gpu12"].startswith("slower than the others")
    assert left_out["gpu29"] == "it has warnings that most others do not have: GPU-013, PCI-005"
    assert "gpu12: slower than the others" in made.text
    by_name = {one.name: one for one in again}
    assert {"EXP-004", "EXP-013"} <= {
        problem.code for name in ("gpu12", "gpu29") for problem in by_name[name].problems
    }, "who was left out is found by what the others have in common"


def _without(text: str, word: str) -> str:
    """The baseline without the product of that name."""
    head, *products = text.split("[[products]]")
    return "[[products]]".join([head, *(one for one in products if word not in one[:80])])


def rates(values: Iterable[float], **more: Any) -> list[Measurement]:
    given = {"key": "kernels.L0.fp16", "words": "FP16", "unit": "TFLOP/s", **more}
    return [Measurement(value=value, **given) for value in values]


def test_a_bound_lies_below_every_figure_and_as_far_as_these_are_apart() -> None:
    steady = bound(rates([600.0 + n / 10 for n in range(40)]))
    assert steady.bound == pytest.approx(steady.median * 0.97, rel=1e-3)
    apart = bound(rates([600.0 + 10 * (n % 5 - 2) for n in range(40)]))
    assert apart.bound < 580 and apart.spread == pytest.approx(1.4826 * 10 / 600, rel=0.01)
    one = bound(rates([600.0]))
    assert one.bound == pytest.approx(570.0, rel=1e-3), (
        "of one figure nobody knows how steady it is"
    )
    low = bound(rates([600.0] * 30 + [500.0]))
    assert low.bound < 500.0, "who was kept is not too slow"
    noisy = bound(rates([600.0] * 9, spread=0.2))
    assert noisy.bound == pytest.approx(480.0, rel=1e-3)
    time = bound(rates([10.0] * 9, lower_is_better=True))
    assert time.bound == pytest.approx(10.3, rel=1e-3)
    assert 0 < bound(rates([1.0, 1000.0])).bound < 1.0


EVIL = [
    '"; rm -rf /',
    "a\nb = 1",
    "]\n[x]",
    "\x1b[31m",
    "\u202e",
    "a\xa0b",
    ">= 3",
    "'''",
    "=",
    "",
    " ",
]


@pytest.mark.parametrize("evil", EVIL)
def test_hostile_values_leave_a_profile_that_can_be_read(evil: str) -> None:
    gpus = [gpu(n, vbios=evil, compute_mode=evil) for n in range(COUNT)]
    machines = {f"m{n}": machine(gpus) for n in range(4)}
    found = judged(machines)
    hostile = [
        Attribute(key=f"packages.{evil}", words="x", value="1.0"),
        Attribute(key="packages.torch", words="x", value=evil),
        Attribute(key="parameters.A", words="x", value=evil),
        Attribute(key="machine.cpus", words="x", value=evil),
    ]
    rate = Measurement(key=evil, words=evil, value=1.0, unit=evil, under=evil)
    changed = [
        msgspec.structs.replace(one, attributes=[*one.attributes, *hostile], rates=[rate])
        for one in found
    ]
    changed.append(
        msgspec.structs.replace(found[0], name=evil or "x", state="problems", verdict=evil)
    )
    made = baseline(result(changed))
    profile = parsed(safe_text.styled(made.text))  # as it is written
    assert len(profile.products) == 1 and profile.products[0].tables["gpus"]
    assert not wrong(judged(machines, parsed(of(machines).text)))
