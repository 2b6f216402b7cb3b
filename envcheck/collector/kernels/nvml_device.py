"""One GPU's handle in NVML, for what is watched while products run."""

import threading
from collections import namedtuple

from ..nvml.binding import Binding, NotThere, load
from ..probes.nvml import VENDORED

_OPENING = 5.0  # seconds


Device = namedtuple("Device", "nvml handle")  # of the whole GPU, of a MIG instance too


def open_device(pynvml_path, pci_address, uuid):
    """The Device at a PCI address ("0000:01:00.0") or of a UUID ("GPU-...", "MIG-...").

    pynvml_path: None takes the collector's own copy. Raises whatever pynvml raises, or its import, and
    NotThere where it hangs.
    """
    return within(_OPENING, lambda: _open(pynvml_path, pci_address, uuid))


def within(seconds, ask):
    """What ``ask()`` returns or raises; NotThere where it is not back by then.

    NVML may hang while CUDA works, and that is not to be blamed on the products. Its thread is left behind,
    for the process to end with.
    """
    answers = []  # type: list

    def work():
        try:
            answers.append((ask(), None))
        except Exception as error:
            answers.append((None, error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    if not answers:
        raise NotThere("timeout", "NVML gave no answer within %g s" % seconds)
    value, error = answers[0]
    if error is not None:
        raise error
    return value


def _open(pynvml_path, pci_address, uuid):
    nvml = Binding(load(pynvml_path or VENDORED))
    nvml.call("nvmlInit")
    handle = None
    if pci_address:
        handle = nvml.call("nvmlDeviceGetHandleByPciBusId", pci_address.encode("ascii"))
    if uuid and (handle is None or uuid.startswith("MIG-")):
        found = nvml.call("nvmlDeviceGetHandleByUUID", uuid.encode("ascii"))
        if uuid.startswith("MIG-"):
            found = nvml.call("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", found)
        handle = handle or found
    if handle is None:
        raise LookupError("neither a PCI address nor a UUID names the GPU")
    return Device(nvml, handle)
