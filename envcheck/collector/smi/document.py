"""A whole document of nvidia-smi as the facts of the Snapshot's "nvidia_smi" section."""

import codecs
import re

from ..addresses import pci_address
from ..facts import unavailable
from . import fields, lists, tree
from . import values as v

FILE_LIMIT = 64 * 1024 * 1024  # bytes
GPU_LIMIT = 256
NO_DEVICES = "No devices were found"
OF_A_DOCUMENT = ("driver_version", "cuda_version", "gpu_count", "gpus")
# What it prints beside a document, of one GPU.
_CORRUPT_INFOROM = re.compile(r"infoROM is corrupted at gpu ([0-9A-Fa-f:.]{7,16})")
_NO_HANDLE = re.compile(
    r"Unable to determine the device handle for (?:gpu|GPU) ?(?:\d{1,3}: ?)?([0-9A-Fa-f:.]{7,16}): "
    r"([^\n]{1,200})"
)
# What it prints instead of one.
_ERROR = re.compile(
    r"(?:NVIDIA-SMI (?:has failed|couldn't|could not)|Failed to initialize NVML"
    r"|Unable to determine the device handle|Unable to (?:initialize|load) NVML"
    r"|No devices were found)[^\n]{0,300}"
)


def read_file(path):
    """The facts in a file that somebody sent: XML or text, alone or inside a larger file, or an error.

    A dict of the Snapshot's "nvidia_smi" facts. Raises ValueError, with a sentence about "it" (the file),
    where it holds none of them, and OSError where it cannot be read.
    """
    with open(path, "rb") as file:
        data = file.read(FILE_LIMIT + 1)
    if len(data) > FILE_LIMIT:
        raise ValueError("it is larger than %d MiB" % (FILE_LIMIT >> 20))
    text = _decode(data)
    try:
        facts = read_document(text)
    except ValueError:
        error = _ERROR.search(text)
        if error is None or "NVSMI LOG" in text or "<nvidia_smi_log" in text:
            raise
        words = error.group().strip()
        return without_document(words, "nvidia-smi said: " + words)
    facts["gpus"] += _reported_beside(text, facts["gpus"])
    return facts


def without_document(message, detail, died=False):
    """The facts of a run that printed a message and no document; detail: why the rest is not known."""
    if NO_DEVICES in message and not died:  # one that died may report it because its driver failed
        return {"gpu_count": 0, "gpus": [], "message": message}
    facts = {name: unavailable("error", detail) for name in OF_A_DOCUMENT}
    facts["message"] = message
    return facts


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
    facts.update(fields.read(document.root, fields.TOP, document.form))
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
    gpu = fields.read(node, fields.GPU, form)
    if isinstance(gpu.get("pci_address", {}), dict) and node.value:
        gpu["pci_address"] = v.convert(node.value, pci_address)
    for name, function in lists.FACTS.items():
        fact = function(node, form, gpu)
        if fact is not None:
            gpu[name] = fact
    return gpu


def _reported_beside(text, gpus):
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


def _decode(data):
    """Text in UTF-8, or in the UTF-16 that PowerShell's ">" writes; lines end in \\n."""
    bom = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = data.decode("utf-16" if bom else "utf-8-sig", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")
