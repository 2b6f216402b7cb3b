"""NVIDIA's PCI devices, as the kernel sees them in /sys: true without any driver."""

import os
import re

from ..facts import Facts, from_error, is_unavailable, unavailable
from ..linux import rdma
from ..linux.pci_acs import acs_redirects
from ..linux.pci_link import ADDRESS, LINK, SLOT, addresses, link_to
from ..linux.pci_names import device_names

DOCUMENT = "machine"
DEADLINE = 5

DEVICES = "/sys/bus/pci/devices"
GROUPS = "/sys/kernel/iommu_groups"
NVIDIA = "0x10de"
# Chipsets for AMD and Intel that NVIDIA made until 2010 have class 0680 too; every one of their
# device ids is below the first NVSwitch's.
FIRST_NVSWITCH = 0x1000


def collect(context):
    facts = Facts(source=DEVICES)
    facts.attempt("devices", DEVICES, _devices, context)
    devices = facts.get("devices") or []
    _add_names(context, facts, devices)
    facts.attempt("iommu", GROUPS, _has_iommu, context)
    facts.put("iommu_mode", _iommu_mode(context, devices), GROUPS + "/*/type")
    facts.put(
        "acs_ports", _acs_ports(context, devices), "the ACS capability in " + DEVICES + "/*/config"
    )
    return facts


def _devices(context):
    addresses = sorted(os.listdir(context.path(DEVICES)))
    nvidia = [one for one in addresses if _read(context, one, "vendor") == NVIDIA]
    return [_device(context, address) for address in nvidia]


def parse_aer_total(text):
    """The total of an aer_dev_* file: its TOTAL_ERR_* line."""
    match = re.search(r"^TOTAL_ERR_\w+ (\d+)\s*$", text, re.M)
    return int(match.group(1)) if match else unavailable("error", "no total in it")


def _number(text):
    number = int(text)
    return unavailable("absent", text) if number < 0 else number


def _override(text):
    return unavailable("absent", "none") if text in ("", "(null)") else text[:64]


# (fact of a device, its file in the device's directory, how its text is read)
_FILES = (
    ("power_state", "power_state", str),
    ("driver_override", "driver_override", _override),
    ("numa_node", "numa_node", _number),
    ("aer_fatal", "aer_dev_fatal", parse_aer_total),
    ("aer_nonfatal", "aer_dev_nonfatal", parse_aer_total),
) + LINK


def _device(context, address):
    slot = _slot(context, address)
    group = link_to(_path(context, address, "iommu_group"))
    if not is_unavailable(group):
        group = int(group) if group.isdecimal() else unavailable("error", "no number: " + group)
    device = {
        "address": address.lower(),
        "kind": _kind(context, address),
        "device_id": "10de:" + (_read(context, address, "device") or "0x????")[2:],
        "driver": link_to(_path(context, address, "driver")),
        "answers": _answers(context, address),
        "slot": slot,
        "bridges": addresses(_path(context, address))[:-1],
        "iommu_group": group,
    }
    for name, file, parse in _FILES:
        device[name] = context.fact("%s/%s/%s" % (DEVICES, address, file), parse)
    for name, file, parse in () if is_unavailable(slot) else SLOT:
        device[name] = context.fact("%s/%s/%s" % (DEVICES, slot, file), parse)
    return device


def _kind(context, address):
    """The kind by PCI class. A virtual function of a GPU that this machine hosts is no GPU of it."""
    try:
        code = int(_read(context, address, "class"), 16) >> 8
        device = int(_read(context, address, "device"), 16)
    except ValueError:
        return "other"
    if _is_virtual_function(context, address):
        return "other"
    if code >> 8 == 0x03:
        return "gpu"
    if code == 0x0680 and device >= FIRST_NVSWITCH:
        return "nvswitch"
    return {0x0403: "audio", 0x0C03: "usb"}.get(code, "other")


def _is_virtual_function(context, address):
    return os.path.lexists(_path(context, address, "physfn"))


def _slot(context, address):
    """The address of the port above, by the device's place in /sys/devices."""
    above = os.path.basename(os.path.dirname(os.path.realpath(_path(context, address))))
    if ADDRESS.match(above):
        return above
    return unavailable("absent", "directly below the root: %s" % above)


def _answers(context, address):
    """False where the device's identity reads as all ones: nothing answers on the bus any more."""
    if _is_virtual_function(context, address):
        return unavailable("not-supported", "a virtual function has no identity of its own")
    try:
        with open(_path(context, address, "config"), "rb") as config:
            identity = config.read(4)
    except OSError as error:
        return from_error(error)
    if len(identity) < 4:
        return unavailable("error", "%d bytes of configuration space" % len(identity))
    return identity != b"\xff\xff\xff\xff"


def _has_iommu(context):
    """Whether any IOMMU group exists; a kernel built without IOMMUs does not have the directory."""
    below = os.listdir(context.path(os.path.dirname(GROUPS)))
    return os.path.basename(GROUPS) in below and bool(os.listdir(context.path(GROUPS)))


def _iommu_mode(context, devices):
    """How the IOMMU treats the GPUs' groups; several ways are joined by commas."""
    groups = sorted(
        {
            device["iommu_group"]
            for device in devices
            if device["kind"] == "gpu" and not is_unavailable(device["iommu_group"])
        }
    )
    if not groups:
        return unavailable("absent", "no NVIDIA GPU is in an IOMMU group")
    try:
        modes = {context.read("%s/%d/type" % (GROUPS, group)).strip() for group in groups}
    except OSError as error:
        return from_error(error)
    return ",".join(sorted(modes))


def _acs_ports(context, devices):
    """Addresses of the bridges above GPUs and RDMA adapters that redirect peer-to-peer requests upwards."""
    bridges = {
        bridge for device in devices if device["kind"] == "gpu" for bridge in device["bridges"]
    }
    if bridges:
        bridges |= rdma.bridges(context)
    if not bridges:
        return unavailable("absent", "no bridge above an NVIDIA GPU")
    ports = []
    for bridge in sorted(bridges):
        redirects = acs_redirects(_path(context, bridge, "config"))
        if is_unavailable(redirects):
            return redirects
        if redirects:
            ports.append(bridge)
    return ports


def _add_names(context, facts, devices):
    if devices:
        names, source = device_names(context, {device["device_id"][5:] for device in devices})
        for device in devices:
            device["name"] = names.get(device["device_id"][5:]) or unavailable(
                "absent", "not in %s" % source if source else "no pci.ids on this machine"
            )
        if source:
            facts.put("devices", devices, "%s, names from %s" % (DEVICES, source))


def _path(context, address, name=""):
    return os.path.join(context.path(DEVICES), address, name).rstrip(os.sep)


def _read(context, address, name):
    """A one-line file of a device; "" where there is none."""
    return context.text("%s/%s/%s" % (DEVICES, address, name)).strip()
