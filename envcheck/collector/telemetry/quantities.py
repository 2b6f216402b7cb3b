"""What is sampled of one GPU, and how NVML is asked for it. What it does not have is asked for once."""

import os
import time

from ..nvml import lists
from ..nvml.binding import NotThere, code_of, reason_fact, words_of

_GONE = ("not-supported", "absent", "no-permission")  # it will not be there later either
_LOST = (15, 16)  # NVML_ERROR_GPU_IS_LOST, NVML_ERROR_RESET_REQUIRED
_FAILURES = 3  # in a row, after which a quantity is not asked for any more
_SLOW, _RARE = 1.0, 10.0  # seconds between two questions
_XID = 8  # nvmlEventTypeXidCriticalError
_NO_EVENT = 10  # NVML_ERROR_TIMEOUT
_PROCESSES = ["nvmlDeviceGetComputeRunningProcesses" + end for end in ("_v3", "_v2", "")]
_REASONS = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
_TEMPERATURES = ("nvmlDeviceGetTemperature", "nvmlDeviceGetTemperatureV")

# {name: (seconds between two questions, the question)}; samples of facts/telemetry.py, in their order.
SAMPLES = {
    "sm_clock_mhz": (0.0, lambda gpu: gpu.number("nvmlDeviceGetClockInfo", 1)),
    "memory_clock_mhz": (0.0, lambda gpu: gpu.number("nvmlDeviceGetClockInfo", 2)),
    "temperature_c": (0.0, lambda gpu: int(gpu.first(_TEMPERATURES, 0))),
    "memory_temperature_c": (_SLOW, lambda gpu: gpu.memory_temperature()),
    "power_w": (0.0, lambda gpu: gpu.number("nvmlDeviceGetPowerUsage") / 1000.0),
    "throttle_reasons": (0.0, lambda gpu: int(gpu.first(_REASONS))),
    "pcie_rx_mb_s": (_SLOW, lambda gpu: gpu.link("NVML_FI_DEV_PCIE_COUNT_RX_BYTES")),
    "pcie_tx_mb_s": (_SLOW, lambda gpu: gpu.link("NVML_FI_DEV_PCIE_COUNT_TX_BYTES")),
    "other_processes": (_SLOW, lambda gpu: gpu.others()),
}
# Counters and states that are reported when they change.
ERRORS = {
    "ecc_corrected": (0.0, lambda gpu: gpu.number("nvmlDeviceGetTotalEccErrors", 0, 0)),
    "ecc_uncorrected": (0.0, lambda gpu: gpu.number("nvmlDeviceGetTotalEccErrors", 1, 0)),
    "pcie_replays": (0.0, lambda gpu: gpu.number("nvmlDeviceGetPcieReplayCounter")),
    "retired_pages": (_RARE, lambda gpu: gpu.retired()),
    "remapped_rows": (_RARE, lambda gpu: gpu.remapped(0)),
    "remap_uncorrectable": (_RARE, lambda gpu: gpu.remapped(1)),
    "remap_pending": (_RARE, lambda gpu: gpu.remapped(2)),
    "remap_failed": (_RARE, lambda gpu: gpu.remapped(3)),
    "nvlink_errors": (_RARE, lambda gpu: gpu.link_errors()),
    "pcie_width": (0.0, lambda gpu: gpu.number("nvmlDeviceGetCurrPcieLinkWidth")),
    "pcie_gen": (0.0, lambda gpu: gpu.number("nvmlDeviceGetCurrPcieLinkGeneration")),
    "power_limit_w": (0.0, lambda gpu: gpu.number("nvmlDeviceGetEnforcedPowerLimit") / 1000.0),
    "xid_events": (0.0, lambda gpu: int(gpu.watches_xids)),  # 1 while NVML reports them
}
NAMES = tuple(SAMPLES)


class Lost(Exception):
    """The GPU does not answer any more: NVML's words."""


