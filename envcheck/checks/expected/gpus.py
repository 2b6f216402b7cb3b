"""The profile against the GPUs: which there are, what each has, its modes, and what is proven of them."""

from __future__ import annotations

from ...attributes.bounds import fits
from ...attributes.registry import COUNT, NAME, PROVEN, SECTIONS, TENSOR_CORES
from ...facts.micro_kernels import Mode
from ...facts.profile import Value, Wanted
from ...tensorcores.judge import cases
from ..declared import declared_causes
from ..driver_state import HOLDERS
from ..gpus import address_of, together
from ..reading import CouldNotRun, Gpu, Skip, SnapshotView, known
from ..verdicts import Finding, Passed, Subject, Unjudged, Verdicts, about_gpu, check, word
from .common import (
    DEVICE_DIFFERS,
    DIFFERS,
    compared,
    differs,
    place,
    wanted_tables,
    words_of,
)

CAUSE = declared_causes(__name__)


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


STRANGER = CAUSE["gpu-not-in-profile"]


@check("EXP-003", causes=[DIFFERS])
def gpus_are_as_expected(view: SnapshotView) -> Verdicts:
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
            names = ", ".join(known(gpu.pci_address) or "GPU" for gpu in gpus) or "none"
            evidence = view.evidence("machine.nvml.gpus", names)
            found.append(differs(view, what, count, len(gpus), [], evidence, STRANGER.commands))
    for gpu in _gpus(view):
        if gpu not in covered:
            evidence = view.evidence("machine.nvml.gpus", known(gpu.pci_address) or "GPU")
            where = place(view)
            found.append(
                STRANGER.found(about_gpu(gpu), [evidence], place=where, name=known(gpu.name) or "")
            )
    yield from together(found)
    if not found:
        yield Passed(f"{len(_gpus(view))} GPUs, as the profile says")


@check("EXP-004", causes=[DEVICE_DIFFERS])
def each_gpu_is_as_expected(view: SnapshotView) -> Verdicts:
    keys = {key.name: key for key in SECTIONS["gpus"].keys}
    tables = wanted_tables(view, "gpus")["gpus"]
    if not any(name in keys for table in tables for name in table):
        raise Skip("the profile says nothing of this ([[gpus]])")
    each = [(table, gpu) for table in tables for gpu in _named(_gpus(view), table.get(NAME))]
    found: list[Finding | Unjudged] = []
    for table, gpu in each:
        for name in (name for name in table if name in keys):
            key, wanted = keys[name], table[name]
            evidence = view.gpu_evidence(gpu, key.path)
            if key.path == "nvlinks":
                evidence = view.evidence(evidence.fact, f"{known(key.fact(gpu))} up")
            commands = _commands(gpu, name, wanted.value)
            found += compared(view, key, wanted, key.fact(gpu), evidence, commands, about_gpu(gpu))
    yield from together(found)
    yield Passed(f"{len(each)} GPUs compared with the profile")


def _commands(gpu: Gpu, name: str, wanted: Value) -> list[str]:
    address = address_of(gpu)
    # No command switches a protection off: the profile may come from a machine that was wrong.
    on = wanted is True
    smi = f"sudo nvidia-smi -i {address}"
    reset = [HOLDERS, f"sudo nvidia-smi --gpu-reset -i {address}"]
    commands = {
        "ecc": [f"{smi} -e 1", *reset] if on else [],
        "mig": [f"{smi} -mig 1"] if on else [],
        "persistence": [f"{smi} -pm 1"] if on else [],
        "compute_mode": [f"{smi} -c {word(str(wanted).upper())}"],
        "power_limit_w": [] if isinstance(wanted, (list, str)) else [f"{smi} -pl {wanted}"],
        "nvlinks": [f"nvidia-smi nvlink -s -i {address}"],
    }
    return commands.get(name) or [f"nvidia-smi -q -i {address}"]


@check("EXP-007")
def tensor_cores_are_as_expected(view: SnapshotView) -> Verdicts:
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
                listed = f"proven: {', '.join(modes) or 'none'}"
                evidence = view.evidence("machine.micro_kernels", listed)
                where, wants = place(view), words_of(mode)
                found.append(
                    CAUSE["tensor-cores-unproven"].found(
                        [subject], [evidence], mode=wants, place=where
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
