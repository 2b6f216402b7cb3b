"""Reads tests/corpus: public problem reports, each as what differs from a healthy machine and what to say.

A report is read strictly: a key, a path or a fact that does not exist is an error that names the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec
import tomli
from corpus_machines import CIRCUMSTANCES, MACHINES

from envcheck.checks.engine import diagnose
from envcheck.facts.snapshot import Document, Snapshot, SnapshotError, load, unknown_fields
from envcheck.findings.model import CheckResult

FOLDER = Path(__file__).parents[1] / "corpus"
REMOVED = "<removed>"
FOUND = ("fail", "warn")
STEP = re.compile(r"(?P<name>[^\[\]]+)(?:\[(?P<which>[^\[\]]+)\])?\Z")


class Report(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file; tests/corpus/README.md says what each key is."""

    n: int
    theme: str
    link: str
    symptom: str
    cause: str
    machine: str = "8 x H100"
    circumstances: list[str] = []
    differs: dict[str, Any] = {}
    code: str = ""
    outcome: Literal["fail", "warn", "pass", "skipped"] | None = None
    subject: str = ""
    remedy: list[str] = []
    also: list[str] = []
    misleading: list[str] = []
    unseen: str = ""
    name: str = ""


class Judged(msgspec.Struct, frozen=True):
    """What the doctor makes of a report."""

    found: bool  # anything at all
    named: bool  # the right code, about the right subject
    remedy: bool  # and all that its remedy must hold
    misleading: list[
        str
    ]  # codes that must not be there: failures of another cause, and those named
    codes: dict[str, str]  # {code: its words} of all that stands by itself


class CorpusError(ValueError):
    """A report that cannot be used: the file, and what is wrong with it."""


@cache
def reports() -> dict[str, Report]:
    """{file's stem: report}, in the order of the reports' numbers."""
    found = {path.stem: read(path.read_text(), path.stem) for path in FOLDER.glob("*.toml")}
    return dict(sorted(found.items(), key=lambda item: (item[1].n, item[0])))


def read(text: str, name: str) -> Report:
    try:
        report = msgspec.convert(tomli.loads(text), Report)
        for circumstance in report.circumstances:
            _known(circumstance, CIRCUMSTANCES, "circumstance")
        _known(report.machine, MACHINES, "machine")
        if bool(report.code) == bool(report.unseen):
            raise CorpusError("it needs either a code, or the reason why it is unseen")
        if report.outcome in (None, *FOUND) and report.code and not report.remedy:
            raise CorpusError("it does not say what the remedy must hold")
        for words in report.remedy:
            re.compile(words)
    except (CorpusError, tomli.TOMLDecodeError, msgspec.ValidationError, re.error) as error:
        raise CorpusError(f"{name}: {error}") from None
    return msgspec.structs.replace(report, name=name)


def _known(name: str, table: dict[str, Any], what: str) -> None:
    if name not in table:
        raise CorpusError(f"no {what} is called {name!r}; there are {', '.join(table)}")


def snapshot(report: Report) -> Snapshot:
    """The machine of the report."""
    made = MACHINES[report.machine]()
    for circumstance in report.circumstances:
        made = CIRCUMSTANCES[circumstance](made)
    data = msgspec.to_builtins(made)
    for path, value in report.differs.items():
        try:
            for place in _places(path, data):
                _put(data, place, value)
        except (KeyError, LookupError, CorpusError) as error:
            raise CorpusError(f"{report.name}: {path}: {error}") from None
    text = msgspec.json.encode(data)
    try:
        found = load(text)
    except SnapshotError as error:
        raise CorpusError(f"{report.name}: {error}") from None
    if strangers := unknown_fields(text, found):
        raise CorpusError(f"{report.name}: the Snapshot has no {', '.join(strangers)}")
    return found


