"""Runs the checks of some areas on a Snapshot, and says what they found in short."""

from __future__ import annotations

from collections.abc import Iterable

from made_findings import made_finding

from envcheck.checks import registry
from envcheck.checks.engine import diagnose
from envcheck.facts.snapshot import Snapshot
from envcheck.findings.model import CheckResult, Finding

AREAS = ("driver", "gpu")


def checks_of(areas: Iterable[str] = AREAS) -> list[registry.Check]:
    """The checks of these areas, without asking for those of the others."""
    return [c for c in registry.all_checks() if c.area in areas]


def results(
    snapshot: Snapshot, areas: Iterable[str] = AREAS, extra: Iterable[registry.Check] = ()
) -> dict[str, CheckResult]:
    """{code: result} of these areas' checks, with ``extra`` checks beside them."""
    return {r.code: r for r in diagnose(snapshot, checks=[*extra, *checks_of(areas)]).results}


def result(snapshot: Snapshot, code: str, areas: Iterable[str] = AREAS) -> CheckResult:
    return results(snapshot, areas)[code]


def judged_alone(snapshot: Snapshot, code: str) -> CheckResult:
    """One check's result, without those that would explain it."""
    return diagnose(snapshot, checks=[c for c in registry.all_checks() if c.code == code]).results[
        0
    ]


def full_text(check: CheckResult) -> str:
    """All that a reader sees of a result."""
    words = [check.reason, check.detail, *[gap.reason for gap in check.unjudged]]
    return "\n".join([*words, *map(text_of, check.findings)])


def text_of(finding: Finding) -> str:
    words = [finding.message, finding.subject, *[f"{e.fact} {e.value}" for e in finding.evidence]]
    if finding.remedy is not None:
        words += [finding.remedy.text, *finding.remedy.commands]
    return "\n".join(words)


def only(result: CheckResult, level: str = "") -> Finding:
    """Its one finding, of this level, with what every finding owes its reader."""
    assert result.findings, (result.outcome, full_text(result))
    (finding,) = result.findings
    assert level in ("", finding.level) and (not level or result.outcome == level)
    assert finding.evidence and finding.message.endswith(".") and finding.remedy is not None
    return finding


def commands(finding: Finding) -> str:
    assert finding.remedy is not None
    return "\n".join(finding.remedy.commands)


def assert_case(code: str, snapshot: Snapshot, outcome: str, words: str) -> None:
    """The check's outcome, the words that its reader must see, and what every finding owes them."""
    result = judged_alone(snapshot, code)
    assert result.outcome == outcome, full_text(result)
    assert words in full_text(result), full_text(result)
    for finding in result.findings:
        assert finding.evidence and finding.message.endswith(".")
        assert finding.remedy is not None and finding.remedy.text


def failing(code: str) -> registry.Check:
    """A check of another area that fails, to see what follows from it."""
    return registry.Check(
        code=code,
        area="pci",
        title="test",
        about="",
        sources=(),
        follows=(),
        judge=lambda _view: [made_finding("fail", f"{code} fails")],
    )
