"""What people read of a fleet: in its order, within 80 columns, in ASCII, without colour, with 3 machines and
with 1,000."""

from __future__ import annotations

import re

import pytest
from fleet_results import (
    attribute_outlier,
    everything,
    fleet_result,
    group,
    hostile,
    machine,
    problem,
    rate_outlier,
    three,
)
from msgspec.structs import replace

from envcheck.fleet.model import FleetResult
from envcheck.fleet.reports import commands, junit, page, text, words
from envcheck.fleet.result import result

THREE = """\
1 of 3 machines is healthy, 1 has problems, 1 did not answer
Machines: 2 with 8 x NVIDIA H100 80GB HBM3

FAIL DRV-002 1 machine: kernel module and libraries do not match
  b
  The module is 535.104.05.
  To do: Reboot.
sudo reboot

1 machine without a Snapshot: 1 did not answer
  c  unreachable: No route to host
"""


def test_three_machines_in_ascii() -> None:
    assert text.render(three(), utf8=False) == THREE


@pytest.mark.parametrize(
    ("states", "told"),
    [
        (["healthy"], "the machine is healthy"),
        (["healthy"] * 3, "all 3 machines are healthy"),
        (["problems"], "the machine is not healthy, 1 has problems"),
        (["problems"] * 2, "none of 2 machines is healthy, 2 have problems"),
        (["healthy", "unanswered"], "1 of 2 machines is healthy, 1 did not answer"),
        (
            ["healthy", "healthy", "could-not-look"],
            "2 of 3 machines are healthy, 1 could not be looked at",
        ),
    ],
)
def test_the_verdict(states: list[str], told: str) -> None:
    machines = [machine(f"m{number}", state) for number, state in enumerate(states)]
    assert words.verdict(fleet_result(machines)) == told


def test_warnings_and_odd_ones_are_in_the_verdict_and_what_is_explained_is_not() -> None:
    warned = machine("a", problems=[problem(level="warn")])
    found = fleet_result(
        [warned, machine("b"), machine("c")],
        attribute_outliers=[attribute_outlier("b"), attribute_outlier("c", because="GPU-023")],
        rate_outliers=[rate_outlier("b")],
    )
    assert words.verdict(found) == "all 3 machines are healthy (1 with warnings); 1 outlier"
    assert text.render(found).startswith("! all 3")


def test_what_is_odd_is_told_with_the_many() -> None:
    names = [f"gpu{number}" for number in (1, 2)]
    found = fleet_result(
        [machine(name) for name in names],
        attribute_outliers=[attribute_outlier(name) for name in names],
        rate_outliers=[rate_outlier("gpu2", also=["FP8 at L0: 5.1 % below", "b", "c", "d"])],
    )
    shown = " ".join(text.render(found).split())
    assert "GPU 3: VBIOS 96.00.5E; 207 of 208 devices have 96.00.74" in shown
    assert shown.count("96.00.5E") == 1, "the same of several machines is told once"
    assert "GPU 6: FP16 at L0 529.4 TFLOP/s, 7.0% below the median 569.3 of 208" in shown
    assert "also FP8 at L0: 5.1 % below, b, 2 more" in shown
    assert "b, c, d" in " ".join(text.render(found, verbose=True).split())


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"value": ""}, "GPU 3: no VBIOS; 207 of 208 devices have 96.00.74"),
        ({"usual": "", "devices": []}, "VBIOS 96.00.5E; 207 of 208 devices have none"),
        (
            {"per": "machine", "because": "GPU-1"},
            "GPU 3: VBIOS 96.00.5E; 207 of 208 have 96.00.74 (see GPU-1)",
        ),
        (
            {"devices": list("abcdef")},
            "a, b, c, d, 2 more: VBIOS 96.00.5E; 207 of 208 devices have 96.00.74",
        ),
    ],
)
def test_an_odd_attribute(changes: dict[str, object], told: str) -> None:
    assert words.attribute_outlier(replace(attribute_outlier("a"), **changes)) == told


def lines(result: FleetResult, verbose: bool = False) -> list[str]:
    return text.render(result, utf8=False, verbose=verbose).splitlines()


def test_a_thousand_machines_are_read_on_a_few_screens() -> None:
    found = everything()
    shown = lines(found)
    assert len(shown) < 330
    assert shown[0].startswith("858 of 1000 machines are healthy")
    assert "and 17 more problems (-v shows them): GPU-021, GPU-022, GPU-023, GPU-024," in shown
    wide = [line for line in shown if len(line) > 80 and not line.startswith("--limit")]
    assert wide == []
    assert all(line.isascii() for line in shown)
    assert sum("more (-v shows them)" in line for line in shown) == 2
    assert any(re.search(r" and \d+ more$", line) for line in shown)


