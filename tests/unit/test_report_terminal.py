"""The report in full (-v): what stands where, what fits, what may be pasted, and what may not happen."""

from __future__ import annotations

import re
from typing import Any

import pytest
from build import snapshot
from reported import (
    NASTY,
    SHARED_MEMORY,
    could_not_run,
    eight_gpus,
    every_outcome,
    finding,
    report_of,
    result,
)

from envcheck.facts.evidence import Evidence
from envcheck.facts.host import Host
from envcheck.facts.snapshot import Snapshot
from envcheck.findings.model import CheckResult, Remedy
from envcheck.reports import terminal


def shown(*results: CheckResult, facts: Snapshot | None = None, **style: Any) -> str:
    facts = snapshot() if facts is None else facts
    style = {"verbose": True} | style
    return terminal.render(report_of(*results, facts=facts), facts, **style)


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_everything_stands_in_its_place() -> None:
    text = shown(*every_outcome(), facts=eight_gpus())
    places = [
        "✗ 2 problems: The loaded kernel module is 535.54.03",
        "Machine: <host-1>, Ubuntu 22.04.4 LTS",
        "Target: path:/home/<user-1>/tf, Python 3.8.18, tensorflow 1.15.5",
        "FAIL DRV-002",
        "FAIL GPU-001",
        "WARN HOST-002",
        "COULD NOT RUN DRV-004",
        "Host: ",
        "Environment: ",
        "Skipped: 3 checks",
        "As root, envcheck would also read: kernel log (KRN-009, KRN-010).",
        "envcheck doctor --target",
    ]
    found = [text.index(place) for place in places]
    assert found == sorted(found)


def test_a_failure_has_evidence_consequences_and_remedy() -> None:
    text = shown(*every_outcome(), facts=eight_gpus())
    block = text[text.index("FAIL DRV-002") : text.index("FAIL GPU-001")]
    assert "machine.kernel.driver_version = 535.54.03 (/proc/driver/nvidia/version)" in block
    assert "→ also: DRV-001 NVML does not start [nvml] (18)." in block
    assert "→ also: FRM-002 TensorFlow sees no GPU." in block
    assert "To do: Reboot, or load the new module.\nuptime\nsudo systemctl reboot\n" in block
    assert "skipped because of" not in block


@pytest.mark.parametrize("width", [40, 80, 100])
def test_prose_fits_and_commands_are_not_touched(width: int) -> None:
    text = shown(*every_outcome(), facts=eight_gpus(), width=width)
    lines = text.splitlines()
    commands = {
        SHARED_MEMORY,
        "sudo systemctl reboot",
        "sudo nvidia-smi --gpu-reset",
        "envcheck doctor --target '/home/<user-1>/tf'",
    }
    assert commands <= set(lines)
    for line in set(lines) - commands:
        assert len(line) <= width or len(line.split()) == 1, line


@pytest.mark.parametrize("colour", [False, True])
def test_facts_are_never_markup_nor_escape_sequences(colour: bool) -> None:
    failed = result(
        "X-1",
        "host",
        "fail",
        findings=[
            finding(
                f"Message {NASTY}",
                subject=NASTY,
                evidence=[Evidence("machine.host.os_name", NASTY, NASTY)],
                remedy=Remedy(NASTY, [f"echo {NASTY}"]),
            )
        ],
    )
    facts = snapshot(host=Host(hostname=NASTY, os_name=NASTY, kernel=NASTY))
    text = shown(failed, could_not_run("X-2", "host", NASTY), facts=facts, colour=colour)
    for line in ("Message [bold red]boo[/] \\x1b[31mred", "echo [bold red]boo[/] \\x1b[31mred"):
        assert line in one_line(text)
    assert "[link=x]y[/link] :smile: \\u202eevil" in one_line(text)
    assert "\x07" not in text and "\u202e" not in text
    assert set(re.findall(r"\x1b\[[0-9;]*m", text)) <= {
        *(() if not colour else ("\x1b[0m", "\x1b[1m", "\x1b[2m")),
        *(() if not colour else ("\x1b[1;31m", "\x1b[1;35m", "\x1b[1;36m")),
    }
    assert text.count("\x1b") == len(re.findall(r"\x1b\[[0-9;]*m", text))


def test_real_values_come_back_for_tokens() -> None:
    names = {"<user-1>": "ann b", "<host-1>": "node7"}

    def restore(text: str) -> str:
        return re.sub(r"<(?:user|host)-1>", lambda token: names[token.group()], text)

    failed = result(
        "X-1",
        "host",
        "fail",
        findings=[
            finding(
                "Bad on <host-1>.",
                subject="/home/<user-1>",
                evidence=[Evidence("machine.host.user", "<user-1>")],
                remedy=Remedy("Ask <user-1>.", ["cat '/home/<user-1>/x'"]),
            ),
            finding("And worse."),
        ],
    )
    text = shown(failed, facts=eight_gpus(), restore=restore)
    assert "-1>" not in text
    assert "\nMachine: node7, Ubuntu" in text
    assert "cat '/home/ann b/x'\n" in text
    names["<user-1>"] = "ann"
    assert "cat /home/ann/x\n" in shown(failed, facts=eight_gpus(), restore=restore), "no quotes"
    assert text.endswith("envcheck doctor --target '/home/ann b/tf'\n"), "quoted for the shell"


def test_tokens_in_commands_are_explained_where_nobody_knows_their_values() -> None:
    commands = ["ls '<home-1>/x' '<home-1>/y'", "cat '<host-2>'"]
    failed = result(
        "X-1", "host", "fail", findings=[finding("Bad <user-3>.", remedy=Remedy("Do:", commands))]
    )
    text = one_line(shown(failed))
    assert text.endswith(
        "<home-1>, <host-2> stand for values that the Snapshot does not hold: put it in."
    )
    known = shown(failed, restore=lambda printed: re.sub("<[a-z]+-[0-9]>", "real", printed))
    assert "stand for" not in known and "ls real/x real/y" in known
