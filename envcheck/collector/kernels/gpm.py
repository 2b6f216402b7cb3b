"""NVML's GPU performance monitoring: how much of the time Tensor Cores worked, on Hopper and later."""

import contextlib
import time

from ..nvml.binding import NotThere, reason_fact
from .nvml_device import open_device

_IDLE = 0.3  # seconds; two samples must be 0.1 s apart at least
_BUSY = 1.05
_PAUSE = 0.001

# nvmlGpmMetricId_t of the fields of Gpm
METRICS = {"any_tensor": 5, "hmma": 7, "imma": 9, "fp32": 12}
_IDLE_FIELDS = ("any_tensor", "hmma", "imma")
_VERSION = 1  # NVML_GPM_METRICS_GET_VERSION


class Gpm(object):
    """Watches one GPU. Never raises by itself: what cannot be had becomes an unavailable fact."""

    def __init__(self, pynvml_path, pci_address, uuid):
        self._missing = None
        self._idle = None
        try:
            self._device = open_device(pynvml_path, pci_address, uuid)
            nvml, handle = self._device.nvml, self._device.handle
            if not nvml.call("nvmlGpmQueryDeviceSupport", handle).isSupportedDevice:
                raise NotThere("not-supported", "NVML has no GPM for this GPU")
        except Exception as error:
            self._missing = reason_fact(error)

    def watch(self, driver, product):
        """The Gpm record of a second of ``product``, which starts one product; or an unavailable fact.

        Raises what the product and the driver raise.
        """
        if self._missing is not None:
            return self._missing
        if self._idle is None:
            driver.synchronize()
            self._idle = self._between(lambda: time.sleep(_IDLE))
        if not isinstance(self._idle, list):
            return self._idle
        told = self._between(lambda: _keep_busy(driver, product, _BUSY))
        driver.synchronize()
        if not isinstance(told, list):
            return told
        seconds, found = told
        record = dict(found, seconds=seconds)
        record.update(("idle_" + name, self._idle[1][name]) for name in _IDLE_FIELDS)
        return record

    def _between(self, work):
        """[seconds, {field: percent or unavailable}] over ``work``; what NVML refused, as a fact."""
        nvml = self._device.nvml
        samples = []
        try:
            first, second = (self._sample(samples) for _ in range(2))
            self._fill(first)
        except Exception as error:
            self._release(samples)
            return reason_fact(error)
        started = time.monotonic()
        try:
            work()
            seconds = round(time.monotonic() - started, 3)
            try:
                self._fill(second)
                return [seconds, _metrics(nvml, first, second)]
            except Exception as error:
                return reason_fact(error)
        finally:
            self._release(samples)

    def _sample(self, samples):
        sample = self._device.nvml.call("nvmlGpmSampleAlloc")
        samples.append(sample)
        return sample

    def _fill(self, sample):
        nvml, handle, instance = self._device.nvml, self._device.handle, self._device.instance
        if instance is None:
            nvml.call("nvmlGpmSampleGet", handle, sample)
        else:
            nvml.call("nvmlGpmMigSampleGet", handle, instance, sample)

    def _release(self, samples):
        for sample in samples:
            with contextlib.suppress(Exception):
                self._device.nvml.call("nvmlGpmSampleFree", sample)


def _metrics(nvml, first, second):
    asked = nvml.structure("c_nvmlGpmMetricsGet_t")
    asked.version = _VERSION
    asked.sample1, asked.sample2 = first, second
    names = sorted(METRICS)
    asked.numMetrics = len(names)
    for place, name in enumerate(names):
        asked.metrics[place].metricId = METRICS[name]
    nvml.call("nvmlGpmMetricsGet", asked)
    found = {}
    for metric, name in zip(asked.metrics, names):
        if metric.nvmlReturn != 0:
            found[name] = reason_fact(nvml.module.NVMLError(metric.nvmlReturn))
        else:
            found[name] = round(metric.value, 2)
    return found


def _keep_busy(driver, product, seconds):
    """Start products for that long, two or so ahead of the GPU, which still works at the end."""
    events = []
    try:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            while len(events) >= 3 and not driver.query(events[-3]):
                time.sleep(_PAUSE)
            product()
            event = driver.event()
            events.append(event)
            driver.record(event)
            if len(events) > 8:
                driver.destroy_event(events.pop(0))
    finally:
        for event in events:
            driver.destroy_event(event)
