"""One GPU's handle in NVML, for what is watched while products run."""

from ..probes.nvml import VENDORED
from ..probes.nvml_binding import Binding, load


class Device(object):
    """A GPU (the whole one, of a MIG instance too) and the number of the GPU instance, None without MIG."""

    def __init__(self, nvml, handle, instance):
        self.nvml = nvml
        self.handle = handle
        self.instance = instance


def open_device(pynvml_path, pci_address, uuid):
    """The Device at a PCI address ("0000:01:00.0") or of a UUID ("GPU-...", "MIG-...").

    pynvml_path: None takes the collector's own copy. Raises whatever pynvml raises, or its import.
    """
    nvml = Binding(load(pynvml_path or VENDORED))
    nvml.call("nvmlInit")
    handle = instance = None
    if pci_address:
        handle = nvml.call("nvmlDeviceGetHandleByPciBusId", pci_address.encode("ascii"))
    if uuid and (handle is None or uuid.startswith("MIG-")):
        found = nvml.call("nvmlDeviceGetHandleByUUID", uuid.encode("ascii"))
        if uuid.startswith("MIG-"):
            instance = int(nvml.call("nvmlDeviceGetGpuInstanceId", found))
            found = nvml.call("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", found)
        handle = handle or found
    if handle is None:
        raise LookupError("neither a PCI address nor a UUID names the GPU")
    return Device(nvml, handle, instance)
