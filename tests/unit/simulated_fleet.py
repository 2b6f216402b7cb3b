"""Fleets of simulated Snapshots in which it is known who is the outlier, and why.

Machines of four products in racks below switches, from three images: each GPU as fast as the others but for
noise (of the machine, the GPU and the measurement: figures of the healthy lie within 3 % of their median).
Into some, something is put that differs or is slow; a rack has a fault of its own, one switch is silent.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import fleet
import h100
import msgspec
from msgspec.structs import replace
from targets import good_target, ok
from tensor_runs import MACHINES, level_run, micro_kernels

from envcheck.facts.gpu import Gpu
from envcheck.facts.micro_kernels import LevelRun
from envcheck.facts.snapshot import Snapshot
from envcheck.fleet.folder import FleetFolder, Member
from envcheck.fleet.model import FleetResult

_NAMED = {product.name: product for product in fleet.PRODUCTS}
# (product, its name among the micro-kernels' machines, GPUs, of how many in ten machines)
KINDS = (
    ("NVIDIA H100 80GB HBM3", "H100", 8, 5),
    ("NVIDIA A100-SXM4-40GB", "A100", 8, 3),
    ("NVIDIA L40S", "L40S", 4, 1),
    ("Tesla T4", "T4", 4, 1),
)
IN_RACK = 20
RACKS_PER_SWITCH = 2
_OTHER_DRIVER = 570
_PARAMETERS = {"EnableMSI": "1", "EnableGpuFirmware": "18"}
_MACHINE, _GPU, _MEASURED = 0.003, 0.005, 0.006


class Truth(NamedTuple):
    """What was put into a fleet: {(machine, key)} that differs, {(machine, GPU)} that is slow ("" for all
    of them), {(kind, place, code)} that machines share, and who is silent."""

    differs: set[tuple[str, str]]
    slow: set[tuple[str, str]]
    shared: set[tuple[str, str, str]]
    silent: set[str]


class SimulatedMachine(NamedTuple):
    member: Member
    snapshot: bytes


@cache
def base(name: str, short: str, count: int, branch: int = 580) -> Snapshot:
    """A healthy machine of a product, with the rates of its micro-kernels and a target."""
    product = _NAMED[name]
    gpus = [fleet.gpu(product, n, branch) for n in range(count)]
    runs = [
        level_run(MACHINES[short], "L0", pci_address=h100.ADDRESSES[n], index=n, uuid=gpu.uuid)
        for n, gpu in enumerate(gpus)
    ]
    snapshot = fleet.machine(product, branch, count, gpus=gpus, target=good_target(tensorflow=None))
    machine = replace(snapshot.machine, micro_kernels=ok(micro_kernels(*runs)))
    return _section(replace(snapshot, machine=machine), "kernel", driver_parameters=_PARAMETERS)


def simulated(seed: int, count: int) -> tuple[list[SimulatedMachine], Truth]:
    """The fleet of this seed, and what was put into it."""
    chance = random.Random(seed)
    truth = Truth(set(), set(), set(), set())
    names = [f"gpu{number:04}" for number in range(1, count + 1)]
    racks = {name: (number // IN_RACK) + 1 for number, name in enumerate(names)}
    last = max(racks.values())
    sick = chance.randint(1, last - 1)
    silent = chance.choice([r for r in range(1, last) if _switch(r) != _switch(sick)])
    # of a product, a rack of its own: what a rack shares is then told from what a product shares
    kinds = {name: chance.choices(KINDS, [kind[3] for kind in KINDS])[0] for name in names}
    free = [name for name in names if racks[name] not in (sick, silent)]
    chance.shuffle(free)
    put: dict[str, _Fault] = {}
    for fault in _FAULTS:
        victim = next(n for n in free if n not in put and (not fault.of or kinds[n][1] in fault.of))
        put[victim] = fault
    for name in chance.sample([name for name in free if name not in put], max(1, count // 100)):
        truth.silent.add(name)
    machines = []
    for name in names:
        rack = racks[name]
        groups = [("group", f"rack-{rack}"), ("switch", _switch(rack))]
        image = [("image", f"image-{chance.randint(1, 3)}")]
        if name in truth.silent or _switch(rack) == _switch(silent):
            truth.silent.add(name)
            dead = Member(name=name, outcome="unreachable", reason="No route", groups=groups)
            machines.append(SimulatedMachine(dead, b""))
            continue
        snapshot = base(*kinds[name][:3])
        if name in put:
            victim = chance.randrange(kinds[name][2])
            snapshot = put[name].change(kinds[name], snapshot, victim)
            truth.differs.update((name, key) for key in put[name].differs)
            truth.slow.update((name, f"GPU {victim}") for _ in put[name].slow if put[name].one)
            truth.slow.update((name, "") for _ in put[name].slow if not put[name].one)
        if rack == sick:
            snapshot = _gpus(snapshot, lambda gpu: replace(gpu, **_HOT))
        shown = msgspec.json.encode(_noisy(snapshot, chance))
        machines.append(SimulatedMachine(Member(name=name, groups=groups + image), shown))
    truth.shared.update({("group", f"rack-{sick}", "GPU-008"), ("switch", _switch(silent), "")})
    return machines, truth


def keep(folder: FleetFolder, machines: list[SimulatedMachine]) -> None:
    """Write a fleet's directory."""
    for machine in machines:
        if machine.snapshot:
            folder.file(machine.member.name).write_bytes(machine.snapshot)
    folder.write_roster("simulated", [machine.member for machine in machines])


