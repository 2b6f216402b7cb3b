"""Which interface this machine takes to the others, and which one a library takes by the machine's name."""

import os
import socket
import struct

_ADDRESS = 0x8915  # SIOCGIFADDR, linux/sockios.h
_SETTINGS = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")


def facts(other):
    """{"host", "resolves": the address of its name, "by_name": that address's interface, "towards": the one
    to ``other``, "address": its own there, "mtu", "link_mbit", "link_is_adapter", "settings"}; "" for what is
    not known."""
    own = addresses()
    host = socket.gethostname()
    resolves = _resolved(host)
    address = _source(other)
    found = {"host": host, "resolves": resolves, "by_name": own.get(resolves, "")}
    found.update(address=address, towards=own.get(address, ""))
    found["mtu"] = _number(found["towards"], "mtu")
    found["link_mbit"] = _number(found["towards"], "speed")
    found["link_is_adapter"] = _is_adapter(found["towards"])
    found["settings"] = {name: os.environ[name] for name in _SETTINGS if os.environ.get(name)}
    return found


def addresses():
    """{IPv4 address: interface}; of an interface with several the first."""
    import fcntl

    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for _place, name in socket.if_nameindex():
            try:
                request = struct.pack("256s", name.encode()[:15])
                answer = fcntl.ioctl(asked.fileno(), _ADDRESS, request)
            except OSError:
                continue  # it has none
            found[socket.inet_ntoa(answer[20:24])] = name
    return found


def _resolved(host):
    try:
        return socket.gethostbyname(host)
    except (OSError, UnicodeError):
        return ""


def _source(other):
    """The address of this machine from which packets to another go; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            asked.connect((other, 9))
            return asked.getsockname()[0]
        except OSError:
            return ""


def _number(interface, name):
    try:
        with open("/sys/class/net/%s/%s" % (interface or "-", name)) as file:
            return max(0, int(file.read(20)))
    except (OSError, ValueError):
        return 0  # a virtual one tells no speed


def _is_adapter(interface):
    """Whether it is a PCI device of a real machine. Others claim rates that are not theirs (veth: 10000)."""
    bus = os.path.realpath("/sys/class/net/%s/device/subsystem" % (interface or "-"))
    try:
        with open("/proc/cpuinfo") as file:
            return bus == "/sys/bus/pci" and " hypervisor" not in file.read(1 << 16)
    except (OSError, UnicodeDecodeError):
        return False
