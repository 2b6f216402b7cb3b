"""--format markdown: a block for a ticket that shows facts and does nothing else with them."""

from __future__ import annotations

import re

import pytest
import whole
from hypothesis import given, settings
from hypothesis import strategies as st
from reported import NASTY, finding, report_of, result
from test_report_verdict import hot

from envcheck.checks.engine import diagnose
from envcheck.facts.evidence import Evidence
from envcheck.facts.host import Host
from envcheck.findings import shell
from envcheck.findings.model import Remedy
from envcheck.reports import markdown
from envcheck.reports.model import build

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
