"""Checks that compare a GPU with the others of its name: what should be equal in one machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from ...data.products import is_data_centre
from ...findings.subjects import gpu_subject
from ..driver_state import HOLDERS, NO_GPUS
from ..gpus import address_of, found, judge_gpus
from ..peer_groups import Outlier, groups, is_vgpu, of_many_makers, outliers
from ..reading import Gpu, SnapshotView, known, need
from ..verdicts import Cause, Evidence, Finding, Passed, Unjudged, Verdicts, check, warn

_QUERY = "nvidia-smi --query-gpu=index,pci.bus_id,{} --format=csv"
_NEAR = 0.02  # the share of a value by which boards may differ
_MUCH_LESS = 0.9


class Shared(NamedTuple):
    """One fact that peers share. unit: of a number, of which a small difference is none."""

    field: str
    name: str
    unit: str = ""

    def among(self) -> Callable[[Gpu], object]:
        """The fact's value; values near each other are the same."""
        seen: list[float] = []

        def value(gpu: Gpu) -> object:
            own = known(getattr(gpu, self.field))
            if not self.unit or not isinstance(own, (int, float)):
                return own
            for other in seen:
                if abs(own - other) <= _NEAR * max(own, other):
                    return other
            seen.append(own)
            return own

        return value

    def show(self, value: object) -> str:
        return (f"{value:g}" if isinstance(value, float) else str(value)) + self.unit


Differing = list[tuple[Shared, Outlier]]  # of one GPU


class Comparison(NamedTuple):
    """What one check compares.

    differs: the cause for one GPU; split: for GPUs without a majority, if that is one. less: the cause for
    one whose first fact is much less than its peers', if that is worse.
    """

    shared: list[Shared]
    differs: Cause
    split: Cause | None = None
    less: Cause | None = None

    def judge(self, view: SnapshotView) -> Verdicts:
        """One finding for each GPU that differs from its peers, one for all that have no majority."""
        for gpus in groups(view):
            name = known(gpus[0].name)
            if of_many_makers(gpus[0]):
                yield Passed(f"{name}: not compared, boards of many makers have this name")
                continue
            differing: dict[int, Differing] = {}
            for fact in self.shared:
                for one in outliers(gpus, fact.among()):
                    differing.setdefault(id(one.gpu), []).append((fact, one))
            split = [some for some in differing.values() if all(o.usual is None for _, o in some)]
            yield from (
                self._differs(view, some) for some in differing.values() if some not in split
            )
            if split and self.split:
                yield self._split(view, self.split, split)
            if not differing or (split and not self.split):
                known_of = [any(known(getattr(g, f.field)) for f in self.shared) for g in gpus]
                if sum(known_of) > 1:
                    yield Passed(f"{sum(known_of)} × {name} have the same settings")
                else:
                    why = f"the driver does not say what {name} is compared by"
                    yield Unjudged("skipped", why)

    def _differs(self, view: SnapshotView, some: Differing) -> Finding:
        (fact, one), *_ = some
        numbers = isinstance(one.value, int) and isinstance(one.usual, int)
        much = numbers and one.value < _MUCH_LESS * one.usual  # type: ignore[operator]
        cause = self.less if self.less and fact == self.shared[0] and much else self.differs
        values = "; ".join(
            f"{fact.name} {fact.show(one.value)}"
            + ("" if one.usual is None else f" (its peers: {fact.show(one.usual)})")
            for fact, one in some
        )
        return found(view, cause, one.gpu, "", evidence=_evidence(view, some), values=values)

    def _split(self, view: SnapshotView, cause: Cause, split: list[Differing]) -> Finding:
        subjects = [gpu_subject(some[0][1].gpu) for some in split]
        values = [
            "; ".join(f"{fact.name} {fact.show(one.value)}" for fact, one in some) for some in split
        ]
        each = [f"{one.text}: {value}" for one, value in zip(subjects, values, strict=True)]
        address = address_of(split[0][0][1].gpu)
        commands = [command.format(gpu=address) for command in cause.commands]
        evidence = [item for some in split for item in _evidence(view, some)]
        return cause.found(subjects, evidence, commands=commands, values=" | ".join(each))


def _evidence(view: SnapshotView, some: Differing) -> list[Evidence]:
    shown = [view.gpu_evidence(one.gpu, fact.field) for fact, one in some]
    for fact, one in some:
        if one.peer is not None:
            usual = view.gpu_evidence(one.peer, fact.field)
            shown.append(msgspec.structs.replace(usual, value=f"{usual.value} (its peers)"))
    return shown


def _peer_check(
    code: str,
    title: str,
    differs: Cause,
    shared: list[Shared],
    about: str,
    source: str,
    follows: tuple[str, ...] = (),
    less: str = "",
) -> None:
    """Register a comparison. less: the key of a failure, if the first fact is much less than the peers'."""
    split = differs.variant(
        f"{differs.key}-split", sentence=f"GPUs of one name differ: {differs.sentence}"
    )
    one = f"It differs from the other GPUs of its name: {differs.sentence}"
    differs = differs.variant(differs.key, sentence=one)
    worse = differs.variant(less, severity="fail") if less else None
    check(
        code,
        title=title,
        causes=[differs, split, *([worse] if worse else [])],
        about=about,
        sources=[source],
        follows=(*NO_GPUS, *follows),
    )(Comparison(shared, differs, split, worse).judge)