_HOT: dict[str, Any] = {"temperature_c": 88, "clock_event_reasons": ["hw_thermal_slowdown"]}


def _switch(rack: int) -> str:
    return f"leaf{(rack - 1) // RACKS_PER_SWITCH + 1}"


def _noise(chance: random.Random, share: float) -> float:
    """Normal, and never beyond two standard deviations."""
    return 1 + share * max(-2.0, min(2.0, chance.gauss(0, 1)))


def _noisy(snapshot: Snapshot, chance: random.Random) -> Snapshot:
    machine = _noise(chance, _MACHINE)

    def vary(run: LevelRun) -> LevelRun:
        gpu = machine * _noise(chance, _GPU)
        return faster(run, lambda: gpu * _noise(chance, _MEASURED))

    return runs(snapshot, vary)


def faster(run: LevelRun, factor: Callable[[], float]) -> LevelRun:
    modes = []
    for mode in run.modes:
        rate = mode.rate
        if rate is not None and isinstance(rate.tflops, float):
            mode = replace(mode, rate=replace(rate, tflops=rate.tflops * factor()))
        modes.append(mode)
    return replace(run, modes=modes)


def runs(snapshot: Snapshot, change: Callable[[LevelRun], LevelRun]) -> Snapshot:
    probe = snapshot.machine.micro_kernels
    assert probe is not None and probe.facts is not None
    facts = replace(probe.facts, runs=[change(run) for run in probe.facts.runs])
    machine = replace(snapshot.machine, micro_kernels=replace(probe, facts=facts))
    return replace(snapshot, machine=machine)


def _gpus(snapshot: Snapshot, change: Callable[[Gpu], Gpu]) -> Snapshot:
    """On all GPUs, as NVML and nvidia-smi both tell them."""
    probes: dict[str, Any] = {}
    for name in ("nvml", "nvidia_smi"):
        probe: Any = getattr(snapshot.machine, name)
        gpus = [change(gpu) for gpu in probe.facts.gpus]
        probes[name] = replace(probe, facts=replace(probe.facts, gpus=gpus))
    return replace(snapshot, machine=replace(snapshot.machine, **probes))


def _section(snapshot: Snapshot, name: str, **changes: Any) -> Snapshot:
    probe: Any = getattr(snapshot.machine, name)
    probe = replace(probe, facts=replace(probe.facts, **changes))
    return replace(snapshot, machine=replace(snapshot.machine, **{name: probe}))


class _Fault(NamedTuple):
    """change: of (kind, Snapshot, the GPU that gets it). of: the products that it is put into, or any."""

    change: Callable[[Any, Snapshot, int], Snapshot]
    differs: tuple[str, ...] = ()
    slow: tuple[str, ...] = ()
    one: bool = True
    of: tuple[str, ...] = ()