class GpuAsked(object):
    """One GPU: ``sample`` it, ask for ``errors`` and ``xids``. Raises Lost when it is gone."""

    def __init__(self, nvml, handle, ours=None, clock=time.monotonic, proc="/proc"):
        """ours: a process; what it has started is not another's."""
        self._nvml, self._handle = nvml, handle
        self._ours, self._clock, self._proc = ours, clock, proc
        self._failures, self._gone = {}, set()  # by name
        self._asked_at = {}
        self._counted = {}  # name of a counter: (when, its value)
        self._events = None

    def sample(self):
        """The values of NAMES, None where there is none now."""
        found = self._ask(SAMPLES)
        return [found.get(name) for name in NAMES]

    def errors(self):
        """{name of ERRORS: value}, as far as they are asked for now."""
        return {name: value for name, value in self._ask(ERRORS).items() if value is not None}

    def watch_xids(self):
        """Whether NVML will report Xids."""
        try:
            self._events = self.call("nvmlEventSetCreate")
            self._nvml.call("nvmlDeviceRegisterEvents", self._handle, _XID, self._events)
        except Exception:
            self._events = None
        return self.watches_xids

    @property
    def watches_xids(self):
        return self._events is not None

    def xids(self):
        """Those that came since."""
        found = []
        while self._events is not None and len(found) < 100:
            names = ("nvmlEventSetWait_v2", "nvmlEventSetWait")
            try:
                event = self._nvml.first(names, self._events, 0)
            except Exception as error:
                self._give_up_if_lost(error)
                if code_of(error) != _NO_EVENT:
                    self._events = None
                break
            if int(event.eventType) & _XID:
                found.append(int(event.eventData))
        return found

    def _ask(self, questions):
        found, now = {}, self._clock()
        for name, (pause, question) in questions.items():
            waits = pause and now - self._asked_at.get(name, -pause) < pause
            if name in self._gone or waits:
                continue
            self._asked_at[name] = now
            try:
                found[name] = question(self)
                self._failures.pop(name, None)
            except Exception as error:
                self._give_up_if_lost(error)
                self._failures[name] = self._failures.get(name, 0) + 1
                absent = reason_fact(error)["unavailable"] in _GONE
                if absent or self._failures[name] >= _FAILURES:
                    self._gone.add(name)
        return found

    def _give_up_if_lost(self, error):
        if code_of(error) in _LOST:
            raise Lost(words_of(error))

    # The questions.

    def call(self, name, *arguments):
        if name.startswith("nvmlDevice"):
            arguments = (self._handle,) + arguments
        return self._nvml.call(name, *arguments)

    def first(self, names, *arguments):
        return self._nvml.first(names, self._handle, *arguments)

    def number(self, name, *arguments):
        return int(self.call(name, *arguments))

    def memory_temperature(self):
        celsius = int(self._nvml.field(self._handle, "NVML_FI_DEV_MEMORY_TEMP"))
        if celsius <= 0:
            raise NotThere("not-supported")
        return celsius

    def link(self, counter):
        """MB/s by the link's own counter of bytes."""
        before = self._counted.get(counter)
        now, number = self._clock(), int(self._nvml.field(self._handle, counter))
        self._counted[counter] = now, number
        if before is None or number < before[1] or now <= before[0]:
            return None
        return round((number - before[1]) / (now - before[0]) / 1e6, 1)

    def others(self):
        """How many processes compute on it that are not envcheck's."""
        found = self.first(_PROCESSES)
        return sum(not self._is_ours(int(process.pid)) for process in found)

    def _is_ours(self, pid):
        for _step in range(50):
            if pid in (self._ours, os.getpid()):
                return True
            try:
                with open("%s/%d/stat" % (self._proc, pid), "rb") as opened:
                    pid = int(opened.read().rpartition(b")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                return False
            if pid <= 1:
                return False
        return False

    def retired(self):
        return sum(len(list(self.call("nvmlDeviceGetRetiredPages", cause))) for cause in (0, 1))

    def remapped(self, place):
        return int(self.call("nvmlDeviceGetRemappedRows")[place])

    def link_errors(self):
        (links,) = lists.nvlinks(self._nvml, self._handle)
        names = ("replay_errors", "recovery_errors", "crc_errors")
        values = [link.get(name) for link in links for name in names]
        return sum(value for value in values if isinstance(value, int))
