"""The check on a GPU's ECC mode: the product is the norm, whatever the machine's other GPUs have."""

from __future__ import annotations

from collections.abc import Iterator

from ...data.data_centre_gpus import is_data_centre
from ...facts.base import known
from ...facts.gpu import Gpu
from ...facts.missing import CannotJudge
from ...facts.view import SnapshotView, need
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.subjects import gpu_subject
from ..driver_state import HOLDERS, NO_GPUS
from ..gpus import address_of, judge_gpus
from ..peer_groups import groups, is_vgpu
from ..registry import check
from .peers import QUERY, Equal, differences


class Settled(Equal):
    """A mode; a GPU whose mode is about to change is no peer (GPU-002 tells of it)."""

    def of(self, gpu: Gpu) -> object:
        mode, pending = known(gpu.ecc_enabled), known(gpu.ecc_pending)
        return None if pending is not None and pending != mode else mode


_ECC = Settled("ecc_enabled", "ECC")


@check(
    "GPU-022",
    title="ECC is on where the product has it on",
    problem="has ECC off",
    about="Data-centre GPUs come with ECC on: where it is off, memory errors go unseen, however many of the"
    " machine's GPUs have it off. The mode stands in the board's InfoROM and comes with it from another"
    " machine; a change waits for the next reset. A warning. Of other products, which have it on or off as"
    " their owner likes, it is only told where GPUs of one name differ.",
    sources=("nvidia-smi(1), Ecc Mode", "envcheck/data/data_centre_gpus.csv"),
    follows=NO_GPUS,
)
def ecc_is_as_sold(view: SnapshotView) -> Iterator[Verdict]:
    off: list[Gpu] = []
    verdicts = list(judge_gpus(view, lambda gpu: _ecc(gpu, off)))
    if off:
        yield _ecc_off(view, off)
    differing = [gpus for gpus in _others(view) if differences(gpus, (_ECC,))]
    yield from (_ecc_differs(view, gpus) for gpus in differing)
    yield from (one for one in verdicts if not isinstance(one, Passed) or not (off or differing))


def _others(view: SnapshotView) -> list[list[Gpu]]:
    """GPUs of one name that are no data-centre GPUs."""
    try:
        return [gpus for gpus in groups(view) if not is_data_centre(known(gpus[0].name) or "")]
    except CannotJudge:
        return []


def _ecc(gpu: Gpu, off: list[Gpu]) -> Iterator[Verdict]:
    """Adds to ``off`` a GPU whose product has ECC on."""
    need(gpu.ecc_enabled, "ECC")
    mode = _ECC.of(gpu)
    if mode is None:
        yield Passed("a change of the ECC mode is pending (GPU-002)")
    elif mode or is_vgpu(gpu) or not is_data_centre(known(gpu.name) or ""):
        yield Passed(f"ECC is {_ECC.show(mode)}")
    else:
        off.append(gpu)


def _ecc_off(view: SnapshotView, gpus: list[Gpu]) -> Finding:
    addresses = ",".join(map(address_of, gpus))
    return Finding(
        "warn",
        "ECC is off, which is on in this product as it is sold: memory errors go unseen, and what is computed"
        " with them is wrong.",
        [gpu_subject(gpu) for gpu in gpus],
        [view.gpu_evidence(gpu, "ecc_enabled") for gpu in gpus],
        Remedy(
            "Switch it on, stop what uses the GPUs, and reset them (or reboot).",
            [
                f"sudo nvidia-smi -i {addresses} -e 1",
                HOLDERS,
                f"sudo nvidia-smi --gpu-reset -i {addresses}",
            ],
        ),
    )


def _ecc_differs(view: SnapshotView, gpus: list[Gpu]) -> Finding:
    modes = ((gpu, _ECC.of(gpu)) for gpu in gpus)
    told = [
        f"{gpu_subject(gpu).text}: {_ECC.show(mode)}" for gpu, mode in modes if mode is not None
    ]
    return Finding(
        "warn",
        f"GPUs of one name differ in ECC: {' | '.join(told)}. Memory errors go unseen where it is off, and"
        " results of one job come from both.",
        [gpu_subject(gpu) for gpu in gpus],
        [view.gpu_evidence(gpu, "ecc_enabled") for gpu in gpus],
        Remedy(
            "Settle for one mode; with ECC on, memory errors are seen.",
            [QUERY.format("ecc.mode.current,ecc.mode.pending")],
        ),
        "differ in their ECC mode",
    )