def _slow(share: float) -> _Fault:
    def change(_kind: Any, snapshot: Snapshot, victim: int) -> Snapshot:
        def vary(run: LevelRun) -> LevelRun:
            return faster(run, lambda: 1 - share) if run.index == victim else run

        return runs(snapshot, vary)

    return _Fault(change, slow=("kernels",))


def _slow_machine(share: float) -> _Fault:
    def change(_kind: Any, snapshot: Snapshot, _victim: int) -> Snapshot:
        return runs(snapshot, lambda run: faster(run, lambda: 1 - share))

    return _Fault(change, slow=("kernels",), one=False)


def _gpu_fact(key: str, **facts: Any) -> _Fault:
    def change(_kind: Any, snapshot: Snapshot, victim: int) -> Snapshot:
        return _gpus(snapshot, lambda g: replace(g, **facts) if g.index == victim else g)

    return _Fault(change, (key,))


def _all_gpus(key: str, **facts: Any) -> _Fault:
    def change(_kind: Any, snapshot: Snapshot, _victim: int) -> Snapshot:
        return _gpus(snapshot, lambda gpu: replace(gpu, **facts))

    return _Fault(change, (key,))


def _other_driver(kind: Any, _snapshot: Snapshot, _victim: int) -> Snapshot:
    return base(*kind[:3], _OTHER_DRIVER)


def _less_memory(_kind: Any, snapshot: Snapshot, _victim: int) -> Snapshot:
    probe: Any = snapshot.machine.host
    return _section(snapshot, "host", memory_total_mib=probe.facts.memory_total_mib // 2)


def _other_kernel(_kind: Any, snapshot: Snapshot, _victim: int) -> Snapshot:
    return _section(snapshot, "host", kernel="5.15.0-97-generic")


def _parameter(_kind: Any, snapshot: Snapshot, _victim: int) -> Snapshot:
    return _section(snapshot, "kernel", driver_parameters=_PARAMETERS | {"EnableMSI": "0"})


def _package(_kind: Any, snapshot: Snapshot, _victim: int) -> Snapshot:
    target: Any = snapshot.target
    found = [
        replace(one, version="9.9.9") if one.normalized == "numpy" else one
        for one in target.packages.facts.distributions
    ]
    probe = replace(target.packages, facts=replace(target.packages.facts, distributions=found))
    return replace(snapshot, target=replace(target, packages=probe))


def _setting(_kind: Any, snapshot: Snapshot, _victim: int) -> Snapshot:
    target: Any = snapshot.target
    set_there = target.environment.facts.variables | {"NCCL_P2P_DISABLE": "1"}
    probe = replace(
        target.environment, facts=replace(target.environment.facts, variables=set_there)
    )
    return replace(snapshot, target=replace(target, environment=probe))


_FAULTS = (
    _slow(0.05),
    _slow(0.05),
    _slow(0.08),
    _slow(0.3),
    _slow_machine(0.08),
    _gpu_fact("gpus.pcie_lanes", pcie_width=8),
    _gpu_fact("gpus.vbios", vbios="96.00.5E.00.01"),
    _all_gpus("gpus.vbios", vbios="96.00.5E.00.02"),
    _Fault(_other_driver, ("driver.version",), of=("H100", "A100")),
    _Fault(_less_memory, ("machine.memory_gib",)),
    _Fault(_other_kernel, ("machine.kernel",)),
    _Fault(_parameter, ("parameters.EnableMSI",)),
    _Fault(_package, ("packages.numpy",)),
    _Fault(_setting, ("settings.NCCL_P2P_DISABLE",)),
)


def assert_found(found: FleetResult, truth: Truth) -> None:
    """All that was put in was found, and nothing else."""
    assert {(one.machine, one.key) for one in found.attribute_outliers} == truth.differs
    slow = {
        (one.machine, "" if len(one.devices) > 1 else one.devices[0]) for one in found.rate_outliers
    }
    assert slow == truth.slow
    assert {(one.kind, one.name, one.code) for one in found.shared} == truth.shared
    assert {name for one in found.unanswered for name in one.machines} == truth.silent
    assert found.splits == []
