"""Which interface this machine takes to the others, and which one a library takes by the machine's name."""

import os
import socket
import struct

_ADDRESS = 0x8915  # SIOCGIFADDR, linux/sockios.h
SETTINGS = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "HOROVOD_GLOO_IFACE")


def facts(other):
    """{"host", "resolves": the address of its name, "by_name": that address's interface, "towards": the one
    to ``other``, "address": its own there, "mtu", "link_mbit", "link_is_adapter", "settings"}; "" and 0 for
    what is not known."""
    own, host = addresses(), socket.gethostname()
    resolves, address = _asked(socket.gethostbyname, host, ""), _asked(_source, other, "")
    towards = own.get(address, "")
    folder = "/sys/class/net/%s/" % (towards or "-")
    found = {"host": host, "resolves": resolves, "address": address, "towards": towards}
    found.update(by_name=own.get(resolves, ""), mtu=_asked(_number, folder + "mtu", 0))
    found["link_mbit"] = _asked(_number, folder + "speed", 0)  # a virtual one tells none
    found["link_is_adapter"] = _asked(_is_adapter, folder, False)
    found["settings"] = {name: os.environ[name] for name in SETTINGS if os.environ.get(name)}
    return found


def _asked(function, argument, default):
    try:
        return function(argument)
    except (OSError, ValueError):
        return default


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


def _source(other):
    """The address of this machine from which packets to another go; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        asked.connect((other, 9))
        return asked.getsockname()[0]


def _number(path):
    with open(path) as file:
        return max(0, int(file.read(20)))


def _is_adapter(folder):
    """Whether it is a PCI device of a real machine. Others claim rates that are not theirs (veth: 10000)."""
    with open("/proc/cpuinfo") as file:
        is_real = " hypervisor" not in file.read(1 << 16)
    return is_real and os.path.realpath(folder + "device/subsystem") == "/sys/bus/pci"
