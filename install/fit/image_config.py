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

from ...data.data_centre_gpus import is_data_centre
from ...data.versions import parse_version
from ...exit_codes import Cannot
from ...facts.snapshot import Snapshot
from ..catalogue import containers
from ..registry.image import Image
from .fit import notes_of
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
_MOST_LAYERS = {"docker": 125, "podman": 500}  # moby's and containers/storage's own limits
_ZSTD = Version("23.0")  # the first docker that unpacks zstd


class _Variant(msgspec.Struct):
    variant: str | None = None


def told(choice: ImageChoice, image: Image, snapshot: Snapshot) -> ImageChoice:
    """The choice, with what the image says of itself; of one out of the catalogue the tables say it.

    Like all that is known of a named image it is told, and refuses nothing.
    """
    if choice.stack.name != containers.OWN or _NOTHING not in choice.candidate.notes:
        return choice
    machine = machine_of(snapshot)
    notes = _of_release(image, snapshot) or _of_variables(image, machine)
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


def _of_release(image: Image, snapshot: Snapshot) -> list[str]:
    """NVIDIA's TensorFlow under another name: the tables' row for it."""
    version = image.environment.get("NVIDIA_TENSORFLOW_VERSION", "")
    found = containers.by_reference(f"nvcr.io/nvidia/tensorflow:{version}-py3")
    if found is None:
        return []
    stack, release = found
    made_from = f"It is, or is made from, NVIDIA's {stack.name} {release.release}."
    return [made_from, *notes_of(stack, release, snapshot)]


def _of_variables(image: Image, machine: FitMachine) -> list[str]:
    cuda = parse_version(image.environment.get("CUDA_VERSION", ""))
    require = image.environment.get("NVIDIA_REQUIRE_CUDA", "")
    asked = re.search(r"\bcuda>=(\d+\.\d+)\b", require)
    if not (cuda or asked):
        return []
    what = f"CUDA {asked[1]} (NVIDIA_REQUIRE_CUDA)" if asked else f"CUDA {cuda} (CUDA_VERSION)"
    supports = parse_version(machine.driver_cuda)
    if supports is None:
        return [f"By its configuration it needs a driver for {what}; this machine's is not known."]
    needed = parse_version(asked[1]) if asked else cuda
    assert needed is not None, "one of them is there"
    have = f"driver {machine.driver} supports CUDA {machine.driver_cuda}"
    if supports.release[:2] >= needed.release[:2]:
        return [f"By its configuration it needs {what}; {have}."]
    if asked and any(_holds(words, machine) for words in require.split()):
        return [f"By its configuration it needs {what}, or this older driver: {have}."]
    if not asked and supports.major == needed.major:
        return [f"It was built with {what}; {have}, by minor-version compatibility."]
    return [
        f"By its configuration it needs {what}, and {have} at most: its programs will not find a CUDA that"
        " works, unless the image has a compat libcuda for this driver."
    ]


def _holds(words: str, machine: FitMachine) -> bool:
    """One alternative: "brand=tesla,driver>=470,driver<471"."""
    for each in words.split(","):
        if each == "brand=tesla":  # every product line of data-centre GPUs has had its own name
            if not all(is_data_centre(one) for one in machine.names):
                return False
            continue
        found = _CONDITION.fullmatch(each)
        driver = found is not None and found[1] == "driver"
        have = machine.driver_version if driver else parse_version(machine.driver_cuda)
        if found is None or have is None or not Specifier(found[2]).contains(have):
            return False
    return True
