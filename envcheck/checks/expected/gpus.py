"""The profile against the GPUs: which there are, what each has, its modes, and what is proven of them."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.base import known
from ...facts.gpu import Gpu
from ...facts.micro_kernels import Mode
from ...facts.missing import CouldNotRun, Skip
from ...facts.profile import Value, Wanted
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Remedy, Unjudged, Verdict
from ...findings.shell import word
from ...findings.subjects import Subject, about_gpu
from ...profiles.fits import fits
from ...profiles.keys import COUNT, NAME, PROVEN, SECTIONS, TENSOR_CORES
from ...tensorcores.judge import cases
from ..driver_state import HOLDERS, NO_GPUS
from ..gpus import address_of, together
from ..on_the_bus import NVIDIA_DEVICES
from ..registry import check
from .common import RAISED, held, place, told, wanted_tables, words_of

_MODES = ("ecc", "mig", "persistence", "compute_mode", "power_limit_w")


def _gpus(view: SnapshotView) -> list[Gpu]:
    """The GPUs; where a profile wants some, not to have looked at them is no reason to skip."""
    try:
        return view.gpus
    except Skip as why:
        raise CouldNotRun(str(why)) from None


def _named(gpus: list[Gpu], wanted: Wanted | None) -> list[Gpu]:
    """The GPUs that a table is about: of that name, or, where none has it, with its words in their names."""
    if wanted is None:
        return gpus
    exact = [gpu for gpu in gpus if fits(wanted.value, known(gpu.name) or "", "text")]
    return exact or [gpu for gpu in gpus if _within(wanted.value, known(gpu.name) or "")]


def _within(wanted: Value, name: str) -> bool:
    if isinstance(wanted, list):
        return any(_within(item, name) for item in wanted)
    return set(str(wanted).lower().split()) <= set(name.lower().replace("-", " ").split())


@check(
    "EXP-003",
    title="The GPUs are those that the profile says",
    problem="the GPUs are not those of the profile",
    about="How many GPUs of which names a profile wants. One that is missing, or one of a name that the"
    " profile does not have, is a failure. A name's words are enough: H100 is any H100.",
    sources=("the profile",),
    follows=(*NO_GPUS, "GPU-001", "PCI-004"),
)
def gpus_are_as_expected(view: SnapshotView) -> Iterator[Verdict]:
    tables = wanted_tables(view, "gpus")["gpus"]
    found: list[Finding] = []
    covered: list[Gpu] = []
    for table in tables:
        name = table.get(NAME)
        gpus = _named(_gpus(view), name)
        covered += gpus
        count = table.get(COUNT, Wanted(">= 1"))
        if not fits(count.value, len(gpus), "number"):
            what = f"GPUs {words_of(name.value)}:" if name else "GPUs:"
            found.append(_count(view, told(view, what, count, len(gpus)), gpus))
    strangers = [gpu for gpu in _gpus(view) if gpu not in covered]
    for gpu in strangers:
        message = (
            f"The profile has no GPU of this name ({place(view, Wanted(''))}): {known(gpu.name)}."
        )
        found.append(_count(view, message, [gpu], about_gpu(gpu)))
    yield from together(found)
    if not found:
        yield Passed(f"{len(_gpus(view))} GPUs, as the profile says")


def _count(
    view: SnapshotView, message: str, gpus: list[Gpu], subjects: list[Subject] | None = None
) -> Finding:
    names = ", ".join(known(gpu.pci_address) or "GPU" for gpu in gpus) or "none"
    return Finding(
        "fail",
        message,
        subjects or [],
        [view.evidence("machine.nvml.gpus", names)],
        Remedy(
            f"Look for GPUs that the driver does not see, or that are another's. {RAISED}",
            ["nvidia-smi -L", NVIDIA_DEVICES],
        ),
    )


@check(
    "EXP-004",
    title="Each GPU has what the profile says",
    problem="has not what the profile says",
    about="Memory, NVLinks, PCIe, firmware, clocks and fabric of each GPU, as a profile wants them.",
    sources=("the profile",),
    follows=(*NO_GPUS, "GPU-001"),
)
def each_gpu_is_as_expected(view: SnapshotView) -> Iterator[Verdict]:
    fixed = [key.name for key in SECTIONS["gpus"].keys if key.name not in _MODES]
    return together(_each(view, fixed))


@check(
    "EXP-005",
    title="Each GPU is in the modes that the profile says",
    problem="is not in the mode that the profile says",
    about="ECC, MIG, persistence, compute mode and power limit of each GPU, as a profile wants them.",
    sources=("the profile",),
    follows=(*NO_GPUS, "GPU-001"),
)
def each_gpu_is_in_the_modes(view: SnapshotView) -> Iterator[Verdict]:
    return together(_each(view, list(_MODES)))


def _each(view: SnapshotView, names: list[str]) -> Iterator[Verdict]:
    keys = {key.name: key for key in SECTIONS["gpus"].keys if key.name in names}
    tables = wanted_tables(view, "gpus")["gpus"]
    if not any(name in keys for table in tables for name in table):
        raise Skip("the profile says nothing of this ([[gpus]])")
    judged = 0
    for table in tables:
        for gpu in _named(_gpus(view), table.get(NAME)):
            judged += 1
            for name, wanted in table.items():
                if name in keys:
                    key = keys[name]
                    evidence = view.gpu_evidence(gpu, key.at)
                    if key.at == "nvlinks":
                        evidence = view.evidence(evidence.fact, f"{known(key.fact(gpu))} up")
                    yield from held(
                        view,
                        key,
                        wanted,
                        key.fact(gpu),
                        evidence,
                        about_gpu(gpu),
                        _remedy(gpu, name, wanted.value),
                    )
    yield Passed(f"{judged} GPUs held against the profile")


def _remedy(gpu: Gpu, name: str, wanted: Value) -> Remedy:
    address = address_of(gpu)
    # Commands switch a protection on; a profile that wants it off may have it from a machine that was wrong.
    on = wanted is True
    commands = {
        "ecc": [
            f"sudo nvidia-smi -i {address} -e 1",
            HOLDERS,
            f"sudo nvidia-smi --gpu-reset -i {address}",
        ]
        if on
        else [],
        "mig": [f"sudo nvidia-smi -i {address} -mig 1"] if on else [],
        "persistence": [f"sudo nvidia-smi -i {address} -pm 1"] if on else [],
        "compute_mode": [f"sudo nvidia-smi -i {address} -c {word(str(wanted).upper())}"],
        "power_limit_w": [f"sudo nvidia-smi -i {address} -pl {word(str(wanted))}"],
        "nvlinks": [f"nvidia-smi nvlink -s -i {address}"],
    }
    if isinstance(wanted, (list, str)) and name == "power_limit_w":
        commands.pop(name)
    return Remedy(RAISED, commands.get(name) or [f"nvidia-smi -q -i {address}"])


@check(
    "EXP-007",
    title="Tensor Cores are proven for what the profile says",
    problem="lacks the proof of Tensor Cores of the profile",
    about="The number formats for which a profile wants Tensor Cores proven (or indicated, where a chip"
    " allows no more) on each GPU. Where no matrix product ran, this could not run.",
    sources=("the profile",),
    follows=(*NO_GPUS, "GPU-001"),
)
def tensor_cores_are_as_expected(view: SnapshotView) -> Iterator[Verdict]:
    (table,) = wanted_tables(view, TENSOR_CORES)[TENSOR_CORES]
    wanted = table[PROVEN]
    proven = proven_formats(view)
    if not proven:
        raise CouldNotRun("no matrix product ran on a GPU")
    formats = wanted.value if isinstance(wanted.value, list) else [wanted.value]
    found: list[Finding | Unjudged] = []
    for subject, modes in proven.items():
        for mode in formats:
            if mode not in modes:
                found.append(
                    Finding(
                        "fail",
                        f"The profile wants Tensor Cores proven for {words_of(mode)}"
                        f" ({place(view, wanted)}); they are not.",
                        [subject],
                        [
                            view.evidence(
                                "machine.micro_kernels", f"proven: {', '.join(modes) or 'none'}"
                            )
                        ],
                        Remedy(RAISED, ["envcheck doctor -v --only tensorcores"]),
                    )
                )
    yield from together(found)
    if not found:
        yield Passed(f"proven: {', '.join(words_of(mode) for mode in formats)}")


def proven_formats(view: SnapshotView) -> dict[Subject, list[Mode]]:
    """{GPU: the formats for which Tensor Cores are proven, or as good as the chip allows}"""
    found: dict[Subject, list[Mode]] = {}
    for case in cases(view.snapshot):
        judged = case.judged
        if judged.gpu is None or judged.control:
            continue
        modes = found.setdefault(judged.gpu, [])
        good = judged.verdict == "proven" or (judged.verdict == "indicated" and case.calm)
        if good and judged.mode not in modes:
            modes.append(judged.mode)
    return found
