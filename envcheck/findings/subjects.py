"""What a finding is about: a GPU, a package, a file. Everything shown about one is derived here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from ..facts.base import known
from ..facts.gpu import Gpu
from ..facts.pci import PciDevice

Kind = Literal[
    "gpu",  # address, uuid, index, name: what is known of these
    "mig-instance",  # the same of its GPU; uuid is its own
    "gpu-model",  # name
    "nvswitch",  # address
    "pci-device",  # address, name
    "container",  # name: as in a Document's location, "image:REF" or "container:ID"
    "package",  # name: a distribution's; or a plug-in's
    "framework",  # name: "TensorFlow"
    "library",  # name: its SONAME
    "engine",  # name: "podman"
    "variable",  # name: an environment variable's
    "kernel",  # name: its release
    "stack",  # name: of envcheck's catalogue
    "plugin",  # name: an entry point's
    "file",  # path: of a file, directory, device node or mount point
    "process",  # pid
]


class Subject(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One thing that a finding is about; a finding without any is about the whole machine or target.

    text: how it is called in reports. index: nvidia-smi's. address: on PCI.
    """

    kind: Kind
    text: str
    name: str = ""
    path: str = ""
    address: str = ""
    uuid: str = ""
    index: int | None = None
    pid: int | None = None


def gpu_subject(gpu: Gpu) -> Subject:
    """ "GPU 0 NVIDIA H100 80GB HBM3 at 0000:01:00.0" """
    index, name, address = known(gpu.index), known(gpu.name) or "", known(gpu.pci_address) or ""
    words = ["GPU" if index is None else f"GPU {index}", name, f"at {address}" if address else ""]
    return Subject(
        kind="gpu",
        text=" ".join(filter(None, words)),
        name=name,
        address=address,
        uuid=known(gpu.uuid) or "",
        index=index,
    )


def mig_instance(gpu: Subject, uuid: str) -> Subject:
    text = f"{gpu.text}, MIG instance {uuid}"
    return msgspec.structs.replace(gpu, kind="mig-instance", text=text, uuid=uuid)


def about_gpu(gpu: Gpu) -> list[Subject]:
    return [gpu_subject(gpu)]


def about_device_at(kind: Literal["gpu", "nvswitch"], address: str | None) -> list[Subject]:
    """A device of which no more than its PCI address is known; none where not even that is."""
    word = {"gpu": "GPU", "nvswitch": "NVSwitch"}[kind]
    return [Subject(kind=kind, text=f"{word} {address}", address=address)] if address else []


def about_device(device: PciDevice, name: str = "") -> list[Subject]:
    """ "GPU 0000:01:00.0 (GH100)"; ``name``: for one that the table of names does not have."""
    name = known(device.name) or name
    kinds: dict[str, tuple[Kind, str]] = {
        "gpu": ("gpu", "GPU"),
        "nvswitch": ("nvswitch", "NVSwitch"),
    }
    kind, word = kinds.get(device.kind, ("pci-device", "device"))
    text = f"{word} {device.address}" + (f" ({name})" if name else "")
    return [Subject(kind=kind, text=text, name=name, address=device.address)]


def about(kind: Kind, name: str | None) -> list[Subject]:
    """What has a name and no more: a package, an engine; none where the name is not known."""
    return [Subject(kind=kind, text=name, name=name)] if name else []


def about_file(path: str | None) -> list[Subject]:
    return [Subject(kind="file", text=path, path=path)] if path else []


def about_processes(pids: Iterable[int]) -> list[Subject]:
    return [Subject(kind="process", text=f"process {pid}", pid=pid) for pid in pids]


def joined(subjects: Iterable[Subject]) -> str:
    return ", ".join(dict.fromkeys(subject.text for subject in subjects))
