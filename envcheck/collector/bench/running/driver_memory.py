"""A process that asks NVML once how much of each GPU's memory each process has: {PID: MiB} on its stdout."""

import json
import sys

from ...nvml.binding import Binding, load
from ...probes.nvml import VENDORED
from ...worker import PACKAGE

DEADLINE = 8.0
# Started as `python -c BOOTSTRAP ROOT PYNVML`.
BOOTSTRAP = PACKAGE + (
    "from envcheck.collector.bench.running.driver_memory import main\nmain(sys.argv[2])\n"
)
_NOT_TOLD = (None, 2**64 - 1)  # NVML_VALUE_NOT_AVAILABLE


def main(pynvml):
    nvml = Binding(load(pynvml or VENDORED))
    nvml.call("nvmlInit")
    sys.stdout.write(json.dumps(by_process(nvml)) + "\n")
    sys.stdout.flush()


def by_process(nvml):
    """{process id: MiB of the GPU where it has most}."""
    found = {}
    name = "nvmlDeviceGetComputeRunningProcesses"
    for index in range(nvml.call("nvmlDeviceGetCount")):
        try:
            handle = nvml.call("nvmlDeviceGetHandleByIndex", index)
            listed = nvml.first((name + "_v3", name + "_v2", name), handle)
        except Exception:  # of this GPU nothing is told
            continue
        for process in listed:
            if process.usedGpuMemory not in _NOT_TOLD:
                pid = str(int(process.pid))
                found[pid] = max(found.get(pid, 0), int(process.usedGpuMemory) >> 20)
    return found


def read(stdout):
    """What ``main`` printed (bytes): {process id: MiB}, empty where that is nothing of the kind."""
    try:
        told = json.loads(stdout.decode("utf-8"))
        return {int(pid): int(mib) for pid, mib in told.items()}
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}
