"""From the micro-kernels' facts to verdicts: what is proven, of which mode, at which level, on which GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..facts.base import known
from ..facts.micro_kernels import Level, Mode
from ..facts.recording import once
from ..facts.snapshot import Snapshot
from ..facts.view import SnapshotView, view_of
from ..findings.subjects import Subject
from . import causes
from .circumstances import Setup, directory
from .mode_verdict import Line, ModeVerdict, Verdict
from .rates import name, question
from .runs import Place, RunEvidence, all_seen, library
from .verdicts import verdict

_BELOW: dict[Level, Level] = {"L1": "L0", "L2": "L1"}
_AS_IT_MUST: Verdict = "not engaged"  # a control
_ABOVE: dict[Level, Level] = {"L0": "L1", "L1": "L2"}


class _Around(NamedTuple):
    """What is the same for all runs of a Snapshot.

    controls: the verdict on each place's, the first that is not "not engaged". verdicts: the first of each
    GPU, level and mode. variables: the target's, as the user has them. directory: the target's.
    """

    controls: Mapping[Place, Verdict]
    verdicts: Mapping[tuple[Subject | None, Level, Mode], Verdict]
    variables: Mapping[str, str]
    directory: str


class Case(NamedTuple):
    """A ModeVerdict with the facts under it.

    calm: "indicated", and nothing is amiss: what a proof needs beyond that is not to be had from this chip
    and these libraries. chosen: "not engaged", as a variable that the user has set asks for.
    """

    seen: RunEvidence
    judged: ModeVerdict
    calm: bool = False
    chosen: bool = False


def judge(snapshot: Snapshot) -> list[ModeVerdict]:
    """Every mode (at L2 in every setting) of every level of every GPU, in the Snapshot's order."""
    return [case.judged for case in cases(snapshot)]


def cases(snapshot: Snapshot) -> tuple[Case, ...]:
    """As `judge`, with the facts that each verdict rests on."""
    return _cases(view_of(snapshot))


@once
def _cases(view: SnapshotView) -> tuple[Case, ...]:
    seen = list(all_seen(view))
    controls: dict[Place, Verdict] = {}
    for one in seen:
        if one.control and controls.get(one.place, _AS_IT_MUST) == _AS_IT_MUST:
            controls[one.place] = _verdict(one, False)
    around = _Around(controls, _first_of_each(seen, controls), _variables(view), directory(view))
    return tuple(_judged(one, around) for one in seen)


def _first_of_each(
    seen: list[RunEvidence], controls: Mapping[Place, Verdict]
) -> dict[tuple[Subject | None, Level, Mode], Verdict]:
    """The first verdict on each mode at each level of each GPU."""
    found: dict[tuple[Subject | None, Level, Mode], Verdict] = {}
    for one in seen:
        key = one.gpu, one.run.level, one.mode.mode
        if key not in found:
            found[key] = _verdict(one, controls.get(one.place) == _AS_IT_MUST)
    return found


def _verdict(seen: RunEvidence, control_ok: bool) -> Verdict:
    if seen.chip.has(seen.mode.mode) is False:
        return "not applicable"
    if seen.mode.outcome != "ok":
        return "could not run"
    reading = seen.reading
    blind = reading.blind and not reading.wrong  # a wrong result is no exact one
    return verdict(blind, reading.says, seen.speed.line.says, seen.hardware.says, control_ok)


def _judged(seen: RunEvidence, around: _Around) -> Case:
    run, mode = seen.run, seen.mode
    control_ok = around.controls.get(seen.place) == _AS_IT_MUST
    found = _verdict(seen, control_ok)
    calm = _is_calm(seen, found, control_ok)
    proven = found == "proven" and not seen.control  # most are, and these have no cause
    why = None if proven else causes.why(_setup(seen, around, found, calm))
    measured = found != "not applicable"
    return Case(
        seen,
        ModeVerdict(
            level=run.level,
            framework=run.framework,
            library=library(run) if run.level == "L1" else "",
            gpu=seen.gpu,
            mode=mode.mode,
            setting=mode.setting,
            control=seen.control,
            verdict=found,
            bits=Line(says=seen.reading.says, text=seen.reading.text),
            rate=seen.speed.line,
            hardware=seen.hardware,
            tflops=seen.speed.tflops,
            peak_tflops=seen.speed.peak_tflops if measured else None,
            share=seen.speed.share if measured else None,
            ratio=seen.speed.ratio,
            reason=_reason(seen, found, control_ok),
            cause=why.cause if why else "",
            slow=seen.speed.slow if measured else "",
            remedy=why.remedy if why else None,
        ),
        calm,
        why is not None and why.chosen,
    )


def _setup(seen: RunEvidence, around: _Around, found: Verdict, calm: bool) -> Setup:
    run, asked = seen.run, question(seen.mode)

    def verdict_at(level: Level | None) -> Verdict | None:
        return None if level is None else around.verdicts.get((seen.gpu, level, asked))

    return Setup(
        run,
        seen.mode,
        seen.chip,
        seen.reading,
        seen.hardware,
        found,
        seen.control,
        around.controls.get(seen.place),
        calm,
        around.variables if run.level != "L0" else {},
        verdict_at(_BELOW.get(run.level)),
        verdict_at(_ABOVE.get(run.level)),
        around.directory,
    )


def _is_calm(seen: RunEvidence, found: Verdict, control_ok: bool) -> bool:
    """Whether nothing is amiss in "indicated".

    Each line says tensor, or is silent by nature: the bits where every unit gives the same, the rate where
    this chip's Tensor Cores are not much faster than its CUDA cores or their rate is not known, the hardware
    where no source is there or none knows the kernel. A healthy GPU looks like that for good, so nobody has
    to be warned of it. That the control does not hold, a disturbance, a line that was lost, or arithmetic
    that is not known are no silence by nature.
    """
    if found != "indicated" or not control_ok or seen.control or seen.run.busy:
        return False
    reading = seen.reading
    strange = reading.wrong or reading.unknown
    bits = not strange and (reading.says == "tensor" or reading.blind)
    return bits and (seen.speed.line.says == "tensor" or seen.speed.abstains)


def _reason(seen: RunEvidence, found: Verdict, control_ok: bool) -> str:
    reading, mode = seen.reading, seen.mode
    lines = (
        ("bits", reading.says),
        ("rate", seen.speed.line.says),
        ("hardware", seen.hardware.says),
    )
    if found == "not applicable":
        capability = known(seen.run.compute_capability) or "?"
        what = (
            seen.chip.why_none or f"compute capability {capability} has no {name(mode.mode)} mode"
        )
        return f"{what}: its products run on CUDA cores" if mode.outcome == "ok" else what
    if found == "could not run":
        busy = f"left alone, since it is in use: {seen.run.reason}"
        return busy if seen.run.outcome == "busy" else mode.reason or mode.outcome
    if found == "contradiction":
        return "; ".join(
            f"{line} say{'' if line == 'bits' else 's'} {says}" for line, says in lines
        )
    if reading.wrong or reading.unknown:
        return (reading.wrong or reading.text).rstrip(".")
    if found == "indicated":
        agree = [line for line, says in lines if says == "tensor"]
        so = f"{' and '.join(agree)} say{'s' if agree in (['rate'], ['hardware']) else ''} so"
        return f"{so}, without a control" if not control_ok and not seen.control else f"only {so}"
    return "no line of evidence is enough" if found == "cannot tell" else ""


def _variables(view: SnapshotView) -> dict[str, str]:
    target = view.snapshot.target
    probe = None if target is None else target.environment
    return {} if probe is None or probe.facts is None else probe.facts.variables