_peer_check(
    "GPU-021",
    "GPUs of one name have the same memory",
    warn(
        "other-memory",
        "has another size of memory than its peers",
        "{values}. Work that is divided evenly fits only the smallest of them.",
        "Compare the GPUs; if the difference stays after a power cycle, look for a mode that takes memory"
        " away (MIG, vGPU) and for a firmware setting (Above 4G decoding), and have the board diagnosed.",
        _QUERY.format("memory.total,ecc.mode.current,mig.mode.current"),
        "nvidia-smi -q -d MEMORY -i {gpu}",
    ),
    [Shared("memory_total_mib", "memory", " MiB"), Shared("bar1_total_mib", "BAR1", " MiB")],
    "A GPU that reports less memory than the others of its name in the machine runs out of memory first, and"
    " with it every job that divides its work evenly.",
    "nvidia-smi(1), FB Memory Usage, BAR1 Memory Usage",
    ("GPU-022", "GPU-003"),
    less="less-memory",
)
_peer_check(
    "GPU-023",
    "GPUs of one name have the same firmware",
    warn(
        "other-firmware",
        "has other firmware than its peers",
        "{values}. Limits, clocks and known faults may differ, too.",
        "Ask the machine's vendor for the firmware that belongs to it, and update all GPUs to it.",
        _QUERY.format("vbios_version,inforom.img"),
    ),
    [Shared("vbios", "VBIOS"), Shared("inforom", "InfoROM image")],
    "GPUs that were bought together have one VBIOS and one InfoROM image; a board that was replaced brings"
    " its own. Boards that many makers build (GeForce, TITAN) are not compared.",
    "nvidia-smi(1), VBIOS Version, Inforom Version",
)
_peer_check(
    "GPU-024",
    "GPUs of one name may draw the same power, and reach the same clocks",
    warn(
        "other-power-or-clocks",
        "has another power limit or clocks than its peers",
        "{values}. The slowest GPU sets the pace of a job that all share.",
        "Check which limit the board has by default, and set that unless somebody wants another; if the"
        " board's own limits or clocks differ, compare VBIOS and part numbers, and ask the vendor.",
        _QUERY.format("power.limit,power.default_limit,power.max_limit,clocks.max.sm"),
    ),
    [
        Shared("power_limit_w", "power limit", " W"),
        Shared("power_default_limit_w", "default power limit", " W"),
        Shared("power_max_limit_w", "highest power limit", " W"),
        Shared("clock_sm_max_mhz", "highest SM clock", " MHz"),
        Shared("clock_memory_max_mhz", "highest memory clock", " MHz"),
    ],
    "In a job that all GPUs share, the slowest sets the pace. A GPU with other limits than its peers is"
    " another variant of the board, has other firmware, or a limit that somebody set.",
    "nvidia-smi(1), Power Readings, Max Clocks",
    ("GPU-009", "GPU-023"),
)
_peer_check(
    "GPU-025",
    "GPUs of one name are in one NVLink fabric",
    warn(
        "other-fabric",
        "is in another NVLink fabric than its peers",
        "{values}. NVLink does not join GPUs of different cliques or clusters: PCIe does.",
        "Check the partitions that the fabric manager (or NVLink's controller in the rack) was given, and put"
        " the machine's GPUs into one.",
        _QUERY.format("fabric.state,fabric.cliqueId,fabric.clusterUuid"),
        "journalctl -u nvidia-fabricmanager -n 100",
    ),
    [Shared("fabric_clique", "clique"), Shared("fabric_cluster", "cluster")],
    "GPUs behind NVSwitches reach each other by NVLink within one clique of one cluster, as the fabric"
    " manager divides them.",
    "NVIDIA GB200 NVL Partition User Guide DU-12143-001",
    ("GPU-012",),
)


ECC_OFF = warn(
    "ecc-off",
    "has ECC off",
    "ECC is off, and this product is sold with ECC on: memory errors go unnoticed, and results may be wrong.",
    "Switch it on, stop what uses the GPUs, and reset them (or reboot).",
)


@check(
    "GPU-022",
    title="ECC is on where the product has it on",
    causes=(ECC_OFF,),
    about="Data-centre GPUs come with ECC on: if it is off, memory errors go unnoticed. The mode is stored in"
    " the board's InfoROM and comes with it from another machine; a change takes effect at the next reset.",
    sources=["nvidia-smi(1), Ecc Mode; envcheck/data/data_centre_gpus.csv"],
    follows=NO_GPUS,
)
def ecc_is_as_sold(view: SnapshotView) -> Verdicts:
    off: list[Gpu] = []
    verdicts = list(judge_gpus(view, lambda gpu: _ecc(gpu, off)))
    if off:
        addresses = ",".join(map(address_of, off))
        reset = f"sudo nvidia-smi --gpu-reset -i {addresses}"
        yield ECC_OFF.found(
            [gpu_subject(gpu) for gpu in off],
            [view.gpu_evidence(gpu, "ecc_enabled") for gpu in off],
            commands=[f"sudo nvidia-smi -i {addresses} -e 1", HOLDERS, reset],
        )
    yield from (one for one in verdicts if not isinstance(one, Passed) or not off)


def _ecc(gpu: Gpu, off: list[Gpu]) -> Verdicts:
    """Adds to ``off`` a GPU whose product has ECC on."""
    on = need(gpu.ecc_enabled, "ECC")
    if known(gpu.ecc_pending) not in (None, on):
        yield Passed("a change of the ECC mode is pending (GPU-002)")
    elif on or is_vgpu(gpu) or not is_data_centre(known(gpu.name) or ""):
        yield Passed(f"ECC is {'on' if on else 'off'}")
    else:
        off.append(gpu)
