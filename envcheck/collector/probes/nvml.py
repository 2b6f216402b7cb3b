"""NVML through nvidia-ml-py: the driver, its GPUs, those that it lost, and how they are connected."""

import ctypes
import os

from ..addresses import pci_address
from ..cuda.mapped import mapped_library
from ..facts import Facts
from ..nvml import gpu, topology
from ..nvml.binding import Binding, code_of, load, reason_fact, text, words_of

DOCUMENT = "machine"
IN_CONTAINER = True
DEADLINE = 12

# In the collector that was built into one file.
VENDORED = os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "vendor", "pynvml.py"
)
LIBRARY = "libnvidia-ml.so"
MAX_GPUS = 256  # more is no count
_LIBRARY_NOT_FOUND = 12
_AFTER_INIT = ("driver_version", "cuda_version", "gpu_count", "gpus", "pairs")


def collect(context):
    """``context.params``: "pynvml", the path of pynvml.py; without it, the collector's own copy."""
    facts = Facts("NVML")
    nvml = _binding(facts, context)
    if nvml is None or not _initialise(facts, nvml, context):
        return facts
    facts.put(
        "driver_version",
        _fact(_string, nvml, "nvmlSystemGetDriverVersion"),
        "nvmlSystemGetDriverVersion",
    )
    facts.put("cuda_version", _fact(_cuda_version, nvml), "nvmlSystemGetCudaDriverVersion")
    count = _fact(_count, nvml)
    facts.put("gpu_count", count, "nvmlDeviceGetCount")
    if isinstance(count, dict):
        facts.put("gpus", count)
        facts.put("pairs", count)
        return facts
    opened, lost = _open_all(nvml, count)
    facts.put("gpus", [one for _handle, one in opened])
    facts.sources.update(gpu.SOURCES)
    facts.put("lost", _with_address(context, lost, opened), "nvmlDeviceGetHandleByIndex")
    facts.put("pairs", topology.pairs(nvml, opened), "nvmlDeviceGetTopologyCommonAncestor")
    return facts


def _binding(facts, context):
    """The binding, or None after the reason why there is none has been put."""
    path = context.params.get("pynvml") or VENDORED
    try:
        module = load(path)
        for name in ("nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex"):
            getattr(module, name)
    except Exception as error:
        detail = "pynvml cannot be used: %s: %s" % (type(error).__name__, error)
        for name in ("init_code", "init_error", "library_path") + _AFTER_INIT:
            facts.missing(name, "error", detail, "pynvml at %s" % path)
        return None
    return Binding(module)


def _initialise(facts, nvml, context):
    try:
        nvml.call("nvmlInit")
        code = 0
    except Exception as error:
        code = code_of(error)
        words = words_of(error)
        fact = reason_fact(error)
        detail = "nvmlInit: %s" % (words if code is None else "%s (NVML error %d)" % (words, code))
        facts.put("init_code", fact if code is None else code, "nvmlInit")
        facts.put("init_error", words, "nvmlInit")
        for name in _AFTER_INIT:
            facts.missing(name, "error", detail, "nvmlInit")
    else:
        facts.put("init_code", 0, "nvmlInit")
    if code == _LIBRARY_NOT_FOUND:
        reason, words = _loader_says()
        facts.missing("library_path", reason, words, "dlopen")
    else:
        facts.attempt("library_path", "/proc/self/maps", mapped_library, context, LIBRARY)
    return code == 0


def _loader_says():
    """Why there is no library, in the loader's words: pynvml keeps them to itself."""
    try:
        ctypes.CDLL(LIBRARY + ".1")
    except OSError as error:
        words = str(error)
        return "absent" if LIBRARY in words and "No such file" in words else "error", words
    return "error", "pynvml finds no %s.1, and the loader does" % LIBRARY


def _open_all(nvml, count):
    """[(handle, facts)] of the GPUs that answer, and the facts of those that cannot be opened."""
    opened, lost = [], []
    for index in range(min(count, MAX_GPUS)):
        try:
            handle = nvml.call("nvmlDeviceGetHandleByIndex", index)
        except Exception as error:
            code = code_of(error)
            lost.append(
                {"index": index, "error": words_of(error), "code": 999 if code is None else code}
            )
            continue
        opened.append((handle, gpu.read(nvml, handle, index)))
    return opened, lost


def _with_address(context, lost, opened):
    """The address of a single GPU that cannot be opened: the one that the module lists and NVML lacks."""
    if len(lost) != 1:
        return lost
    try:
        listed = {
            pci_address(name) for name in os.listdir(context.path("/proc/driver/nvidia/gpus"))
        }
    except (OSError, ValueError):
        return lost
    missing = listed - {
        one["pci_address"] for _handle, one in opened if not isinstance(one["pci_address"], dict)
    }
    if len(missing) == 1:
        lost[0]["pci_address"] = missing.pop()
    return lost


def _fact(function, *arguments):
    try:
        return function(*arguments)
    except Exception as error:
        return reason_fact(error)


def _string(nvml, function):
    return text(nvml.call(function))


def _count(nvml):
    return max(int(nvml.call("nvmlDeviceGetCount")), 0)


def _cuda_version(nvml):
    number = nvml.first(("nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"))
    return "%d.%d" % (number // 1000, number % 1000 // 10)
