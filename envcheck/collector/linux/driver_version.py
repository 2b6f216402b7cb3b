"""What the loaded driver says of itself under /proc/driver/nvidia."""

import re

from ..addresses import pci_address
from ..facts import unavailable

PARAMETERS = "/proc/driver/nvidia/params"
GPUS = "/proc/driver/nvidia/gpus"
EXCLUDED = re.compile(r"^GPU Excluded:\s*Yes\s*$", re.M)


def parse_version(text):
    """(version, flavour) from /proc/driver/nvidia/version, each a value or an unavailable fact.

    Seen: "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct …",
    "… NVIDIA UNIX Open Kernel Module for x86_64  555.42.06  Release Build …", and, before 2006,
    "… NVIDIA Linux x86 NVIDIA Kernel Module  1.0-8776  …".
    """
    line = next((line for line in text.splitlines() if line.startswith("NVRM version:")), "")
    match = re.search(r"Kernel Module(?: for \S+)?\s+(\d[\d.]*\d(?:-\d+)?)(?=\s|$)", line)
    if not match:
        missing = unavailable("error", "not understood: %r" % text[:200])
        return missing, missing
    return match.group(1), "open" if "Open Kernel Module" in line else "proprietary"


def driver_parameters(context):
    """The driver's parameters, "Name: value" each; none where the driver is not loaded."""
    pairs = (line.partition(":") for line in context.text(PARAMETERS).splitlines())
    return {name.strip(): value.strip() for name, colon, value in pairs if colon and name.strip()}


def excluded_gpus(context):
    """Addresses of the GPUs that an option tells the driver to leave alone."""
    texts = {one: context.text("%s/%s/information" % (GPUS, one)) for one in context.names(GPUS)}
    return sorted(pci_address(one) for one, text in texts.items() if EXCLUDED.search(text))
