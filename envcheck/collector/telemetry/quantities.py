"""What is sampled of one GPU, and how NVML is asked for it. What it does not have is asked for once."""

import os
import time

from ..nvml import lists
from ..nvml.binding import NotThere, code_of, reason_fact, words_of

# Of facts/telemetry.py, in the order in which they are told.
NAMES = (
    "sm_clock_mhz",
    "memory_clock_mhz",
    "temperature_c",
    "memory_temperature_c",
    "power_w",
    "utilization_percent",
    "throttle_reasons",
    "pcie_rx_mb_s",
    "pcie_tx_mb_s",
    "memory_used_mib",
    "other_processes",
)
# Counters and states that are told when they change.
ERRORS = (
    "ecc_corrected",
    "ecc_uncorrected",
    "pcie_replays",
    "retired_pages",
    "remapped_rows",
    "remap_uncorrectable",
    "remap_pending",
    "remap_failed",
    "nvlink_errors",
    "pcie_width",
    "pcie_gen",
    "power_limit_w",
    "xid_events",  # 1 while NVML reports Xids of this GPU
)
_GONE = ("not-supported", "absent", "no-permission")  # it will not be there later either
_LOST = (15, 16)  # NVML_ERROR_GPU_IS_LOST, NVML_ERROR_RESET_REQUIRED
_FAILURES = 3  # in a row, of a quantity that is then left
_SLOW = 1.0  # seconds between two samples of what changes slowly or is asked slowly
_RARE = 10.0  # the same of what takes NVML long
_XID = 8  # nvmlEventTypeXidCriticalError
_NO_EVENT = 10  # NVML_ERROR_TIMEOUT


class Lost(Exception):
    """The GPU does not answer any more: NVML's words."""


