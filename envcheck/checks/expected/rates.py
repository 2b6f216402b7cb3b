"""The profile against what was measured: no rate below what machines of this product reach."""

from __future__ import annotations

from collections.abc import Iterator

from ...attributes.measurements import measurements
from ...attributes.model import Measurement
from ...attributes.values import gpu_called, gpus_of
from ...attributes.wanted_rates import RATES, WantedRate, wanted_rate
from ..driver_state import NO_GPUS
from ..gpus import together
from ..reading import Skip, SnapshotView, known
from ..verdicts import Evidence, Finding, Passed, Subject, Verdicts, about_gpu, check, fail
from .common import CHANGE, place, wanted_tables

# By what a measurement's key begins with: where its facts are, and what shows them.
_AT = {
    "kernels": ("machine.micro_kernels.runs", "envcheck doctor -v --only tensorcores"),
    "memory": ("machine.acceleration.runs", "envcheck doctor -v --only memory"),
    "links": ("machine.acceleration.runs", "envcheck doctor -v --only memory"),
    "peers": ("machine.acceleration.runs", "envcheck doctor -v --only memory"),
    "nccl": ("target.acceleration.runs", "envcheck doctor -v --only nccl"),
    "bench": ("target.bench.rows", "envcheck bench"),
    "soak": ("machine.soak.gpus", "envcheck soak"),
}


SLOW = fail(
    "rate-beyond-profile",
    "is slower than the profile says",
    "{what}: the profile wants {bound} {unit} ({place}); here it is {value:.4g}{usual}.",
    CHANGE,
    cases=("key",),
)


@check(
    "EXP-013",
    title="What was measured is as fast as the profile says",
    causes=[SLOW],
    about="Rates of kernels, memory, links, NCCL, a bench and a soak, compared with the bounds of a profile"
    " ([[products.rates]]). Only rates measured under the same conditions are compared.",
    sources=("the profile",),
    follows=(*NO_GPUS, "EXP-012"),
)
def rates_are_as_expected(view: SnapshotView) -> Verdicts:
    wanted = [wanted_rate(table) for table in wanted_tables(view, RATES)[RATES]]
    figures: dict[str, list[Measurement]] = {}
    for one in measurements(view):
        figures.setdefault(one.key, []).append(one)
    held, found, other = 0, list[Finding](), set[str]()
    for rate in wanted:
        for one in figures.get(rate.name, []):
            if rate.under is not None and one.under != rate.under:
                other.add(rate.name)
                continue
            held += 1
            found += _slow(view, rate, one)
    if not held:
        why = ", and what was measured ran under other conditions" if other else ""
        raise Skip(f"no rate of the profile was measured here{why}")
    yield from together(found)
    if not found:
        yield Passed(f"{held} figures compared with {len(wanted)} rates of the profile")


def _slow(view: SnapshotView, rate: WantedRate, one: Measurement) -> Iterator[Finding]:
    too_low = rate.at_least is not None and one.value < rate.at_least
    too_high = rate.at_most is not None and one.value > rate.at_most
    if not too_low and not too_high:
        return
    bound = f"at least {rate.at_least:.4g}" if too_low else f"at most {rate.at_most:.4g}"
    usual = ""
    if rate.median:
        of = f" of {rate.machines} machines" if rate.machines else ""
        off = one.value / rate.median - 1
        usual = f", {off:+.0%} of the median{of}"
    at, shows = _AT.get(
        rate.name.partition(".")[0], ("machine.micro_kernels.runs", "envcheck doctor -v")
    )
    if at.startswith("machine.") and rate.name.startswith(("kernels.L1", "kernels.L2")):
        at = at.replace("machine.", "target.", 1)
    source = view.evidence(at, "").source
    yield SLOW.found(
        _subjects(view, one.device),
        [Evidence(at, f"{one.key}: {one.value:.4g} {one.unit}", source)],
        commands=[shows],
        key=one.key,
        what=one.words,
        bound=bound,
        unit=one.unit,
        place=place(view),
        value=one.value,
        usual=usual,
    )


def _subjects(view: SnapshotView, device: str) -> list[Subject]:
    names = device.split(" to ")
    return [
        subject
        for position, gpu in enumerate(gpus_of(view))
        if gpu_called(gpu, position) in names or known(gpu.pci_address) in names
        for subject in about_gpu(gpu)
    ]
