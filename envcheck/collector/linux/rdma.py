"""InfiniBand and RoCE adapters, and the libraries by which programs reach them."""

import os
import re

from ..facts import from_error, unavailable
from ..files import read
from .pci_link import parse_speed, parse_width

FOLDER = "/sys/class/infiniband"
CACHE = "/etc/ld.so.cache"
LIBRARY = "libibverbs.so.1"
LIBRARY_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib")
GIDS = 16  # entries of a port's table that are looked at
_ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\Z")
_PROVIDER = re.compile(r"lib(\w+)-rdmav\d+\.so\Z")
_CACHED = re.compile(rb"\0(/[^\0]{1,200}/libibverbs\.so\.1)(?=\0)")
_RATE = re.compile(r"([\d.]+) Gb/sec \((\d+)X")
_CACHE_LIMIT = 4 << 20  # bytes


def devices(context):
    """The adapters, by name. Raises OSError."""
    return [_device(context, name) for name in sorted(os.listdir(context.path(FOLDER)))]


def _device(context, name):
    place = _place(context, name)
    absent = unavailable("absent", "not on PCI")
    numa = _number(context, name, "device/numa_node")
    return {
        "name": name,
        "address": place[-1] if place else absent,
        "driver": _driver(context, name),
        "board": _text(context, name, "board_id"),
        "firmware": _text(context, name, "fw_ver"),
        "virtual_function": os.path.lexists(context.path("%s/%s/device/physfn" % (FOLDER, name))),
        "bridges": place[:-1] if place else absent,
        "numa_node": unavailable("absent", "-1") if numa == -1 else numa,
        "link_gts": _speed(context, name, "device/current_link_speed"),
        "link_width": _lanes(context, name, "device/current_link_width"),
        "max_link_gts": _speed(context, name, "device/max_link_speed"),
        "max_link_width": _lanes(context, name, "device/max_link_width"),
        "slot_max_link_width": _lanes(context, name, "device/../max_link_width"),
        "ports": _ports(context, name),
    }


def _speed(context, name, part):
    text = _text(context, name, part)
    return parse_speed(text) if isinstance(text, str) else text


def _lanes(context, name, part):
    text = _text(context, name, part)
    return parse_width(text) if isinstance(text, str) else text


def bridges(context):
    """Addresses of the PCI bridges above the adapters."""
    names = context.names(FOLDER)
    return {part for name in names for part in _place(context, name)[:-1]}


def _place(context, name):
    """The addresses on the way from the root port to an adapter, its own last; [] where it is not on PCI."""
    place = os.path.realpath(context.path("%s/%s/device" % (FOLDER, name)))
    parts = place.split(os.sep)
    return [part for part in parts if _ADDRESS.match(part)] if _ADDRESS.match(parts[-1]) else []


def _driver(context, name):
    try:
        link = os.readlink(context.path("%s/%s/device/driver" % (FOLDER, name)))
    except OSError as error:
        return from_error(error)
    return os.path.basename(link)


def _ports(context, name):
    numbers = context.names("%s/%s/ports" % (FOLDER, name))
    return [_port(context, name, int(text)) for text in numbers if text.isdecimal()]


def _port(context, name, number):
    def text(part):
        return _text(context, name, "ports/%d/%s" % (number, part))

    rate, lanes = parse_rate(text("rate"))
    gids, interfaces = _gids(context, name, number)
    return {
        "port": number,
        "state": _word(text("state")),  # "4: ACTIVE"
        "physical_state": _word(text("phys_state")),  # "5: LinkUp"
        "link_layer": text("link_layer"),
        "rate_gbps": rate,
        "lanes": lanes,
        "gids": gids,
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
    return text.partition(": ")[2] or text if isinstance(text, str) else text


def _gids(context, name, number):
    """(the filled ones of a port's first GIDs, the interfaces that they are of)."""
    filled, interfaces = [], []
    for index in range(GIDS):
        gid = _text(context, name, "ports/%d/gids/%d" % (number, index))
        if isinstance(gid, dict):
            if index == 0:
                return gid, []
            break
        if gid.strip("0:"):
            filled.append(index)
            interface = _text(context, name, "ports/%d/gid_attrs/ndevs/%d" % (number, index))
            if isinstance(interface, str) and interface and interface not in interfaces:
                interfaces.append(interface)
    return filled, interfaces


def _text(context, name, part):
    try:
        return context.read("%s/%s/%s" % (FOLDER, name, part), 4096).strip()
    except OSError as error:
        return from_error(error)


def _number(context, name, part):
    text = _text(context, name, part)
    try:
        return int(text) if isinstance(text, str) else text
    except ValueError:
        return unavailable("error", "not a number: %r" % text)


def library(context):
    """The libibverbs that a program of this process's environment would load, or that there is none."""
    places = [
        one for one in context.environ.get("LD_LIBRARY_PATH", "").split(":") if one[:1] == "/"
    ]
    for folder in places:
        if os.path.exists(context.path(os.path.join(folder, LIBRARY))):
            return os.path.join(folder, LIBRARY)
    try:
        cached = _CACHED.search(read(context.path(CACHE), _CACHE_LIMIT))
    except OSError:
        cached = None
    if cached:
        path = os.fsdecode(cached.group(1))
        if os.path.exists(context.path(path)):
            return path
    for folder in _folders(context):
        if os.path.exists(context.path(os.path.join(folder, LIBRARY))):
            return os.path.join(folder, LIBRARY)
    return unavailable("absent", "no %s" % LIBRARY)


def providers(context):
    """libibverbs' own drivers: "mlx5" of libmlx5-rdmav34.so."""
    found = set()
    for folder in _folders(context):
        names = context.names(os.path.join(folder, "libibverbs"))
        found.update(match.group(1) for match in map(_PROVIDER.match, names) if match)
    return sorted(found)


def _folders(context):
    """Where the loader looks anyway: Debian's folders are called after the architecture."""
    triple = os.uname().machine + "-linux-gnu"
    return ["%s/%s" % (top, triple) for top in ("/lib", "/usr/lib")] + list(LIBRARY_FOLDERS)
