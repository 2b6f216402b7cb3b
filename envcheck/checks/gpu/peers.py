"""Checks that hold a GPU against the others of its name: what ought to be equal in one machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from ...facts.base import known
from ...facts.gpu import Gpu
from ...facts.view import SnapshotView
from ...findings.model import Finding, Level, Passed, Remedy, Unjudged, Verdict
from ...findings.subjects import about_gpu
from ..driver_state import NO_GPUS
from ..gpus import address_of
from ..peer_groups import Unlike, groups, of_many_makers, unlike
from ..registry import check

QUERY = "nvidia-smi --query-gpu=index,pci.bus_id,{} --format=csv"
_NEAR = 0.02  # of a value in which boards may differ
_MUCH_LESS = 0.9


class Equal(NamedTuple):
    """One fact that peers share. words: how it is called; near: a small difference is none."""

    field: str
    words: str
    unit: str = ""
    near: bool = False

    def of(self, gpu: Gpu) -> object:
        return known(getattr(gpu, self.field))

    def among(self, gpus: list[Gpu]) -> Callable[[Gpu], object]:
        """As ``of``, with one value for those of the GPUs that are near each other."""
        if not self.near:
            return self.of
        seen: list[float] = []

        def nearest(gpu: Gpu) -> object:
            value = self.of(gpu)
            if not isinstance(value, (int, float)):
                return None
            for other in seen:
                if abs(value - other) <= _NEAR * max(value, other):
                    return other
            seen.append(value)
            return value

        return nearest

    def show(self, value: object) -> str:
        if isinstance(value, bool):
            return "on" if value else "off"
        return f"{value:g}{self.unit}" if isinstance(value, float) else f"{value}{self.unit}"


class Unequal(NamedTuple):
    equal: Equal
    unlike: Unlike[object]

    @property
    def told(self) -> str:
        what, gpu = self.equal, self.unlike
        said = f"{what.words} {what.show(gpu.value)}"
        if gpu.usual is None:
            return said
        return f"{said} (its peers: {what.show(gpu.usual)})"


def differences(gpus: list[Gpu], equals: tuple[Equal, ...]) -> dict[int, list[Unequal]]:
    """{place in ``gpus``: how that GPU differs}"""
    found: dict[int, list[Unequal]] = {}
    for equal in equals:
        for one in unlike(gpus, equal.among(gpus)):
            place = next(n for n, gpu in enumerate(gpus) if gpu is one.gpu)
            found.setdefault(place, []).append(Unequal(equal, one))
    return found


def _compared(
    view: SnapshotView,
    equals: tuple[Equal, ...],
    effect: str,
    remedy: Callable[[Gpu, list[Unequal]], Remedy],
    *,
    level: Callable[[Gpu, list[Unequal]], Level] = lambda _gpu, _differs: "warn",
    one_maker: bool = True,
) -> Iterator[Verdict]:
    """The GPUs that differ from their peers, each a Finding; two or more without a majority are one.

    one_maker: boards of many makers, which differ from each other by nature, are not compared.
    """
    for gpus in groups(view):
        name = known(gpus[0].name)
        if one_maker and of_many_makers(gpus[0]):
            yield Passed(f"{name}: not compared, boards of many makers have this name")
            continue
        found = differences(gpus, equals)
        findings = [
            _finding(view, gpus[n], differs, effect, remedy, level) for n, differs in found.items()
        ]
        split = [
            finding
            for finding, differs in zip(findings, found.values(), strict=True)
            if all(difference.unlike.usual is None for difference in differs)
        ]
        yield from (finding for finding in findings if finding not in split)
        if split:
            yield _split(split, effect)
        if not findings:
            told = sum(any(equal.of(gpu) is not None for equal in equals) for gpu in gpus)
            if told > 1:
                yield Passed(f"{told} × {name} are alike")
            else:
                yield Unjudged("skipped", f"the driver does not say what {name} is compared by")


def _finding(
    view: SnapshotView,
    gpu: Gpu,
    differs: list[Unequal],
    effect: str,
    remedy: Callable[[Gpu, list[Unequal]], Remedy],
    level: Callable[[Gpu, list[Unequal]], Level],
) -> Finding:
    told = "; ".join(difference.told for difference in differs)
    evidence = [view.gpu_evidence(gpu, difference.equal.field) for difference in differs]
    for difference in differs:
        usual = difference.unlike.usual
        peer = next((g for g, value in difference.unlike.peers if value == usual), None)
        if peer is not None:
            theirs = view.gpu_evidence(peer, difference.equal.field)
            evidence.append(msgspec.structs.replace(theirs, value=f"{theirs.value} (its peers)"))
    return Finding(
        level(gpu, differs),
        f"It differs from the other GPUs of its name: {told}. {effect}",
        about_gpu(gpu),
        evidence,
        remedy(gpu, differs),
    )


def _split(findings: list[Finding], effect: str) -> Finding:
    """GPUs of which none has what most have: that they differ, and what each has."""
    told = []
    for finding in findings:
        _intro, _colon, has = finding.message.partition("name: ")
        told.append(f"{finding.subjects[0].text}: {has.removesuffix(f'. {effect}')}")
    return msgspec.structs.replace(
        findings[0],
        level="warn",
        message=f"GPUs of one name differ: {' | '.join(told)}. {effect}",
        subjects=[subject for finding in findings for subject in finding.subjects],
        evidence=[item for finding in findings for item in finding.evidence],
    )


@check(
    "GPU-021",
    title="GPUs of one name have the same memory",
    problem="has another size of memory than its peers",
    about="GPUs of one name in one machine have the same memory. One that reports less than its peers runs"
    " out of memory first, and every job that divides its work evenly with it; a part of the board is"
    " broken, or somebody else's partition took it. Much less memory on a board that has one maker is a"
    " failure; another size of the window through which the processor and other devices see it (BAR1) is a"
    " warning.",
    sources=("nvidia-smi(1), FB Memory Usage, BAR1 Memory Usage",),
    follows=(*NO_GPUS, "GPU-022", "GPU-003"),
)
def memory_is_alike(view: SnapshotView) -> Iterator[Verdict]:
    def remedy(gpu: Gpu, _differs: list[Unequal]) -> Remedy:
        return Remedy(
            "Compare the GPUs; if the difference stays after a power cycle of the machine, look for a mode"
            " that takes memory away (MIG, vGPU), for a firmware setting (Above 4G decoding, Resizable BAR),"
            " and have the board diagnosed.",
            [
                QUERY.format("memory.total,ecc.mode.current,mig.mode.current"),
                f"nvidia-smi -q -d MEMORY -i {address_of(gpu)}",
            ],
        )

    def level(gpu: Gpu, differs: list[Unequal]) -> Level:
        for difference in differs:
            value, usual = difference.unlike.value, difference.unlike.usual
            if (
                difference.equal.field == "memory_total_mib"
                and isinstance(value, int)
                and isinstance(usual, int)
                and value < _MUCH_LESS * usual
                and not of_many_makers(gpu)
            ):
                return "fail"
        return "warn"

    yield from _compared(
        view,
        (
            Equal("memory_total_mib", "memory", " MiB", near=True),
            Equal("bar1_total_mib", "BAR1", " MiB", near=True),
        ),
        "Work that is divided evenly fits the smallest of them alone.",
        remedy,
        level=level,
    )


@check(
    "GPU-023",
    title="GPUs of one name have the same firmware",
    problem="has other firmware than its peers",
    about="GPUs that were bought together have one VBIOS and one InfoROM image; a board that was replaced"
    " brings its own, with other limits, clocks or known faults. Vendors ask for equal versions before they"
    " look into anything else. A warning; boards that many makers build (GeForce, TITAN) are not compared.",
    sources=("nvidia-smi(1), VBIOS Version, Inforom Version",),
    follows=NO_GPUS,
)
def firmware_is_alike(view: SnapshotView) -> Iterator[Verdict]:
    def remedy(gpu: Gpu, _differs: list[Unequal]) -> Remedy:
        part = known(gpu.board_part_number)
        return Remedy(
            "Ask the machine's vendor for the firmware that belongs to it, and bring all GPUs to it"
            + (f" (this board: {part})." if part else "."),
            [QUERY.format("vbios_version,inforom.img")],
        )

    yield from _compared(
        view,
        (Equal("vbios", "VBIOS"), Equal("inforom", "InfoROM image")),
        "Limits, clocks and known faults may differ with it.",
        remedy,
    )


@check(
    "GPU-024",
    title="GPUs of one name may draw the same power, and reach the same clocks",
    problem="has another power limit or clocks than its peers",
    about="In a job that all GPUs share, the slowest sets the pace. A GPU whose power limit, default or"
    " highest limit, or highest clocks are not those of its peers is another variant of the board, has"
    " other firmware, or a limit that somebody set: a warning. A limit that is set on all alike is the"
    " owner's business. Boards that many makers build (GeForce, TITAN) are not compared.",
    sources=("nvidia-smi(1), Power Readings, Max Clocks", "NVSentinel#890"),
    follows=(*NO_GPUS, "GPU-009", "GPU-023"),
)
def power_is_alike(view: SnapshotView) -> Iterator[Verdict]:
    def remedy(gpu: Gpu, _differs: list[Unequal]) -> Remedy:
        commands = [
            QUERY.format("power.limit,power.default_limit,power.max_limit,clocks.max.sm"),
        ]
        default, limit = known(gpu.power_default_limit_w), known(gpu.power_limit_w)
        if default is not None and limit != default:
            commands.append(f"sudo nvidia-smi -i {address_of(gpu)} -pl {default:g}")
        return Remedy(
            "See which limit the board has by default, and set that where nobody wants another; if the"
            " board's own limits or clocks differ, compare VBIOS and part numbers, and ask the vendor.",
            commands,
        )

    yield from _compared(
        view,
        (
            Equal("power_limit_w", "power limit", " W", near=True),
            Equal("power_default_limit_w", "default power limit", " W", near=True),
            Equal("power_max_limit_w", "highest power limit", " W", near=True),
            Equal("clock_sm_max_mhz", "highest SM clock", " MHz", near=True),
            Equal("clock_memory_max_mhz", "highest memory clock", " MHz", near=True),
        ),
        "The slowest GPU sets the pace of a job that all share.",
        remedy,
    )


@check(
    "GPU-025",
    title="GPUs of one name are in one NVLink fabric",
    problem="is in another NVLink fabric than its peers",
    about="GPUs behind NVSwitches reach each other by NVLink within one clique of one cluster, as the fabric"
    " manager divides them. A GPU of another clique or cluster than its peers in the machine reaches them"
    " over PCIe alone, and multi-node jobs fail or fall back: a warning.",
    sources=("nvml.h, nvmlGpuFabricInfo_t", "NVIDIA GB200 NVL Partition User Guide DU-12143-001"),
    follows=(*NO_GPUS, "GPU-012"),
)
def fabric_is_alike(view: SnapshotView) -> Iterator[Verdict]:
    def remedy(_gpu: Gpu, _differs: list[Unequal]) -> Remedy:
        return Remedy(
            "Look at the partitions that the fabric manager (or NVLink's controller in the rack) was given,"
            " and put the machine's GPUs into one.",
            [
                QUERY.format("fabric.state,fabric.cliqueId,fabric.clusterUuid"),
                "journalctl -u nvidia-fabricmanager -n 100",
            ],
        )

    yield from _compared(
        view,
        (Equal("fabric_clique", "clique"), Equal("fabric_cluster", "cluster")),
        "NVLink does not join GPUs of different cliques or clusters: they reach each other over PCIe.",
        remedy,
    )
