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
    flags = _number(context, name, "flags", 16)
    number = isinstance(flags, int)
    kind = _kind(context, name, flags if number else 0)
    speed = _number(context, name, "speed")
    return {
        "name": name,
        "index": _number(context, name, "ifindex"),
        "kind": kind,
        "members": _members(context, name, kind),
        "up": bool(flags & _UP) if number else flags,
        "running": _is_running(context, name, flags) if number else flags,
        "ipv4": name in ipv4 if isinstance(ipv4, set) else ipv4,
        "ipv6": name in ipv6 if isinstance(ipv6, set) else ipv6,
        "speed_mbit": speed if isinstance(speed, int) and speed > 0 else unavailable("absent"),
        "mtu": _number(context, name, "mtu"),
    }


def _is_running(context, name, flags):
    """As IFF_RUNNING, which the file with the flags leaves out."""
    return bool(flags & _UP) and _text(context, name, "operstate").strip() in ("up", "unknown")


def _kind(context, name, flags):
    def has(part):
        return os.path.lexists(context.path("%s/%s/%s" % (FOLDER, name, part)))

    if flags & _LOOPBACK or name == "lo":
        return "loopback"
    for part, kind in (("bridge", "bridge"), ("bonding", "bond"), ("device", "physical")):
        if has(part):
            return kind
    declared = re.search(r"^DEVTYPE=(\w+)", _text(context, name, "uevent"), re.M)
    if declared and declared.group(1) == "vlan":
        return "vlan"
    if has("tun_flags") or (declared and declared.group(1) in _TUNNELS):
        return "tunnel"
    return "virtual"


def _members(context, name, kind):
    """What a bridge, a bond or a VLAN stands on."""
    folder = context.path("%s/%s" % (FOLDER, name))
    if kind == "bond":
        return _text(context, name, "bonding/slaves").split()
    try:
        if kind == "bridge":
            return sorted(os.listdir(os.path.join(folder, "brif")))[:LIMIT]
        return sorted(part[6:] for part in os.listdir(folder) if part.startswith("lower_"))
    except OSError:
        return []


def _names(context, path, column):
    """The interfaces that lines of ``path`` name; or why that cannot be told."""
    try:
        lines = [line.split() for line in context.read(path).splitlines()]
    except OSError as error:
        return from_error(error)
    return {line[column] for line in lines if line}


def _text(context, name, part):
    try:
        return context.read("%s/%s/%s" % (FOLDER, name, part), 4096)
    except OSError:
        return ""


def _number(context, name, part, base=10):
    try:
        return int(context.read("%s/%s/%s" % (FOLDER, name, part), 64), base)
    except OSError as error:
        return from_error(error)
    except ValueError:
        return unavailable("error", "not a number")
