"""What all text reports share: findings put together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from ..facts.evidence import Evidence
from ..findings.model import CheckResult, Outcome
from ..findings.several import for_all, same_words
from ..findings.subjects import Subject
from .results import AnyResult, ReportedFinding, ReportedResult

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
V = TypeVar("V")
R = TypeVar("R", CheckResult, ReportedResult)

Span = tuple[str, str]  # text, and the name of its style

# What carries the meaning: the words where there is no colour, or no character for a sign.
WORDS: dict[Outcome, str] = {
    "fail": "FAIL",
    "could-not-run": "COULD NOT RUN",
    "warn": "WARN",
    "pass": "OK",
    "skipped": "-",
}
SIGNS: dict[Outcome, str] = {
    "fail": "✗",
    "could-not-run": "!",
    "warn": "!",
    "pass": "✓",
    "skipped": "–",
}

# Evidence longer than this is cut in text; the JSON report has all of it.
EVIDENCE_CHARACTERS = 400
OTHERS = 6  # that a sentence names beside its own


class Column(NamedTuple):
    """Of a table. wraps: at words; other columns are cut with a mark. rank: the higher, the sooner it is
    omitted on a narrow terminal; 0: never."""

    heading: str = ""
    right: bool = False
    wraps: bool = False
    rank: int = 0


def unmentioned(finding: ReportedFinding) -> list[str]:
    """The subjects that the message does not name; several GPUs in a few words."""
    subjects, message = finding.subjects, finding.message
    texts = dict.fromkeys(subject.text for subject in subjects)
    rest = [one for one in subjects if not one.address or one.address not in message]
    if message and len(texts) > 1 and all(one.kind == "gpu" for one in rest):
        lead = "the same of " if len(rest) < len(subjects) else ""
        return [lead + gpus_of(rest)]
    return [text for text in texts if text not in message]


def gpus_of(subjects: list[Subject]) -> str:
    """ "GPUs 0–3, 5 (NVIDIA H100 80GB HBM3)", "GPUs at 0000:9d:00.0, 0000:c3:00.0" """
    indices = {one.index for one in subjects}
    places = ", ".join(dict.fromkeys(one.address or one.text for one in subjects))
    numbers = sorted(index for index in indices if index is not None)
    names = {one.name for one in subjects if one.name}
    plural = "" if len(subjects) == 1 else "s"
    if len(numbers) < len(indices):
        return f"GPU{plural} at {places}"
    return f"GPU{plural} {ranges(numbers)}" + (f" ({names.pop()})" if len(names) == 1 else "")


def grouped(findings: list[ReportedFinding]) -> list[ReportedFinding]:
    """Those with the same remedy as one, of the same devices or each of its own; failures before warnings.
    Where the sentence names a device, it is the first one's."""

    def kind(one: ReportedFinding) -> object:
        remedy = (one.remedy.text, *one.remedy.commands) if one.remedy else ()
        words = tuple(_of_any_device(text, one) for text in (one.message, *remedy))
        return one.level, one.cause, words

    ordered = sorted(findings, key=lambda finding: finding.level != "fail")
    groups = together((kind(one), one) for one in ordered)
    return _likewise([_merged(members) for members in groups.values()])


def _merged(findings: list[ReportedFinding]) -> ReportedFinding:
    """The first, with the subjects and the evidence of all."""
    subjects = dict.fromkeys(about for one in findings for about in one.subjects)
    evidence = dict.fromkeys(each for one in findings for each in one.evidence)
    return replace(findings[0], subjects=list(subjects), evidence=list(evidence))


def _likewise(groups: list[ReportedFinding]) -> list[ReportedFinding]:
    """The groups; those that a headline and a remedy have in common, in one: "A is old: … Likewise: B." """
    found: dict[object, list[ReportedFinding]] = {}
    for place, one in enumerate(groups):
        devices = frozenset(about.address for about in one.subjects)
        key = (one.level, one.cause, one.headline, one.remedy and one.remedy.text, devices)
        found.setdefault(key if one.remedy else place, []).append(one)
    return [_with_others(same) for same in found.values()]


def _with_others(every: list[ReportedFinding]) -> ReportedFinding:
    first, *others = every
    if not others:
        return first
    parts = [_other_words(first.message, other.message) for other in others[:OTHERS]]
    parts += [f"{len(others) - OTHERS} more"] if len(others) > OTHERS else []
    message = f"{first.message} Likewise: {'; '.join(parts)}."
    remedy = for_all([one.remedy for one in every if one.remedy])
    return replace(_merged(every), message=message, remedy=remedy)


def _other_words(message: str, other: str) -> str:
    """What stands in a sentence instead of another's words."""
    ours, theirs = message.split(), other.split()
    start = same_words([ours, theirs])
    end = same_words([ours[start:][::-1], theirs[start:][::-1]])
    return " ".join(theirs[start : len(theirs) - end]).rstrip(",:;.") or other