def test_verbose_leaves_nothing_out() -> None:
    found = everything(200)
    shown = "\n".join(lines(found, verbose=True))
    assert "-v shows" not in shown
    for one in found.machines:
        assert re.search(rf"^{re.escape(one.name)} +(OK|FAIL|BLIND|SILENT|WARN) ", shown, re.M)
    for name in found.groups[0].machines:
        assert name in shown


def test_what_came_and_cannot_be_read_is_no_silence() -> None:
    bad = [
        replace(machine(name, "unanswered"), answer="unreadable", reason="it is empty")
        for name in "ab"
    ]
    found = result([machine("c", "healthy"), machine("d", "unanswered"), *bad])
    assert words.verdict(found) == "1 of 4 machines is healthy, 1 did not answer, 2 cannot be read"
    shown = text.render(found, utf8=False)
    assert "3 machines without a Snapshot: 1 did not answer, 2 cannot be read" in shown
    assert "its Snapshot cannot be read: it is empty" in shown


def test_one_simulated_machine_does_not_make_the_others_simulated() -> None:
    made_up = replace(machine("a", "healthy"), simulated="8 H100")
    found = fleet_result([made_up, machine("b", "healthy"), machine("c", "healthy")])
    for shown in (
        text.render(found),
        commands.render(found),
        junit.render(found),
        page.render(found),
    ):
        assert "1 of 3 machines: 8 H100" in shown
    alone = text.render(fleet_result([made_up]))
    assert alone.startswith("Simulated, not real: 8 H100")


def test_a_token_in_a_command_is_explained() -> None:
    found = three()
    group = replace(found.groups[0], commands=["df -h '<home-1>'"])
    shown = " ".join(text.render(replace(found, groups=[group])).split())
    assert "<home-1> stands for a value that the Snapshot does not hold: put it in." in shown
    assert "--no-redact" in shown and "--no-redact" not in text.render(found)


def test_the_order_of_the_sections() -> None:
    shown = text.render(everything())
    places = [
        shown.index(word)
        for word in ("GPU-001", "Outliers", "without a Snapshot: ", "In one place")
    ]
    assert places == sorted(places)


def test_a_list_for_limit_is_one_line_and_a_long_one_is_left_to_v() -> None:
    few = fleet_result([machine(n, "problems") for n in "ab"])
    assert "\n--limit a,b\n" in text.render(few)
    names = [f"machine-{n}.example.org" for n in range(40)]
    many = fleet_result([machine(n, "problems") for n in names])
    assert "--limit" not in text.render(many)
    assert f"\n--limit {','.join(names)}\n" in text.render(many, verbose=True)
    assert f"\n# --limit {','.join(names)}\n" in commands.render(many)


def test_the_words_of_one_are_told_as_of_that_one() -> None:
    found = fleet_result([machine(n, "problems") for n in "ab"], groups=[group("ab", of_one="a")])
    shown = text.render(found)
    assert "  On a: The module is 535.104.05.\n  To do on a: Reboot.\n" in shown
    assert "# as on a; the others have devices of their own\nsudo reboot\n" in commands.render(
        found
    )


def test_quiet_is_the_verdict_and_a_line_a_group() -> None:
    shown = text.brief(three(), utf8=False).splitlines()
    assert shown == [
        THREE.splitlines()[0],
        "FAIL DRV-002 1 machine: kernel module and libraries do not match",
    ]


def test_commands_with_a_token_are_comments() -> None:
    found = fleet_result(
        [machine("a", "problems")], groups=[group("a", commands=["rm <home-1>/x"])]
    )
    assert "\n# put in what is behind the token, then run: rm <home-1>/x\n" in commands.render(
        found
    )
    assert (
        commands.render(fleet_result([machine("a")]))
        == "# the machine is healthy\n# Nothing to do.\n"
    )


@pytest.mark.parametrize("face", [text.render, text.brief, commands.render])
def test_hostile_words_stay_in_their_place(face: object) -> None:
    for options in ({}, {"verbose": True}):
        if options and face is not text.render:
            continue
        shown = face(hostile(), utf8=True, **options)  # type: ignore[operator]
        for forbidden in ("\x1b", "\u202e", "\x00", "\ud800"):
            assert forbidden not in shown
        assert "\nFAIL DRV-002 forged" not in shown
        assert "[bold red]markup" in shown or face is text.brief
        assert len(shown) < 400_000
    assert "\x1b[2J" not in text.render(hostile(), colour=True)


def test_a_simulated_fleet_says_so_first() -> None:
    found = fleet_result([machine("a", simulated="made up")])
    for shown in (text.render(found), text.brief(found), commands.render(found)):
        assert shown.removeprefix("# ").startswith("Simulated, not real: made up\n")
