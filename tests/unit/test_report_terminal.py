"""The report in full (-v), and --format markdown: what may be pasted, and what may not happen."""

from __future__ import annotations

import re
from typing import Any

import pytest
import whole
from build import snapshot
from hypothesis import given, settings
from hypothesis import strategies as st
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
from test_report_glance import hot

from envcheck.checks.engine import diagnose
from envcheck.facts.evidence import Evidence
from envcheck.facts.host import Host
from envcheck.facts.snapshot import Snapshot
from envcheck.findings import shell
from envcheck.findings.model import CheckResult, Remedy
from envcheck.reports import markdown, terminal
from envcheck.reports.model import build


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


BITES = [
    "```\n# heading",
    "`a` ``b`` <b>html</b>",
    "[link](https://example.org) ![image](x) https://example.org www.example.org",
    "@someone #12 a@b.example",
    "**bold** _it_ ~~gone~~ | cell | <!-- -->",
    "trailing backslash \\",
    "&lt;script&gt; $x$ {y}",
]


def outside_code(text: str) -> str:
    """What of a Markdown text is neither in a fence nor in a code span."""
    text = re.sub(r"^(`{3,})sh\n.*?\n\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", text)


def test_one_block_has_verdict_machine_problems_and_areas() -> None:
    snapshot = hot(3)
    text = markdown.render(build(snapshot, diagnose(snapshot)), snapshot)
    places = [
        "**✗ 1 problem: GPU 3 is throttled by heat**\n",
        "| machine | `<host-1>`, Ubuntu",
        "| target | `path:<home-1>/venv`, Python 3.11.9",
        "| envcheck | ",
        "**✗ GPU-008** The hardware holds",
        "- GPU 3 NVIDIA H100",
        "- `machine.nvml.gpus[3].clock_event_reasons = hw_thermal_slowdown",
        "- To do: Check fans",
        "\n\n```sh\nnvidia-smi -q -d TEMPERATURE\nnvidia-smi dmon -s pc\n```\n",
        "- ✓ Host, PCI",
        "- ✗ GPUs: GPU-008",
    ]
    found = [text.index(place) for place in places]
    assert found == sorted(found)


@pytest.mark.parametrize("fact", [*BITES, NASTY])
def test_facts_that_bite(fact: str) -> None:
    found = finding(
        fact,
        subject=fact,
        evidence=[Evidence(fact, fact, fact)],
        remedy=Remedy(fact, [f"echo {shell.word(fact)}"]),
    )
    failed = result("A-1", "host", "fail", findings=[found])
    facts = whole.whole(host=Host(hostname=fact, os_name=fact))
    plain = outside_code(markdown.render(report_of(failed, facts=facts), facts))
    assert "`" not in plain and "<" not in plain.replace("<!", "")
    for bite in ("https:", "www.", "](", "@", "#", "~~", "&lt;", "$"):
        assert bite not in plain, plain
    cells = [line for line in plain.splitlines() if line.startswith("|")]
    assert all(re.sub(r"\\\|", "", line).count("|") == 3 for line in cells[:-1] + cells[2:]), cells


@given(st.text(st.characters(codec="utf-8"), max_size=60))
@settings(max_examples=100, deadline=None)
def test_nothing_ends_a_fence(text: str) -> None:
    _, opening, *_, closing = markdown.fence([text, "```", text])
    body = markdown.fence([text, "```", text])[2]
    ticks = opening.removesuffix("sh")
    assert closing == ticks and ticks not in body
