"""The host's memory by NUMA nodes: which there are, which is the GPU's, and memory that lies on one."""

import ctypes
import mmap
import os
import platform
import re

from .... import files

_NODES = "/sys/devices/system/node"
_LIMIT = 1 << 20  # bytes of a file
_BIND, _DEFAULT = 2, 0  # MPOL_BIND, MPOL_DEFAULT
_SET_MEMPOLICY = {"x86_64": 238, "aarch64": 237, "ppc64le": 261}  # system call numbers
_MOST_NODES = 1024


class NumaNode(object):
    """A NUMA node that has processors and memory. allowed: those on which this process may run."""

    def __init__(self, number, processors, allowed):
        self.number = number
        self.processors = processors
        self.allowed = processors & allowed


def nodes(root=""):
    """The NumaNodes, by number; an empty list where the kernel does not say.

    Asked before this process moves anywhere.
    """
    try:
        names = os.listdir(root + _NODES)
        allowed = os.sched_getaffinity(0)
    except OSError:
        return []
    found = []
    for name in names:
        match = re.match(r"node(\d{1,4})$", name)
        if not match:
            continue
        processors = processors_of(_text(root + "%s/%s/cpulist" % (_NODES, name)))
        memory = re.search(r"MemTotal:\s{1,20}(\d{1,15})", _text(_meminfo(root, name)))
        # A GPU's own memory may be a node, too: it has no processors.
        if processors and memory and int(memory.group(1)):
            found.append(NumaNode(int(match.group(1)), processors, allowed))
    return sorted(found, key=lambda node: node.number)


def _meminfo(root, name):
    return root + "%s/%s/meminfo" % (_NODES, name)


def processors_of(text):
    """The set that "0-3,8" stands for."""
    found = set()
    for part in text.strip().split(","):
        match = re.match(r"(\d{1,6})(?:-(\d{1,6}))?$", part.strip())
        if match:
            first = int(match.group(1))
            found.update(range(first, int(match.group(2) or first) + 1))
    return found


def node_of(pci_address, root=""):
    """The number of the node that a device is attached to; None where the kernel does not say."""
    text = _text(root + "/sys/bus/pci/devices/%s/numa_node" % pci_address).strip()
    return int(text) if text.isdecimal() else None


def _text(path):
    try:
        return files.read(path, _LIMIT).decode("ascii", "replace")
    except OSError:
        return ""


def run_on(node):
    """This thread moves to the node's processors, as far as it may. Whether it could."""
    try:
        if node.allowed:
            os.sched_setaffinity(0, node.allowed)
        return bool(node.allowed)
    except OSError:
        return False


class HostMemory(object):
    """Memory of this process, touched, and with ``node`` on that node as far as the kernel lets it."""

    def __init__(self, size, node=None):
        self._map = mmap.mmap(-1, size)
        self._held = (ctypes.c_char * size).from_buffer(self._map)
        self.address = ctypes.addressof(self._held)
        self.size = size
        bound = False
        if node is not None:
            run_on(node)
            bound = _prefer(_BIND, 1 << node.number)
        try:
            ctypes.memset(self.address, 1, size)
        finally:
            if bound:
                _prefer(_DEFAULT, 0)

    def lies_on(self):
        """The node that most of it lies on; None where the kernel does not say."""
        begin = "%x " % self.address
        for line in _text("/proc/self/numa_maps").splitlines():
            if line.lstrip("0").startswith(begin):
                pages = re.findall(r" N(\d{1,4})=(\d{1,12})", line)
                most = max(pages, key=lambda one: int(one[1])) if pages else None
                return int(most[0]) if most else None
        return None

    def close(self):
        self._held = None
        self._map.close()


def _prefer(mode, mask):
    """Let the kernel take this thread's new pages from these nodes. Whether it lets us."""
    number = _SET_MEMPOLICY.get(platform.machine())
    if number is None:
        return False
    words = (ctypes.c_ulong * (_MOST_NODES // 64))()
    for place in range(len(words)):
        words[place] = mask >> 64 * place & (1 << 64) - 1
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        given = ctypes.byref(words) if mask else None
        # Containers mostly forbid it: then the node of the processor that touches a page first counts.
        return libc.syscall(number, mode, given, _MOST_NODES if mask else 0) == 0
    except (OSError, AttributeError):
        return False
