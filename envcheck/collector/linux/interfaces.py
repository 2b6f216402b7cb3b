"""Network interfaces as the kernel lists them, without a packet sent."""

import os
import re

from ..facts import from_error, unavailable

FOLDER = "/sys/class/net"
ROUTES = "/proc/net/route"
IPV6 = "/proc/net/if_inet6"
LIMIT = 256
_UP, _LOOPBACK = 0x1, 0x8
_TUNNELS = ("vxlan", "wireguard", "geneve", "gre", "gretap", "ipip", "sit", "ip6tnl", "macsec")


def interfaces(context):
    """Every interface, in the kernel's order. Raises OSError."""
    top = context.path(FOLDER)
    names = [name for name in os.listdir(top) if os.path.isdir(os.path.join(top, name))]
    ipv4, ipv6 = _names(context, ROUTES, 0), _names(context, IPV6, -1)
    found = [_interface(context, name, ipv4, ipv6) for name in sorted(names)[:LIMIT]]
    return sorted(found, key=lambda one: (str(one["index"]).zfill(9), one["name"]))


def _interface(context, name, ipv4, ipv6):
    folder = "%s/%s/" % (FOLDER, name)
    flags = context.fact(folder + "flags", lambda text: int(text, 16))
    number = isinstance(flags, int)
    up = bool(flags & _UP) if number else flags
    # As IFF_RUNNING, which the file with the flags leaves out.
    runs = up and context.text(folder + "operstate").strip() in ("up", "unknown")
    kind = _kind(context, folder, name, flags if number else 0)
    speed = context.fact(folder + "speed", int)
    return {
        "name": name,
        "index": context.fact(folder + "ifindex", int),
        "kind": kind,
        "members": _members(context, folder, kind),
        "up": up,
        "running": runs if number else flags,
        "ipv4": name in ipv4 if isinstance(ipv4, set) else ipv4,
        "ipv6": name in ipv6 if isinstance(ipv6, set) else ipv6,
        "speed_mbit": speed if isinstance(speed, int) and speed > 0 else unavailable("absent"),
        "mtu": context.fact(folder + "mtu", int),
    }


def _kind(context, folder, name, flags):
    files = context.names(folder)
    if flags & _LOOPBACK or name == "lo":
        return "loopback"
    for part, kind in (("bridge", "bridge"), ("bonding", "bond"), ("device", "physical")):
        if part in files:
            return kind
    declared = re.search(r"^DEVTYPE=(\w+)", context.text(folder + "uevent"), re.M)
    if declared and declared.group(1) == "vlan":
        return "vlan"
    tunnel = "tun_flags" in files or (declared and declared.group(1) in _TUNNELS)
    return "tunnel" if tunnel else "virtual"


def _members(context, folder, kind):
    """What a bridge, a bond or a VLAN stands on."""
    if kind == "bond":
        return context.text(folder + "bonding/slaves").split()
    if kind == "bridge":
        return context.names(folder + "brif")[:LIMIT]
    return [part[6:] for part in context.names(folder) if part.startswith("lower_")]


def _names(context, path, column):
    """The interfaces that lines of ``path`` name; or why that is not known."""
    try:
        lines = [line.split() for line in context.read(path).splitlines()]
    except OSError as error:
        return from_error(error)
    return {line[column] for line in lines if line}
