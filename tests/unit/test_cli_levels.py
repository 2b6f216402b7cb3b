"""How deep a look is, its systems and micro-kernels: from the command line down to the collector's own."""

from __future__ import annotations

import argparse
import json
from typing import Any

import msgspec
import pytest
from h100 import machine
from whole import whole

from envcheck import collection
from envcheck.checks import registry
from envcheck.cli import doctor, kernels
from envcheck.cli.main import run
from envcheck.cli.parser import Parser
from envcheck.collection import Collected, Kernels
from envcheck.collector import main as collector_main
from envcheck.collector.kernels import LEVELS, MODES
from envcheck.exit_codes import UsageError
from envcheck.facts import snapshot as snapshots
from envcheck.facts.acceleration import Acceleration, SystemRun
from envcheck.facts.base import Probe

NAMES = ["amp-graph", "amp-torch", "nccl", "tf-trt", "xla"]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks on these systems, whatever the product has."""
    one = registry.all_checks()[0]
    checks = [
        msgspec.structs.replace(one, code=f"ACC-9{n}", area="acceleration", systems=(name,))
        for n, name in enumerate(NAMES)
    ]
    real = registry.all_checks()
    kept = tuple(check for check in real if not check.systems)
    monkeypatch.setattr(registry, "all_checks", lambda: (*kept, *checks))
    monkeypatch.setattr(
        registry, "all_systems", lambda: {check.systems[0]: (check,) for check in checks}
    )


def parsed(*argv: str) -> argparse.Namespace:
    parser = Parser()
    kernels.add_arguments(parser)
    return parser.parse_args(argv)


def wanted(*argv: str, only: Any = (), skip: Any = ()) -> Kernels | None:
    words = [doctor._selection(list(some)) for some in (only, skip)]
    return kernels.wanted(parsed(*argv), *words)


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(
    ("argv", "only", "skip", "products", "names"),
    [
        ("--level deep", [], [], True, NAMES),
        ("", [], [], True, []),
        ("--level deep --gpu 1", [], ["tensorcores"], False, NAMES),
        ("--level deep", [], ["xla", "amp"], True, ["nccl", "tf-trt"]),
        ("", ["amp"], [], False, ["amp-graph", "amp-torch"]),
        ("", ["tftrt,nccl"], [], False, ["nccl", "tf-trt"]),
        ("", ["ACC-92"], [], False, ["nccl"]),
        ("", ["acceleration"], ["xla"], False, NAMES[:-1]),
        ("", ["acceleration", "tensorcores"], [], True, NAMES),
    ],
)
def test_what_is_run(
    argv: str, only: list[str], skip: list[str], products: bool, names: list[str]
) -> None:
    found = wanted(*argv.split(), only=only, skip=skip)
    assert found is not None and (found.products, found.systems) == (products, names)


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(
    ("argv", "only", "words"),
    [
        ("--level quick", ["xla"], "--level quick does not run xla, which --only names"),
        ("--level standard", ["amp"], "--level standard does not run amp-graph, amp-torch, which"),
        ("--level quick --gpu 0", [], "--gpu and --level quick cannot be used together"),
        ("--kernels L0", ["xla"], "--kernels and --only cannot be used together: the checks of"),
    ],
)
def test_options_that_contradict_each_other_are_named(
    argv: str, only: list[str], words: str
) -> None:
    with pytest.raises(UsageError, match=f"^{words}"):
        wanted(*argv.split(), only=only)


@pytest.mark.parametrize(
    ("run_", "code", "state"),
    [
        ({"outcome": "not-applicable", "reason": "one GPU"}, 0, "not applicable: XLA"),
        ({"outcome": "not-run", "reason": "no GPU: none"}, 4, "could not run  XLA"),
        ({"outcome": "busy", "reason": "GPU 0: in use"}, 4, "could not run  XLA"),
    ],
)
def test_a_replay_says_what_the_run_said(
    run_: dict[str, Any], code: int, state: str, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = Acceleration(systems=["xla"], runs=[SystemRun(system="xla", framework="jax", **run_)])
    snapshot = whole()
    assert snapshot.target is not None
    target = msgspec.structs.replace(snapshot.target, acceleration=Probe(outcome="ok", facts=facts))
    machine = msgspec.structs.replace(
        snapshot.machine, acceleration=Probe(outcome="ok", facts=Acceleration())
    )
    file = tmp_path / "machine.json"
    file.write_bytes(
        snapshots.dump(msgspec.structs.replace(snapshot, machine=machine, target=target))
    )
    for _ in range(2):
        assert run(["doctor", "--from", str(file), "--only", "xla"]) == code
        out = capsys.readouterr().out
        assert state in out and run_["reason"] in out
    assert run(["doctor", "--from", str(file), "--only", "xla", "--exit-zero"]) == 0


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
def test_options_for_kernels_contradict_a_quick_look_and_a_snapshot(argv: str) -> None:
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
