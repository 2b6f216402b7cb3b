"""A GPU's SM clock, its limits, power and temperature, sampled through NVML while products run."""

from ..facts import is_unavailable, unavailable
from ..nvml.binding import reason_fact
from ..nvml.labels import clock_event_reasons
from .nvml_device import open_device, within
from .summaries import median

_SM_CLOCK = 1  # NVML_CLOCK_SM
_DIE = 0  # NVML_TEMPERATURE_GPU
_PATIENCE = 1.0  # seconds for one sample

# Each quantity: functions of which the first that is known counts, and the arguments after the handle.
_CALLS = {
    "clock": (("nvmlDeviceGetClockInfo",), (_SM_CLOCK,)),
    "reasons": (
        ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"),
        (),
    ),
    "power": (("nvmlDeviceGetPowerUsage",), ()),
    "temperature": (("nvmlDeviceGetTemperature", "nvmlDeviceGetTemperatureV"), (_DIE,)),
}


class Sampler(object):
    """Never raises: what cannot be had becomes an unavailable fact."""

    calls = _CALLS

    def __init__(self, pynvml_path, pci_address, uuid):
        self._device = None
        self._missing = {}  # quantity: the reason, after which it is not asked for again
        try:
            self._device = open_device(pynvml_path, pci_address, uuid)
        except Exception as error:
            self._missing = {name: reason_fact(error) for name in self.calls}
        self.reset()

    def reset(self):
        """Forget the samples, not the reasons why there are none."""
        self._seen = {name: [] for name in self.calls}

    def sample(self):
        """Take one sample of everything: some milliseconds on some GPUs."""
        names = [name for name in self.calls if name not in self._missing]
        if not names:
            return
        try:
            sample = within(_PATIENCE, lambda: self._ask(names))
        except Exception as error:  # it hangs, or no thread can be started
            sample = dict.fromkeys(names, reason_fact(error))
        for name, value in sample.items():
            if is_unavailable(value):
                self._missing[name] = value
            else:
                self._seen[name].append(value)

    def _ask(self, names):
        """{name: value, or unavailable}."""
        sample = {}
        for name in names:
            functions, arguments = self.calls[name]
            try:
                sample[name] = int(
                    self._device.nvml.first(functions, self._device.handle, *arguments)
                )
            except Exception as error:
                sample[name] = reason_fact(error)
        return sample

    def facts(self):
        """Fields of a Rate: medians of clock (MHz) and power (W), the highest temperature (C)."""
        clock = self._fact("clock", lambda values: float(median(values)))
        return {
            "clock_mhz": clock,
            "clock_source": "" if isinstance(clock, dict) else "NVML",
            "clock_event_reasons": self._fact("reasons", _words),
            "power_w": self._fact("power", lambda values: round(median(values) / 1000.0, 1)),
            "temperature_c": self._fact("temperature", max),
        }

    def _fact(self, name, summary):
        if self._seen[name]:
            return summary(self._seen[name])
        if name in self._missing:
            return self._missing[name]
        return unavailable("not-collected", "no sample was taken while it ran")


def _words(masks):
    union = 0
    for mask in masks:
        union |= mask
    return clock_event_reasons(union)