class GpuAsked(object):
    """One GPU: ``sample`` it, ask for ``errors`` and ``xids``. Raises Lost when it is gone."""

    def __init__(self, nvml, handle, ours=None, clock=time.monotonic, proc="/proc"):
        """ours: a process; what it has started is not another's."""
        self._nvml = nvml
        self._handle = handle
        self._ours = ours
        self._clock = clock
        self._proc = proc
        self._failures = {}
        self._slow = self._rare = None
        self._watched_at = {}  # direction of the link: when
        self._counted = {}  # name of a counter: (when, its value)
        self._events = None
        self._fast = {
            "sm_clock_mhz": lambda: self._number("nvmlDeviceGetClockInfo", 1),
            "memory_clock_mhz": lambda: self._number("nvmlDeviceGetClockInfo", 2),
            "temperature_c": self._temperature,
            "power_w": lambda: self._number("nvmlDeviceGetPowerUsage") / 1000.0,
            "utilization_percent": lambda: self._call("nvmlDeviceGetUtilizationRates").gpu,
            "throttle_reasons": self._reasons,
        }
        self._slowly = {
            "memory_temperature_c": self._memory_temperature,
            "pcie_rx_mb_s": lambda: self._link("NVML_FI_DEV_PCIE_COUNT_RX_BYTES", 1),
            "pcie_tx_mb_s": lambda: self._link("NVML_FI_DEV_PCIE_COUNT_TX_BYTES", 0),
            "memory_used_mib": lambda: self._call("nvmlDeviceGetMemoryInfo").used >> 20,
            "other_processes": self._others,
        }
        self._often = {
            "ecc_corrected": lambda: self._number("nvmlDeviceGetTotalEccErrors", 0, 0),
            "ecc_uncorrected": lambda: self._number("nvmlDeviceGetTotalEccErrors", 1, 0),
            "pcie_replays": lambda: self._number("nvmlDeviceGetPcieReplayCounter"),
            "pcie_width": lambda: self._number("nvmlDeviceGetCurrPcieLinkWidth"),
            "pcie_gen": lambda: self._number("nvmlDeviceGetCurrPcieLinkGeneration"),
            "power_limit_w": lambda: self._number("nvmlDeviceGetEnforcedPowerLimit") / 1000.0,
            "xid_events": lambda: int(self._events is not None),
        }
        self._rarely = {
            "retired_pages": self._retired,
            "remapped_rows": lambda: self._remapped(0),
            "remap_uncorrectable": lambda: self._remapped(1),
            "remap_pending": lambda: self._remapped(2),
            "remap_failed": lambda: self._remapped(3),
            "nvlink_errors": self._link_errors,
        }

    def sample(self):
        """The values of NAMES, None where there is none now."""
        values = dict.fromkeys(NAMES)
        values.update(self._asked(self._fast))
        now = self._clock()
        if self._slow is None or now - self._slow >= _SLOW:
            self._slow = now
            values.update(self._asked(self._slowly))
        return [values[name] for name in NAMES]

    def errors(self):
        """{name of ERRORS: value}, as far as they are asked for now."""
        found = self._asked(self._often)
        now = self._clock()
        if self._rare is None or now - self._rare >= _RARE:
            self._rare = now
            found.update(self._asked(self._rarely))
        return {name: value for name, value in found.items() if value is not None}

    def watch_xids(self):
        """Whether NVML will tell of Xids."""
        try:
            self._events = self._call("nvmlEventSetCreate")
            self._nvml.call("nvmlDeviceRegisterEvents", self._handle, _XID, self._events)
        except Exception:
            self._events = None
        return self._events is not None

    def xids(self):
        """Those that came since."""
        found = []
        while self._events is not None and len(found) < 100:
            try:
                told = self._nvml.first(
                    ("nvmlEventSetWait_v2", "nvmlEventSetWait"), self._events, 0
                )
            except Exception as error:
                self._give_up_if_lost(error)
                if code_of(error) != _NO_EVENT:
                    self._events = None
                break
            if int(told.eventType) & _XID:
                found.append(int(told.eventData))
        return found

    def _asked(self, functions):
        found = {}
        for name in list(functions):
            try:
                found[name] = functions[name]()
                self._failures.pop(name, None)
            except Exception as error:
                self._give_up_if_lost(error)
                self._failures[name] = self._failures.get(name, 0) + 1
                gone = reason_fact(error)["unavailable"] in _GONE
                if gone or self._failures[name] >= _FAILURES:
                    del functions[name]
        return found

    def _give_up_if_lost(self, error):
        if code_of(error) in _LOST:
            raise Lost(words_of(error))

    def _call(self, name, *arguments):
        if name.startswith("nvmlDevice"):
            arguments = (self._handle,) + arguments
        return self._nvml.call(name, *arguments)

    def _number(self, name, *arguments):
        return int(self._call(name, *arguments))

    def _temperature(self):
        names = ("nvmlDeviceGetTemperature", "nvmlDeviceGetTemperatureV")
        return int(self._nvml.first(names, self._handle, 0))

    def _reasons(self):
        names = (
            "nvmlDeviceGetCurrentClocksEventReasons",
            "nvmlDeviceGetCurrentClocksThrottleReasons",
        )
        return int(self._nvml.first(names, self._handle))

    def _memory_temperature(self):
        celsius = int(self._nvml.field(self._handle, "NVML_FI_DEV_MEMORY_TEMP"))
        if celsius <= 0:
            raise NotThere("not-supported")
        return celsius

    def _link(self, counter, direction):
        """MB/s by the link's own counter of bytes; by NVML's watching, where it has none."""
        if counter not in self._counted:
            try:
                self._counted[counter] = self._clock(), self._bytes(counter)
                return None
            except Exception as error:
                self._give_up_if_lost(error)
                self._counted[counter] = None
        before = self._counted[counter]
        if before is None:
            return self._watched(direction)
        now, number = self._clock(), self._bytes(counter)
        self._counted[counter] = now, number
        if number < before[1] or now <= before[0]:
            return None
        return round((number - before[1]) / (now - before[0]) / 1e6, 1)

    def _bytes(self, counter):
        return int(self._nvml.field(self._handle, counter))

    def _watched(self, direction):
        """Seldom: NVML itself watches the link for 20 ms at each question."""
        now = self._clock()
        if now - self._watched_at.get(direction, -_RARE) < _RARE:
            return None
        self._watched_at[direction] = now
        return round(self._number("nvmlDeviceGetPcieThroughput", direction) / 1e3, 1)

    def _others(self):
        names = ["nvmlDeviceGetComputeRunningProcesses" + end for end in ("_v3", "_v2", "")]
        found = self._nvml.first(names, self._handle)
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

    def _retired(self):
        return sum(len(list(self._call("nvmlDeviceGetRetiredPages", cause))) for cause in (0, 1))

    def _remapped(self, place):
        return int(self._call("nvmlDeviceGetRemappedRows")[place])

    def _link_errors(self):
        (links,) = lists.nvlinks(self._nvml, self._handle)
        total = 0
        for link in links:
            for name in ("replay_errors", "recovery_errors", "crc_errors"):
                value = link.get(name)
                total += value if isinstance(value, int) else 0
        return total
