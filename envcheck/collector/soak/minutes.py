"""A GPU's minutes: what was sampled and counted in each, as one record."""

from ..nvml.labels import clock_event_reasons
from ..telemetry.quantities import NAMES

_MEANS = ("sm_clock_mhz", "memory_clock_mhz", "power_w")
_HIGHEST = ("temperature_c", "memory_temperature_c", "other_processes")
_LEAST = ("pcie_width", "pcie_gen")
_STATES = _LEAST + ("power_limit_w", "xid_events")  # of the errors' names, those that do not count
_MOST_XIDS = 20


class GpuMinutes(object):
    """Takes what comes, and makes a record of a minute (facts/soak.py's SoakMinute) when it is over."""

    def __init__(self):
        self.records = []
        self._errors = {}  # latest
        self._forget()

    def _forget(self):
        self._columns = {}  # {name: values}
        self._reasons = []  # a list of names a sample
        self._least = {}
        self._grown, self._xids = {}, []
        self._samples = self._wrong = 0

    def sample(self, values):
        """values: of NAMES."""
        self._samples += 1
        for name, value in zip(NAMES, values):
            if value is not None:
                self._columns.setdefault(name, []).append(value)
        if "throttle_reasons" in self._columns:
            masks = self._columns.pop("throttle_reasons")
            self._reasons += [clock_event_reasons(int(mask) & 0xFFFFFFFF) for mask in masks]

    def errors(self, changed):
        for name, value in changed.items():
            before = self._errors.get(name)
            if name not in _STATES and before is not None and value > before:
                self._grown[name] = self._grown.get(name, 0) + value - before
            self._errors[name] = value
            if name in _LEAST:
                self._least[name] = min(value, self._least.get(name, value))

    def xid(self, number):
        self._xids = (self._xids + [int(number)])[:_MOST_XIDS]

    def wrong(self):
        self._wrong += 1

    def over(self, began, seconds, products, tflops=None):
        """The minute's record; began: seconds since the soak did."""
        record = {"began": round(began, 3), "seconds": round(seconds, 3), "products": products}
        if tflops is not None:
            record["tflops"] = round(tflops, 4)
        for name in _MEANS:
            values = self._columns.get(name)
            if values:
                record[name] = round(sum(values) / float(len(values)), 1)
        for name in _HIGHEST:
            if name in self._columns:
                record[name] = max(self._columns[name])
        for name in _LEAST:
            least = self._least.get(name, self._errors.get(name))
            if least is not None:
                record[name] = int(least)
        number = float(len(self._reasons)) or 1.0
        shares = {}
        for reason in (one for some in self._reasons for one in some):
            shares[reason] = shares.get(reason, 0) + 1
        record["throttled"] = {name: round(count / number, 4) for name, count in shares.items()}
        record.update(grown=self._grown, xids=self._xids, wrong=self._wrong)
        record.update(samples=self._samples, reason_samples=len(self._reasons))
        self._forget()
        self.records.append(record)
        return record
