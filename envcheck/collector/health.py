"""`--health`: whether the GPUs that this container (or machine) was given still answer.

Seconds, no framework, no CUDA: NVML alone. A container that was given no GPU is well. What is not well is
what no program inside can repair: somebody has to recreate the container, or look at the machine.
"""

import sys

from .runtime import process
from .worker import probe

PROBE = "envcheck.collector.probes.nvml"
DEADLINE = 10.0  # seconds; NVML answers in one, and a driver that hangs never does
WELL, NOT_WELL = 0, 1  # docker knows no other exit status of a health check

# nvmlReturn_t (nvml.h) → what it is when NVML could answer at the container's start.
BROKEN = {
    15: "the GPU is lost",
    16: "the GPU needs a reset",
    18: "the driver was updated under this container",
    999: "the container has lost its access to the GPU",
}
_NO_GPU_HERE = "no GPU was given to this container"


def run(pynvml):
    """Print one line and return the exit status. pynvml: the binding's path."""
    argv = probe.command([sys.executable or "python3", "-I", "-S"], PROBE, {"pynvml": pynvml})
    child = process.Child(argv, DEADLINE, cwd="/", tied=True)
    process.run_all([child])
    status, words = judge(child.result)
    sys.stdout.write(words + "\n")
    sys.stdout.flush()
    return status


def judge(result):
    """(exit status, one line) of what became of the NVML probe's process."""
    if result.stuck or result.outcome == "timeout":
        return NOT_WELL, "unhealthy: NVML gave no answer in %d seconds" % DEADLINE
    try:
        return judge_facts(probe.parse(result)["facts"])
    except ValueError:
        return WELL, "not known: the NVML probe %s" % result.describe()


def judge_facts(facts):
    """The same, of the probe's facts."""
    code = facts.get("init_code")
    if not isinstance(code, int):  # NVML was not asked: the reason stands in its place
        detail = code.get("detail") if isinstance(code, dict) else None
        return WELL, "not known: %s" % _words(detail)
    if code in BROKEN:
        return NOT_WELL, _unhealthy(facts.get("init_error"), code)
    if code != 0:
        return WELL, "healthy: %s (NVML: %s)" % (_NO_GPU_HERE, _words(facts.get("init_error")))
    for gpu in _list(facts.get("lost")):
        if gpu.get("code") in BROKEN:
            return NOT_WELL, _unhealthy(gpu.get("error"), gpu["code"], gpu.get("index"))
    for gpu in _list(facts.get("gpus")):
        lost = [name for name, value in sorted(gpu.items()) if _is_lost(value)]
        if lost:
            return NOT_WELL, _unhealthy("%s: GPU is lost" % lost[0], 15, gpu.get("index"))
    return WELL, "healthy: GPUs that answer: %d" % len(_list(facts.get("gpus")))


def _unhealthy(words, code, index=None):
    where = "" if index is None else "GPU %s: " % index
    return "unhealthy: %sNVML: %s (%d): %s" % (where, _words(words), code, BROKEN[code])


def _words(words):
    return words if isinstance(words, str) else "no reason given"


def _list(value):
    return value if isinstance(value, list) else []


def _is_lost(value):
    return isinstance(value, dict) and value.get("unavailable") == "lost"
