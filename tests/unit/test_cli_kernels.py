"""The options for the micro-kernels, from the command line down to the collector's own."""

from __future__ import annotations

import argparse
import json
from typing import Any

import msgspec
import pytest
from h100 import machine

from envcheck import collection
from envcheck.cli import kernels
from envcheck.cli.main import run
from envcheck.cli.parser import Parser
from envcheck.collection import Collected, Kernels
from envcheck.collector import main as collector_main
from envcheck.collector.kernels import LEVELS, MODES
from envcheck.exit_codes import UsageError


def parsed(*argv: str) -> argparse.Namespace:
    parser = Parser()
    kernels.add_arguments(parser)
    return parser.parse_args(argv)


def wanted(*argv: str, **chosen: Any) -> Kernels | None:
    return kernels.wanted(parsed(*argv), **chosen)


ASKED = [
    ("", Kernels()),
    ("--kernels l0,L2", Kernels(levels=["L0", "L2"])),
    ("--modes FP16,int8", Kernels(modes=["fp16", "int8"])),
    ("--gpu 0 --gpu 2,3", Kernels(gpus=[0, 2, 3])),
    ("--busy-ok", Kernels(busy_ok=True)),
    ("--level quick", None),
]


@pytest.mark.parametrize(("argv", "expected"), ASKED)
def test_what_the_options_ask_for(argv: str, expected: Kernels | None) -> None:
    assert wanted(*argv.split()) == expected


@pytest.mark.parametrize(("argv", "expected"), ASKED)
def test_the_collector_is_asked_for_the_same(argv: str, expected: Kernels | None) -> None:
    if expected is None:
        assert collector_main._arguments(["--level=quick"]).request.kernels is None
        return
    sent = json.dumps({"kernels": msgspec.to_builtins(expected)})
    options = collector_main._arguments(["--request", sent]).request.kernels
    assert options.levels == (expected.levels or list(LEVELS))
    assert options.modes == [
        m for m in MODES if not expected.modes or m in (*expected.modes, "fp32")
    ]
    assert options.gpus == (expected.gpus or None)
    assert options.busy_ok == expected.busy_ok


@pytest.mark.parametrize("argv", ["--kernels L0", "--gpu 0", "--busy-ok", "--modes fp16"])
def test_options_that_contradict_each_other_are_named(argv: str) -> None:
    option = argv.split()[0]
    with pytest.raises(UsageError, match=f"^{option} and --level quick cannot be used together$"):
        wanted(*argv.split(), "--level=quick")
    with pytest.raises(UsageError, match=f"^{option} and --from cannot be used together"):
        kernels.refuse(parsed(*argv.split()), "--from")
    kernels.refuse(parsed(), "--from")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []

    def collect(path: str | None, **options: Any) -> Collected:
        made.append(options)
        return Collected(machine(), {})

    monkeypatch.setattr(collection, "collect", collect)
    return made


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ("doctor", Kernels()),
        ("doctor --gpu 1", Kernels(gpus=[1])),
        ("doctor --only driver", None),
        ("collect --kernels L0", Kernels(levels=["L0"])),
        ("collect --level quick", None),
    ],
)
def test_the_commands_pass_them_on(
    calls: list[dict[str, Any]],
    argv: str,
    expected: Kernels | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run([*argv.split(), "--target", "/env"])
    assert [call["kernels"] for call in calls] == [expected]
