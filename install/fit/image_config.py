"""What an image's own configuration says that it needs: an image of one's own, a mirrored or derived one.

Sources: the variables that NVIDIA's images carry (CUDA_VERSION, NVIDIA_REQUIRE_CUDA,
NVIDIA_TENSORFLOW_VERSION), as NVIDIA's container toolkit documents them; the x86-64 psABI for the levels of
processors.
"""

from __future__ import annotations

import re

import msgspec
from packaging.specifiers import Specifier
from packaging.version import Version

from ...data.products import is_data_centre
from ...data.versions import parse_version
from ...exit_codes import Cannot
from ...facts.snapshot import Snapshot
from ..catalogue import containers
from ..registry.image import Image
from .fit import notes_of
from .gpu_rules import UPDATE
from .machine import machine_of
from .models import FitMachine, ImageChoice

_CONDITION = re.compile(r"(cuda|driver)([<>]=?\d{1,9}(?:\.\d{1,9}){0,3})")
_NOTHING = "What it needs of the driver and of the GPUs is not known."
# Flags as Linux calls them; each level needs those before it, too.
_LEVELS = (
    ("v2", ("cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3")),
    ("v3", ("avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe")),
    ("v4", ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")),
)
_SHOWN = 200  # characters of what an image requires
_MOST_LAYERS = {"docker": 125, "podman": 500}  # moby's and containers/storage's own limits
_ZSTD = Version("23.0")  # the first docker that unpacks zstd


class _Variant(msgspec.Struct):
    variant: str | None = None


def with_notes(choice: ImageChoice, image: Image, snapshot: Snapshot) -> ImageChoice:
    """The choice, with the notes on NVIDIA's image where it is one of NVIDIA's under another name."""
    if choice.stack.name != containers.OWN or _NOTHING not in choice.candidate.notes:
        return choice
    notes = _of_release(image, snapshot)
    if not notes:
        return choice
    others = [note for note in choice.candidate.notes if note != _NOTHING]
    candidate = msgspec.structs.replace(choice.candidate, notes=[*notes, *others])
    return msgspec.structs.replace(choice, candidate=candidate)


def check(image: Image, snapshot: Snapshot, engine: str, version: str) -> None:
    """Refuse before the fetch what the CPU or the engine cannot. Raises Cannot.

    version: the engine's, "20.10.24"; "" is not known.
    """
    most = _MOST_LAYERS.get(engine, len(image.layers))
    if len(image.layers) > most:
        raise Cannot(
            f"{image.reference} has {len(image.layers)} layers, and {engine} takes {most} at most",
            "its maker can squash them: podman build --squash-all",
        )
    known = parse_version(version)
    zstd = any(blob.media_type.endswith("zstd") for blob in image.layers)
    if engine == "docker" and zstd and known is not None and known < _ZSTD:
        raise Cannot(
            f"{image.reference} has layers compressed with zstd, which docker {version} cannot unpack",
            "docker 23.0 and newer can, and podman: --engine podman",
        )
    _check_cpu(image, machine_of(snapshot))


def check_driver(image: Image, snapshot: Snapshot) -> None:
    """Refuse what the image requires of the driver by NVIDIA_REQUIRE_CUDA and this one has not. Raises
    Cannot. What is not known of the machine refuses nothing."""
    require = image.environment.get("NVIDIA_REQUIRE_CUDA", "")
    machine = machine_of(snapshot)
    disabled = image.environment.get("NVIDIA_DISABLE_REQUIRE", "").lower() in ("1", "t", "true")
    if disabled or _is_met(require, machine) is not False:
        return
    shown = require if len(require) <= _SHOWN else f"{require[:_SHOWN]}…"
    raise Cannot(
        f"{image.reference} requires another driver: its NVIDIA_REQUIRE_CUDA is {shown!r}, and driver"
        f" {machine.driver} supports CUDA {machine.driver_cuda} at most",
        f"{UPDATE}; or take an image for an older CUDA",
    )


def _check_cpu(image: Image, machine: FitMachine) -> None:
    variant = msgspec.json.decode(image.config_text, type=_Variant).variant or ""
    names = [name for name, _ in _LEVELS]
    if image.architecture != "amd64" or variant not in names or machine.cpu_flags is None:
        return
    needed = [flag for _, flags in _LEVELS[: names.index(variant) + 1] for flag in flags]
    missing = [flag for flag in needed if flag not in machine.cpu_flags]
    if missing:
        raise Cannot(
            f"{image.reference} is for x86-64-{variant}, and this machine's CPU lacks"
            f" {', '.join(missing).upper()}",
            "a virtual machine may hide it: let its CPU model pass it through",
        )


def nvidia_reference(image: Image) -> str:
    """What NVIDIA calls the image by its own variables: nvcr.io/nvidia/tensorflow:25.02-tf2-py3; "" for
    one of others."""
    for repository in ("tensorflow", "pytorch"):
        version = image.environment.get(f"NVIDIA_{repository.upper()}_VERSION", "")
        tagged = f"nvcr.io/nvidia/{repository}:{version}-py3"
        if containers.by_reference(tagged):
            return tagged
    return ""


def _of_release(image: Image, snapshot: Snapshot) -> list[str]:
    """NVIDIA's TensorFlow or PyTorch under another name: the tables' row for it."""
    found = containers.by_reference(nvidia_reference(image))
    if found is None:
        return []
    stack, release = found
    made_from = f"It is, or is made from, NVIDIA's {stack.name} {release.release}."
    return [made_from, *notes_of(stack, release, snapshot)]


def _is_met(require: str, machine: FitMachine) -> bool | None:
    """Whether one of the alternatives holds, "cuda>=12.1 brand=tesla,driver>=470,driver<471"; None: that is
    not known, or nothing is required."""
    return _first([_holds(words, machine) for words in require.split()], (True, None))


def _holds(words: str, machine: FitMachine) -> bool | None:
    """One alternative: "brand=tesla,driver>=470,driver<471"; None: that is not known."""
    conditions = [_condition_holds(each, machine) for each in words.split(",")]
    return _first(conditions, (False, None))


def _first(values: list[bool | None], decisive: tuple[bool, None]) -> bool | None:
    """The first of the decisive values that is there, else the other one; None of nothing."""
    if not values:
        return None
    return next((value for value in decisive if value in values), not decisive[0])


def _condition_holds(condition: str, machine: FitMachine) -> bool | None:
    if condition.startswith("brand="):
        # Every product line of data-centre GPUs has had its own name, and each is Tesla to the requirement.
        centre = [is_data_centre(name) for name in machine.names]
        of_tesla = _first(centre, (False, None))
        if condition == "brand=tesla":
            return of_tesla
        return False if of_tesla else None
    found = _CONDITION.fullmatch(condition)
    if found is None or (found[1] == "driver" and machine.windows_driver):
        return None
    have = machine.driver_version if found[1] == "driver" else parse_version(machine.driver_cuda)
    return None if have is None else Specifier(found[2]).contains(have)
