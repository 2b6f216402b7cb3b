"""A whole document of nvidia-smi as the facts of the Snapshot's "nvidia_smi" section."""

import codecs
import itertools
import re

from ..addresses import pci_address
from ..facts import unavailable
from . import fields, lists, pasted, rows, said, table, tree
from . import values as v

FILE_LIMIT = 64 * 1024 * 1024  # bytes
GPU_LIMIT = 256
TABLES = 20  # of nvidia-smi's boxes that are looked at for one with a GPU
# What it prints beside a document, of one GPU.
_CORRUPT_INFOROM = re.compile(r"infoROM is corrupted at gpu ([0-9A-Fa-f:.]{7,16})")
_NO_HANDLE = re.compile(
    r"Unable to determine the device handle for (?:gpu|GPU) ?(?:\d{1,3}: ?)?([0-9A-Fa-f:.]{7,16}): "
    r"([^\n]{1,200})"
)

# Rows of the same form as fields.FIELDS, read from the top of the document.
_TOP = (
    (
        "driver_version",
        v.words,
        ("kmd_version", "driver_version"),
        ("KMD Version", "Driver Version"),
    ),
    (
        "cuda_version",
        v.words,
        ("cuda_umd_version", "cuda_version"),
        ("CUDA UMD Version", "CUDA Version"),
    ),
    ("gpu_count", v.count, ("attached_gpus",), ("Attached GPUs",)),
)


def read_file(path):
    """The facts in a file that somebody sent: XML, text, a table or an error, alone or inside a larger file.

    A dict of the Snapshot's "nvidia_smi" facts; of nvidia-smi's error, its words. Raises ValueError, with a
    sentence about "it" (the file), where it holds neither that nor a whole document, and OSError where it
    cannot be read.
    """
    with open(path, "rb") as file:
        data = file.read(FILE_LIMIT + 1)
    if len(data) > FILE_LIMIT:
        raise ValueError("it is larger than %d MiB" % (FILE_LIMIT >> 20))
    text = pasted.clean(_decode(data))
    try:
        facts = read_document(text)
        facts["gpus"] += _told_beside(text, facts["gpus"])
        return facts
    except ValueError:
        found = _table(text) or rows.read_csv(text) or rows.read_list(text) or said.read(text)
        if found is None or len(found.get("gpus", ())) > GPU_LIMIT:
            raise
        if found.get("form") == "table":
            found["gpus"] += _told_beside(text, found["gpus"])
        return found


def _told_beside(text, gpus):
    """GPUs that it could not ask, after those that it could; it warns of a corrupt InfoROM there, too."""
    by_address = {_address(gpu["pci_address"]): gpu for gpu in gpus if "pci_address" in gpu}
    for address in _CORRUPT_INFOROM.findall(text):
        by_address.get(_address(address), {})["inforom_valid"] = False
    lost = {}
    for address, words in _NO_HANDLE.findall(text):
        if _address(address) and _address(address) not in by_address:
            fact = v.missing(words) or unavailable("error", words.strip())
            lost[_address(address)] = {"pci_address": _address(address), "uuid": fact}
    return list(lost.values())[:GPU_LIMIT]


def _address(text):
    """An address in the Snapshot's form, or None."""
    try:
        return pci_address(text)
    except (ValueError, TypeError, AttributeError):
        return None


def _table(text):
    for head in itertools.islice(table.HEAD.finditer(text), TABLES):
        try:
            return table.read(text, head.start())
        except ValueError:
            continue
    return None


def read_document(text):
    """The first document in a text: a dict of the Snapshot's "nvidia_smi" facts.

    What such a document never holds is left out (path, exit code, compute capability). Raises
    ValueError, with a sentence about "it", for nonsense, half a document, or nothing.
    """
    document = tree.parse(text)
    facts = {"form": document.form}
    if document.cut:
        facts["cut"] = True
    if document.schema:
        facts["schema"] = document.schema
    facts.update(_read(document.root, _TOP, document.form))
    nodes = document.gpus()
    if len(nodes) > GPU_LIMIT:
        raise ValueError("it lists %d GPUs, more than any machine has" % len(nodes))
    if not nodes and facts.get("gpu_count") != 0:
        if "gpu_count" in facts or "driver_version" in facts:
            raise ValueError("it breaks off before the first GPU")
        raise ValueError("it has the frame of nvidia-smi's output, and no GPU or driver in it")
    facts["gpus"] = [_gpu(node, document.form) for node in nodes]
    # The order is nvidia-smi's only where no GPU is left out (`-i`, a lost GPU, trimmed by hand).
    if facts.get("gpu_count", len(nodes)) == len(nodes):
        for index, gpu in enumerate(facts["gpus"]):
            gpu["index"] = index
    return facts


def _gpu(node, form):
    gpu = _read(node, fields.FIELDS, form)
    if isinstance(gpu.get("pci_address", {}), dict) and node.value:
        try:
            gpu["pci_address"] = pci_address(node.value)
        except ValueError:
            gpu["pci_address"] = v.not_understood(node.value)
    groups = {
        "mig_instances": lists.mig_instances(node, form, gpu.get("mig_enabled")),
        "clock_event_reasons": lists.clock_event_reasons(node),
        "processes": lists.processes(node, form),
        "fabric_status": lists.fabric_status(node, form),
        "fabric_health": lists.fabric_health(node, form),
        "fabric_faults": lists.fabric_faults(node, form),
    }
    gpu.update((name, fact) for name, fact in groups.items() if fact is not None)
    return gpu


def _read(node, rows, form):
    facts = ((row[0], fields.read(node, row, form)) for row in rows)
    return {name: fact for name, fact in facts if fact is not None}


def _decode(data):
    """Text in UTF-8, or in the UTF-16 that PowerShell's ">" writes."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8-sig", "replace")
