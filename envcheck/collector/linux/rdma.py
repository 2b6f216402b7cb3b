"""InfiniBand and RoCE adapters, and the libraries by which programs reach them."""

import os
import re

from ..cuda.loader_search import cached, search_path
from ..facts import unavailable
from .pci_link import ADDRESS, LINK, SLOT, addresses, link_to

FOLDER = "/sys/class/infiniband"
NODES = "/dev/infiniband"
LIBRARY = "libibverbs.so.1"
LIBRARY_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib")
GIDS = 16  # entries of a port's table that are looked at
_RATE = re.compile(r"([\d.]+) Gb/sec \((\d+)X")


def devices(context):
    """The adapters, by name. Raises OSError."""
    return [_device(context, name) for name in sorted(os.listdir(context.path(FOLDER)))]


_FILES = (
    ("board", "board_id", str),
    ("chip", "hca_type", str),
    ("firmware", "fw_ver", str),
    ("numa_node", "device/numa_node", int),
)
_OF_PCI = [("device/", LINK), ("device/../", SLOT)]


def _device(context, name):
    folder = "%s/%s/" % (FOLDER, name)
    place = _place(context, name)
    absent = unavailable("absent", "not on PCI")
    device = {fact: context.fact(folder + file, parse) for fact, file, parse in _FILES}
    for below, rows in _OF_PCI:
        device.update(
            (fact, context.fact(folder + below + file, parse)) for fact, file, parse in rows
        )
    device.update(
        name=name,
        address=place[-1] if place else absent,
        driver=link_to(context.path(folder + "device/driver")),
        virtual_function=os.path.lexists(context.path(folder + "device/physfn")),
        bridges=place[:-1] if place else absent,
        ports=_ports(context, folder),
    )
    if isinstance(device["board"], dict):
        device["board"] = device["chip"]
    if device["numa_node"] == -1:
        device["numa_node"] = unavailable("absent", "-1")
    return device


def bridges(context):
    """Addresses of the PCI bridges above the adapters."""
    names = context.names(FOLDER)
    return {part for name in names for part in _place(context, name)[:-1]}


def _place(context, name):
    """The addresses on the way from the root port to an adapter, its own last; [] where it is not on PCI."""
    path = context.path("%s/%s/device" % (FOLDER, name))
    return addresses(path) if ADDRESS.match(os.path.basename(os.path.realpath(path))) else []


def _ports(context, folder):
    numbers = [int(name) for name in context.names(folder + "ports") if name.isdecimal()]
    return [_port(context, "%sports/%d/" % (folder, number), number) for number in numbers]


def _port(context, folder, number):
    rate, lanes = parse_rate(context.fact(folder + "rate"))
    gids, routed, interfaces = _gids(context, folder)
    return {
        "port": number,
        "state": context.fact(folder + "state", _word),  # "4: ACTIVE"
        "physical_state": context.fact(folder + "phys_state", _word),
        "link_layer": context.fact(folder + "link_layer"),
        "rate_gbps": rate,
        "lanes": lanes,
        "gids": gids,
        "routed_gids": routed,
        "interfaces": interfaces,
    }


def parse_rate(text):
    """(Gb/s, lanes) of "200 Gb/sec (4X HDR)"."""
    match = _RATE.match(text) if isinstance(text, str) else None
    try:
        return float(match.group(1)), int(match.group(2))
    except (AttributeError, ValueError):
        missing = text if isinstance(text, dict) else unavailable("not-supported", text)
        return missing, missing


def _word(text):
    return text.partition(": ")[2] or text


def _gids(context, folder):
    """(the filled ones of a port's first GIDs, those of RoCE v2 that routers know, their interfaces)."""
    filled, routed, interfaces = [], [], []
    typed = True
    for index in range(GIDS):
        gid = context.fact("%sgids/%d" % (folder, index))
        if isinstance(gid, dict):
            if index == 0:
                return gid, gid, []
            continue
        if not gid.strip("0:"):
            continue
        filled.append(index)
        kind = context.text("%sgid_attrs/types/%d" % (folder, index))
        typed = typed and bool(kind)
        if "v2" in kind and not gid.startswith("fe80"):
            routed.append(index)
        interface = context.text("%sgid_attrs/ndevs/%d" % (folder, index)).strip()
        if interface and interface not in interfaces:
            interfaces.append(interface)
    return filled, routed if typed else unavailable("absent", "no types of GIDs"), interfaces


def library(context):
    """The libibverbs that a program of this process's environment would load, or that there is none."""
    triple = os.uname().machine + "-linux-gnu"  # Debian's folders are called after the architecture
    folders = [one for one in search_path(context.environ) if one[:1] == "/"]
    paths = [os.path.join(folder, LIBRARY) for folder in folders]
    paths += [path for path in cached(context) if os.path.basename(path) == LIBRARY]
    folders = ["%s/%s" % (top, triple) for top in ("/lib", "/usr/lib")] + list(LIBRARY_FOLDERS)
    paths += [os.path.join(folder, LIBRARY) for folder in folders]
    found = [path for path in paths if os.path.exists(context.path(path))]
    return found[0] if found else unavailable("absent", "no %s" % LIBRARY)