def _of_any_device(text: str, finding: ReportedFinding) -> str:
    """A text without what it calls the devices that the finding is about."""
    for one in finding.subjects:
        if one.address:
            names = [one.text, one.uuid, one.address, one.address.rpartition(".")[0]]
            names += [] if one.index is None else [f"GPU {one.index}"]
            for name in filter(None, names):
                text = text.replace(name, "DEVICE")
    return text


def gaps(result: ReportedResult) -> list[str]:
    """What could not be checked, "SUBJECT: reason" each; without what was skipped."""
    found = [
        f"{gap.subject}: {gap.reason}" if gap.subject else gap.reason
        for gap in result.unjudged
        if gap.outcome == "could-not-run"
    ]
    return list(dict.fromkeys(found))


def gist(result: ReportedResult) -> str:
    """A result's own story in one line, also where it is shown as a consequence of another's."""
    if result.findings:
        return grouped(result.findings)[0].message
    found = gaps(result)
    reason = found[0] if found else result.reason
    return reason.removeprefix(f"skipped because of {result.consequence_of}: ")


def roots(results: Iterable[AnyResult]) -> dict[str, str]:
    """The code of each consequence, and the code of the finding that the engine has put at the end of its
    chain. "" where that one is not among the results."""
    results = list(results)
    found = {one.code for one in results if one.outcome in ("fail", "warn")}
    return {
        one.code: one.consequence_of if one.consequence_of in found else ""
        for one in results
        if one.consequence_of
    }


def worst_first(results: Iterable[R]) -> list[R]:
    """The results with findings that are no consequence: failures, then warnings; of each, what most
    others follow from first."""
    results = list(results)
    following = Counter(roots(results).values())
    found = [r for r in results if r.findings and not r.consequence_of]
    return sorted(found, key=lambda r: (r.outcome != "fail", -following[r.code]))


def together(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """{key: the values that belong to it}, in their order."""
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def runs(items: Iterable[T], follows: Callable[[T, T], bool]) -> list[list[T]]:
    """The items in their order, those that follow each other together."""
    found: list[list[T]] = []
    for item in items:
        if found and follows(found[-1][-1], item):
            found[-1].append(item)
        else:
            found.append([item])
    return found


def code_ranges(codes: Iterable[str]) -> str:
    """ "DRV-006 to DRV-008, GPU-001": codes, those that follow each other as a range."""
    found = runs(codes, lambda one, other: other == _after(one))
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(run) for run in found)


def number_of(number: int, what: str, plural: str = "") -> str:
    """ "1 GPU", "8 GPUs", "no GPUs"."""
    if number == 1:
        return f"1 {what}"
    return f"{number or 'no'} {plural or what + 's'}"


def ranges(numbers: list[int]) -> str:
    """ "0–3, 5": numbers in their order, those that follow each other as a range."""
    found = runs(numbers, lambda one, other: other == one + 1)
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in found)


def devices_named(names: Iterable[str], most: int = 4) -> str:
    """ "GPUs 0–3, 5", "mlx5_0, mlx5_1"; of more than ``most`` others, the rest are counted."""
    names = list(dict.fromkeys(names))
    numbers = [name.removeprefix("GPU ") for name in names]
    gpus = all(
        name != number and number.isdecimal() for name, number in zip(names, numbers, strict=True)
    )
    if len(names) > 1 and gpus:
        return f"GPUs {ranges(sorted(map(int, numbers)))}"
    return few(names, most)


def few(items: Sequence[str], most: int, rest: str = "more") -> str:
    """ "a, b, 3 more": the first ones, and how many there are beside them."""
    more = [f"{len(items) - most} {rest}"] if len(items) > most else []
    return ", ".join([*items[:most], *more])


def _after(code: str) -> str:
    area, _, number = code.rpartition("-")
    return f"{area}-{int(number) + 1:0{len(number)}}" if number.isdecimal() else ""


def duration(seconds: float) -> str:
    """ "40 s", "3 min", "2 h 5 min" """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    hours = f"{minutes // 60} h {minutes % 60} min".removesuffix(" 0 min")
    return f"{minutes} min" if minutes < 90 else hours


def evidence_text(evidence: Evidence) -> str:
    """ "machine.kernel.driver_version = 535.54.03 (/proc/driver/nvidia/version)" """
    value = " / ".join(line.strip() for line in evidence.value.splitlines() if line.strip())
    if len(value) > EVIDENCE_CHARACTERS:
        remaining = len(value) - EVIDENCE_CHARACTERS
        value = f"{value[:EVIDENCE_CHARACTERS]} [{remaining} more characters in the JSON report]"
    source = f" ({evidence.source})" if evidence.source else ""
    return f"{evidence.fact} = {value}{source}"


def finding_lines(result: ReportedResult) -> Iterator[str]:
    """All of a result as plain lines, commands on lines of their own."""
    for group in grouped(result.findings):
        yield group.message
        if where := unmentioned(group):
            yield "  where: " + "; ".join(where)
        for evidence in group.evidence:
            yield "  " + evidence_text(evidence)
        if group.remedy is not None:
            yield "  " + group.remedy.text
            yield from group.remedy.commands
    for gap in gaps(result):
        yield f"could not look: {gap}"