def _places(path: str, data: dict[str, Any]) -> list[str]:
    """machine.gpus: what NVML and nvidia-smi both say of GPUs; their names and capabilities, CUDA too."""
    if not path.startswith("machine.gpus"):
        return [path]
    sources = ["nvml", "nvidia_smi"]
    facts = (data["machine"]["cuda"] or {}).get("facts") or {}
    if path.endswith((".name", ".compute_capability")) and isinstance(facts.get("devices"), list):
        sources.append("cuda")
    return [
        path.replace(
            "machine.gpus", f"machine.{source}.{'devices' if source == 'cuda' else 'gpus'}"
        )
        for source in sources
    ]


def _put(data: dict[str, Any], path: str, value: Any) -> None:
    document, section, *rest = path.split(".")
    if document not in ("machine", "target") or section not in Document.__struct_fields__:
        raise CorpusError("a path is machine.SECTION.FIELD… or target.SECTION.FIELD…")
    if data[document] is None:
        raise CorpusError(f"the {document} was not looked at")
    if not rest:
        whole = isinstance(value, dict) and "outcome" in value
        data[document][section] = (
            None if value == REMOVED else value if whole else {"outcome": "ok", "facts": value}
        )
        return
    probe = data[document].get(section)
    if probe is None or probe.get("facts") is None:
        raise CorpusError(f"{section} has no facts to differ from")
    _into(probe["facts"], rest, value)


def _into(place: Any, steps: list[str], value: Any) -> None:
    """Put the value where the steps from this place end."""
    step, *rest = steps
    match = STEP.match(step)
    if match is None:
        raise CorpusError(f"{step!r} is no step of a path")
    name, which = match["name"], match["which"]
    if which is None:
        if rest:
            _into(place.setdefault(name, {}), rest, value)
        elif value == REMOVED:
            place.pop(name, None)
        else:
            place[name] = value
        return
    items = place.setdefault(name, [])
    if not isinstance(items, list):
        raise CorpusError(f"{name} is no list here")
    if which == "+":
        if rest:
            raise CorpusError("[+] adds an item and ends the path")
        items.append(value)
        return
    for i in reversed(_chosen(items, which)):
        if rest:
            _into(items[i], rest, value)
        else:
            items[i : i + 1] = [] if value == REMOVED else [value]


def _chosen(items: list[Any], which: str) -> list[int]:
    """The places that [*], [3] or [name=numpy] mean."""
    key, equals, wanted = which.partition("=")
    if which == "*":
        found = list(range(len(items)))
    elif equals:
        found = [i for i, item in enumerate(items) if str(item.get(key)) == wanted]
    else:
        found = [int(which)] if which.isdigit() and int(which) < len(items) else []
    if not found:
        raise CorpusError(f"[{which}] chooses none of {len(items)} items")
    return found


def judged(report: Report) -> Judged:
    results = {result.code: result for result in diagnose(snapshot(report)).results}
    by_name = {code: words(r) for code, r in results.items() if r.outcome in FOUND}
    if report.code and report.code not in results:
        raise CorpusError(f"{report.name}: there is no check {report.code}")
    named = remedy = False
    if report.code:
        result = results[report.code]
        wanted = (report.outcome,) if report.outcome else FOUND
        named = result.outcome in wanted and report.subject in words(result)
        advised = [re.search(regex, advice(result)) for regex in report.remedy]
        remedy = named and bool(advised) and all(advised)
    found = bool(by_name) or named
    others = {c for c in by_name if results[c].outcome == "fail"} - {report.code, *report.also}
    misleading = [c for c in by_name if c in others or c in report.misleading]
    return Judged(found, named, remedy, misleading, by_name)


def words(result: CheckResult) -> str:
    """All that a text report prints of a result."""
    return "\n".join([result.note, result.reason, *_findings(result), advice(result)])


def _findings(result: CheckResult) -> Iterator[str]:
    for finding in result.findings:
        yield f"{finding.subject}: {finding.message}"


def advice(result: CheckResult) -> str:
    """What a result advises: its remedies; of a check without findings what it says instead."""
    remedies = [finding.remedy for finding in result.findings if finding.remedy is not None]
    if not result.findings:
        return f"{result.note}\n{result.reason}"
    return "\n".join(line for one in remedies for line in (one.text, *one.commands))
