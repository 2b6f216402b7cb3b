"""Judges a machine of a fleet: its Snapshot as the doctor does, and the rates of all its Snapshots."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

import msgspec
from msgspec.structs import replace

from .. import safe_text
from ..attributes.measurements import measurements
from ..attributes.model import Measurement
from ..attributes.values import attributes, gpus_of
from ..checks.engine import diagnose
from ..facts import snapshot as snapshots
from ..facts.base import known
from ..facts.host import Host
from ..facts.profile import Profile
from ..facts.sharing import ManySnapshots
from ..facts.snapshot import Snapshot
from ..facts.view import SnapshotView, view_of
from ..reports.machine import GpuGroup, MachineDescription, facts
from ..reports.model import Report, build
from . import folder as fleet_folder
from .folder import Member, file_name
from .groups import problems
from .model import JudgedMachine
from .products import product


class ToJudge(msgspec.Struct, frozen=True, kw_only=True):
    """A machine that answered, and the files of its Snapshots."""

    member: Member
    files: list[str]


def judge_files(
    work: ToJudge, many: ManySnapshots, profile: Profile | None = None, pages: Path | None = None
) -> JudgedMachine:
    """By the first Snapshot, with the rates of all. many: all that are held against this profile."""
    member, (first, *further) = work.member, work.files
    try:
        data = fleet_folder.read(Path(first))
        snapshot = many.load(data, profile)
        machine, report = judge_snapshot(member, snapshot, profile)
        uuids = [] if report.simulated else _uuids(view_of(snapshot))
        machine = _with_looks(machine, further, uuids)
        machine = replace(machine, identities=[*uuids, hashlib.sha256(data).hexdigest()])
    except snapshots.SnapshotError as error:
        return unreadable(member, str(error))
    except MemoryError:
        return unreadable(member, "it needs more memory than a Snapshot may")
    except Exception as error:  # noqa: BLE001 - costs this machine alone, and says so
        return unreadable(member, f"envcheck crashed on it: {type(error).__name__}: {error}")
    return machine if pages is None else _with_page(machine, report, snapshot, pages)


def _with_looks(
    machine: JudgedMachine, files: Sequence[str], uuids: Sequence[str]
) -> JudgedMachine:
    """With the mean of each rate over these further Snapshots, too. Raises SnapshotError."""
    found = {(rate.key, rate.device, rate.under): [rate] for rate in machine.rates}
    for path in map(Path, files):
        try:
            view = view_of(snapshots.load(fleet_folder.read(path)))
        except snapshots.SnapshotError as error:
            raise snapshots.SnapshotError(f"{path.name}: {error}") from None
        others = _uuids(view)
        if uuids and others and not {*uuids} & {*others}:
            raise snapshots.SnapshotError(f"{path.name} is of other GPUs: it needs another name")
        for rate in measurements(view):
            found.setdefault((rate.key, rate.device, rate.under), []).append(rate)
    rates = [_mean(several) for several in found.values()]
    return replace(machine, rates=rates, looks=max(map(len, found.values()), default=1))


def _mean(rates: Sequence[Measurement]) -> Measurement:
    if len(rates) == 1:
        return rates[0]
    apart = [rate.spread for rate in rates if rate.spread is not None]
    spread = fmean(apart) / math.sqrt(len(apart)) if apart else None
    return replace(rates[0], value=fmean(rate.value for rate in rates), spread=spread)


def _uuids(view: SnapshotView) -> list[str]:
    """Of the GPUs, where they were not redacted."""
    found = [known(gpu.uuid) or "" for gpu in gpus_of(view)]
    return [uuid for uuid in found if uuid and "<" not in uuid]


def unanswered(member: Member) -> JudgedMachine:
    return JudgedMachine(
        name=member.name,
        state="silent",
        answer=member.outcome,
        reason=safe_text.one_line(member.reason),
        groups=member.groups,
    )


def unreadable(member: Member, reason: str) -> JudgedMachine:
    return unanswered(replace(member, outcome="unreadable", reason=reason))


def judge_snapshot(
    member: Member, snapshot: Snapshot, profile: Profile | None = None
) -> tuple[JudgedMachine, Report]:
    diagnosis = diagnose(snapshot, profile=profile)
    report = build(snapshot, diagnosis)
    view = view_of(snapshot)
    machine = JudgedMachine(
        name=member.name,
        state=report.status,
        reason="" if report.counts.fail else _blind(report),
        verdict=report.verdict,
        product=_product(report.machine.gpus),
        cards=_cards(view),
        summary=report.machine.summary,
        collected_at=report.machine.collected_at,
        simulated=report.simulated,
        groups=[*member.groups, *_places(report.machine, snapshot)],
        problems=problems(diagnosis),
        attributes=view.equal(attributes, lambda: attributes(view)),
        rates=measurements(view),
    )
    return machine, report


def _product(gpus: list[GpuGroup] | None) -> str:
    return "" if gpus is None else product(one.name for one in gpus for _ in range(one.count))


def _cards(view: SnapshotView) -> list[tuple[str, str]]:
    named = {known(gpu.pci_address): known(gpu.name) or "" for gpu in gpus_of(view)}
    pci = facts(view.machine.pci)
    devices = None if pci is None else known(pci.devices)
    return [
        (one.device_id, named.get(one.address, "")) for one in devices or () if one.kind == "gpu"
    ]


def _blind(report: Report) -> str:
    """What could not be looked at: the first reason, and how many more there are."""
    reasons = [one.reason for one in report.results if one.outcome == "could-not-run"]
    reasons = list(dict.fromkeys(reasons))
    more = f", and {len(reasons) - 1} more" if len(reasons) > 1 else ""
    return safe_text.one_line(f"{reasons[0]}{more}") if reasons else ""


def _places(machine: MachineDescription, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """What machines made from one image have in common, as far as the Snapshot tells."""
    host = facts(snapshot.machine.host) or Host()
    places = {
        "operating system": machine.os,
        "kernel": machine.kernel,
        "driver": machine.driver,
        "image": getattr(host, "image", None),
    }
    for kind, name in places.items():
        if isinstance(name, str) and name:
            yield kind, name


def _with_page(
    machine: JudgedMachine, report: Report, snapshot: Snapshot, pages: Path
) -> JudgedMachine:
    from ..reports import machine_page  # here: it takes the time and memory of jinja2

    name = f"{file_name(machine.name)}.html"
    page = machine_page.render(report, snapshot, name=machine.name, back="index.html")
    whole = pages / f".{name}.{os.getpid()}"
    whole.write_bytes(page.encode("utf-8", "backslashreplace"))
    whole.replace(pages / name)
    return replace(machine, page=name)
