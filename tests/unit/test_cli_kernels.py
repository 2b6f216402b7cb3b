"""The options for the micro-kernels, from the command line down to the collector's own."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from h100 import machine

from envcheck import collection
from envcheck.cli import kernels, sources
from envcheck.cli.main import run
from envcheck.cli.parser import Parser
from envcheck.collection import Collected, Kernels
from envcheck.collector import main as collector_main
from envcheck.collector.kernels import LEVELS, MODES, attempts, campaign
from envcheck.exit_codes import UsageError
from envcheck.facts import snapshot as snapshots


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


def test_what_the_kernels_are_run_for_may_be_left_out() -> None:
    assert wanted(only=["tensorcores"]) == wanted(only=["driver", "TC-101"]) == Kernels()
    assert wanted(skip=["driver", "TC-101"]) == Kernels()
    assert wanted(only=["driver", "gpu"]) is None
    assert wanted(skip=["tensorcores"]) is None
    with pytest.raises(
        UsageError, match=r"^--gpu and --only cannot be used together: .* tensorcores,"
    ):
        wanted("--gpu", "0", only=["driver"])
    with pytest.raises(UsageError, match=r"^--modes and --skip cannot be used together"):
        wanted("--modes", "fp16", skip=["tensorcores"])
    assert wanted("--level=quick", skip=["tensorcores"]) is None


@pytest.mark.parametrize("argv", ["--kernels L0", "--gpu 0", "--busy-ok", "--modes fp16"])
def test_options_that_contradict_each_other_are_named(argv: str) -> None:
    option = argv.split()[0]
    with pytest.raises(UsageError, match=f"^{option} and --level quick cannot be used together$"):
        wanted(*argv.split(), "--level=quick")
    with pytest.raises(UsageError, match=f"^{option} and --from cannot be used together"):
        kernels.refuse(parsed(*argv.split()), "--from")
    kernels.refuse(parsed(), "--from")


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--kernels", "L0,L3", "'L3' is not one of L0, L1, L2"),
        ("--kernels", "", "'' is not one of L0, L1, L2"),
        ("--modes", "fp64", "'fp64' is not one of fp32, tf32, fp16, bf16, int8, fp8"),
        ("--gpu", "0,x", "'0,x' is not"),
        ("--gpu", "-1", "'-1' is no"),
        ("--gpu", "GPU-1", "'GPU-1' is no"),
    ],
)
def test_a_word_that_is_no_choice_is_named(
    option: str, value: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for parse in (parsed, lambda *argv: collector_main._arguments(argv)):
        with pytest.raises(SystemExit) as stop:
            parse(f"{option}={value}")
        assert stop.value.code == 2
        assert words in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--gpu=0", "--level=quick"])
def test_a_file_leaves_nothing_to_run(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = option.replace("=", " ") if option.startswith("--level") else option.partition("=")[0]
    (tmp_path / "machine.json").write_bytes(snapshots.dump(machine()))
    for command in (["doctor", "--from"], ["collect", "--nvidia-smi"]):
        assert run([*command, str(tmp_path / "machine.json"), option]) == 2
        assert f"{name} and {command[1]} cannot be used together" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        collector_main._arguments(["--nvidia-smi", "x", option])
    assert (
        f"{option.partition('=')[0]} and --nvidia-smi cannot be used together"
        in capsys.readouterr().err
    )


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []

    def collect(path: str | None, **options: Any) -> Collected:
        made.append(options)
        return Collected(machine(), {})

    monkeypatch.setattr(collection, "collect", collect)
    return made


def test_levels_of_a_target_need_one(
    calls: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sources, "implied_target", lambda: (None, ""))
    assert run(["doctor", "--kernels", "L2,L1"]) == 2
    assert (
        "--kernels L2,L1: runs in a target environment, and there is none"
        in capsys.readouterr().err
    )
    run(["doctor", "--kernels", "L0,L1"])
    assert len(calls) == 1


def test_no_process_of_the_campaign_can_outlast_the_collector() -> None:
    last = max(one.start + one.seconds + 2 * one.stage for one in attempts.LIMITS.values())
    assert campaign.LIMIT + last < collection.KERNELS
