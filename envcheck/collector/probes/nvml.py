"""NVML through nvidia-ml-py: the driver, its GPUs, those that it lost, and how they are connected."""

import ctypes
import os

from ..addresses import pci_address
from ..cuda.mapped import mapped_library
from ..facts import Facts
from ..nvml import gpu, topology
from ..nvml.binding import Binding, code_of, load, reason_fact, text, words_of
from ..worker import forked

DOCUMENT = "machine"
IN_CONTAINER = True
DEADLINE = 12
START = 9.0  # seconds for nvmlInit, which wakes every GPU where nothing keeps them initialised
LIMIT = 3.0  # for one GPU
BUDGET = 11.5

# In the collector that was built into one file.
VENDORED = os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "vendor", "pynvml.py"
)
LIBRARY = "libnvidia-ml.so"
MAX_GPUS = 256  # more is no count
_LIBRARY_NOT_FOUND, _TIMEOUT = 12, 10
ITEMS = ["machine"] + list(range(MAX_GPUS)) + ["pairs"]
CONFIDENTIAL = (
    ("confidential", "nvmlSystemGetConfComputeState", lambda state: state.ccFeature != 0),
    (
        "confidential_ready",
        "nvmlSystemGetConfComputeGpusReadyState",
        lambda state: bool(getattr(state, "value", state)),
    ),
)
_AFTER_INIT = ("driver_version", "cuda_version", "gpu_count", "gpus", "pairs")


def collect(context):
    """``context.params``: "pynvml", the path of pynvml.py; without it, the collector's own copy.

    A child asks NVML: a GPU whose calls hang or crash costs its own facts alone.
    """
    facts = Facts("NVML")
    nvml = _binding(facts, context)
    if nvml is None:
        return facts
    answers = []  # type: list
    reader = _Reader(nvml, context, answers)
    forked.each(ITEMS, reader.work, LIMIT, BUDGET, "asked", reader.machine, START, answers)
    if answers[0].failure is not None:
        # Not one GPU's trouble: what hangs or crashes NVML does so here, too, and is this probe's outcome.
        answers[:] = [forked.Answer() for _ in ITEMS]
        reader.machine()
        for item, answer in zip(ITEMS, answers):
            reader.work(item, answer.facts.update)
    facts.values.update(answers[0].facts["values"])
    facts.sources.update(answers[0].facts["sources"])
    if facts.get("gpu_count") is not None:
        _put_gpus(facts, answers[1:-1][: facts.get("gpu_count")], context)
        pairs = answers[-1].facts.get("pairs", answers[-1].failure)
        facts.put("pairs", pairs, "nvmlDeviceGetTopologyCommonAncestor")
    return facts


class _Reader(object):
    """Asks NVML in one process, item by item. answers: of all processes, in the order of ITEMS."""

    def __init__(self, nvml, context, answers):
        self._nvml = nvml
        self._context = context
        self._answers = answers
        self._facts = Facts()

    def machine(self):
        """Start NVML, and read what is no single GPU's."""
        facts, nvml = self._facts, self._nvml
        if not _initialise(facts, nvml, self._context):
            return
        version = "nvmlSystemGetDriverVersion"
        facts.put("driver_version", _fact(_string, nvml, version), version)
        facts.put("cuda_version", _fact(_cuda_version, nvml), "nvmlSystemGetCudaDriverVersion")
        for name, function, convert in CONFIDENTIAL:
            value = _fact(lambda call=function, to=convert: to(nvml.call(call)))
            facts.put(name, value, function)
        count = _fact(_count, nvml)
        facts.put("gpu_count", count, "nvmlDeviceGetCount")
        if isinstance(count, dict):
            facts.put("gpus", count)
            facts.put("pairs", count)

    def work(self, item, tell):
        if item == "machine":
            tell({"values": self._facts.values, "sources": self._facts.sources})
        elif item == "pairs":
            tell({"pairs": topology.pairs(self._nvml, self._opened())})
        elif item < (self._facts.get("gpu_count") or 0):
            self._gpu(item, tell)
        return True

    def _gpu(self, index, tell):
        try:
            handle = self._nvml.call("nvmlDeviceGetHandleByIndex", index)
        except Exception as error:
            code = code_of(error)
            tell({"lost": words_of(error), "code": 999 if code is None else code})
        else:
            tell({"index": index})
            gpu.read(self._nvml, handle, index, tell)

    def _opened(self):
        """[(handle, address)] of the GPUs that answer; none that hung for another process."""
        found = []
        for index in range(min(self._facts.get("gpu_count") or 0, MAX_GPUS)):
            if self._answers[index + 1].failure is None:
                try:
                    handle = self._nvml.call("nvmlDeviceGetHandleByIndex", index)
                    info = self._nvml.call("nvmlDeviceGetPciInfo", handle)
                    found.append((handle, pci_address(text(info.busId))))
                except Exception:  # noqa: S112 - a GPU that is lost, or has no address, has no pair
                    continue
        return found


def _put_gpus(facts, answers, context):
    gpus, lost = [], []
    for index, answer in enumerate(answers):
        found, failure = answer.facts, answer.failure
        if "lost" in found:
            lost.append({"index": index, "error": found["lost"], "code": found["code"]})
        elif "index" in found or not answer.tried:
            begun = failure is not None and answer.tried
            gpus.append(gpu.cut_short(found, failure) if begun else dict(found, index=index))
        else:
            words = "nvmlDeviceGetHandleByIndex %s" % failure["detail"]
            code = _TIMEOUT if failure["unavailable"] == "timeout" else 999
            lost.append({"index": index, "error": words, "code": code})
    facts.put("gpus", gpus)
    facts.sources.update(gpu.SOURCES)
    facts.put("lost", _with_address(context, lost, gpus), "nvmlDeviceGetHandleByIndex")


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


def _with_address(context, lost, gpus):
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
        one["pci_address"] for one in gpus if not isinstance(one["pci_address"], dict)
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
