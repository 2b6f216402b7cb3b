"""A GPU's minutes: samples put together, and of a long soak, minutes put together to longer ones."""

from ..nvml.labels import clock_event_reasons
from ..telemetry.quantities import NAMES

MOST = 1500  # records that a GPU keeps
_MEANS = ("sm_clock_mhz", "memory_clock_mhz", "power_w", "utilization_percent")
_HIGHEST = ("temperature_c", "memory_temperature_c", "other_processes")
_LEAST = ("pcie_width", "pcie_gen")
_STATES = _LEAST + (
    "power_limit_w",
    "xid_events",
)  # of the errors' names, those that are no counters


class GpuMinutes(object):
    """Takes what comes, and makes a record of a minute (facts/soak.py's SoakMinute) when it is over."""

    def __init__(self, most=MOST):
        self.records = []
        self._most = most - most % 2
        self._span = 1  # minutes of a record
        self._part = []  # minutes that are no whole record yet
        self._errors = {}  # latest
        self._forget()

    def _forget(self):
        self._sums, self._counts, self._most_seen, self._least_seen = {}, {}, {}, {}
        self._reasons, self._reasoned, self._samples = {}, 0, 0
        self._grown, self._xids, self._wrong = {}, [], 0

    def sample(self, values):
        """values: of NAMES."""
        self._samples += 1
        seen = {name: value for name, value in zip(NAMES, values) if value is not None}
        for name in _MEANS:
            if name in seen:
                self._sums[name] = self._sums.get(name, 0.0) + seen[name]
                self._counts[name] = self._counts.get(name, 0) + 1
        for name in _HIGHEST:
            if name in seen:
                self._most_seen[name] = max(seen[name], self._most_seen.get(name, seen[name]))
        if "throttle_reasons" in seen:
            self._reasoned += 1
            for reason in clock_event_reasons(int(seen["throttle_reasons"]) & 0xFFFFFFFF):
                self._reasons[reason] = self._reasons.get(reason, 0) + 1

    def errors(self, changed):
        for name, value in changed.items():
            before = self._errors.get(name)
            if name not in _STATES and before is not None and value > before:
                self._grown[name] = self._grown.get(name, 0) + value - before
            self._errors[name] = value
            if name in _LEAST:
                self._least_seen[name] = int(min(value, self._least_seen.get(name, value)))

    def xid(self, number):
        self._xids = (self._xids + [int(number)])[:20]

    def wrong(self):
        self._wrong += 1

    def over(self, began, seconds, products, tflops=None):
        """The minute's record; began: seconds since the soak did."""
        record = {"began": round(began, 3), "seconds": round(seconds, 3), "products": products}
        if tflops is not None:
            record["tflops"] = round(tflops, 4)
        for name, total in self._sums.items():
            record[name] = round(total / self._counts[name], 1)
        for name, value in self._most_seen.items():
            record[name] = int(value) if name == "other_processes" else value
        for name in _LEAST:
            if name in self._least_seen or name in self._errors:
                record[name] = int(self._least_seen.get(name, self._errors.get(name)))
        shares = {name: round(n / float(self._reasoned), 4) for name, n in self._reasons.items()}
        record.update(throttled=shares, grown=self._grown, xids=self._xids, wrong=self._wrong)
        record.update(samples=self._samples, reason_samples=self._reasoned)
        self._forget()
        self._keep(record)
        return record

    def _keep(self, record):
        self._part.append(record)
        if len(self._part) == self._span:
            self.records.append(merged(self._part))
            self._part = []
        if len(self.records) >= self._most:
            pairs = zip(self.records[::2], self.records[1::2])
            self.records = [merged(pair) for pair in pairs]
            self._span *= 2

    def all(self):
        """The records, with what is no whole one yet."""
        return self.records + ([merged(self._part)] if self._part else [])


def merged(records):
    """One record of several that follow one another."""
    if len(records) == 1:
        return records[0]
    made = {"began": records[0]["began"]}
    for name in ("seconds", "products", "wrong", "samples", "reason_samples"):
        made[name] = sum(one[name] for one in records)
    made["seconds"] = round(made["seconds"], 3)
    made["tflops"] = _mean(records, "tflops", "seconds", 4)
    for name in _MEANS:
        made[name] = _mean(records, name, "samples", 1)
    for name in _HIGHEST:
        made[name] = max([one[name] for one in records if name in one] or [None])
    for name in _LEAST:
        made[name] = min([one[name] for one in records if name in one] or [None])
    read = float(made["reason_samples"]) or 1.0
    made["throttled"], made["grown"] = {}, {}
    for one in records:
        for name, share in one["throttled"].items():
            part = share * one["reason_samples"] / read
            made["throttled"][name] = made["throttled"].get(name, 0.0) + part
        for name, number in one["grown"].items():
            made["grown"][name] = made["grown"].get(name, 0) + number
    made["throttled"] = {name: round(share, 4) for name, share in made["throttled"].items()}
    made["xids"] = [number for one in records for number in one["xids"]][:20]
    return {name: value for name, value in made.items() if value is not None}


def _mean(records, name, weight, digits):
    """Of those that have it; a minute without a product has the rate 0, and no clock."""
    zero = name == "tflops"
    there = [one for one in records if name in one or zero]
    total = sum(one[weight] for one in there)
    if not any(name in one for one in there) or not total:
        return None
    return round(sum(one.get(name, 0.0) * one[weight] for one in there) / total, digits)
