"""What NCCL writes with NCCL_DEBUG=INFO: version, settings, transports, algorithms, warnings.

Its words differ by version; seen: 2.2 to 2.32. What a version does not write is not reported.
"""

import re

# What is set for a run, on top of what the user has set.
ENVIRON = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,GRAPH,TUNING,ENV,NVLS"}

_VERSION = re.compile(r"NCCL version (\d{1,3}(?:\.\d{1,5}){1,3})(?:\+cuda(\d{1,3}\.\d{1,3}))?")
_SETTING = re.compile(r"\b(NCCL_[A-Z0-9_]{1,60}) set by environment to ([^\s]{1,200})")
_VIA = re.compile(
    r" via (direct shared memory|P2P/direct pointer|[A-Z0-9]{2,4}(?:/[\w-]{1,40}){0,4})"
)
_CHOICE = re.compile(r"(?:(\w{1,40}): )?(\d{1,20}) Bytes -> Algo (\w{1,20}) proto")
_WARNING = re.compile(r"NCCL WARN (.{1,400})|(P2P is disabled between .{1,200})")

_ALGORITHMS = ("Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT")
_OURS = set(ENVIRON) | {"NCCL_DEBUG_FILE"}
_MOST = 8  # lines, words
# Warnings that say nothing of the GPUs of one machine.
_HARMLESS = ("libibverbs", "libnccl-net", "ibv_", "NET/IB", "plugin")


def read(text):
    """{name: count, word or list of words} of all ranks' logs together."""
    found = {}
    version = _VERSION.search(text)
    if version:
        found["version"] = version.group(1)
        if version.group(2):
            found["built_cuda"] = version.group(2)
    settings = [
        "%s=%s" % (name, value.rstrip("."))
        for name, value in _SETTING.findall(text)
        if name not in _OURS
    ]
    transports = [_transport(one) for one in _VIA.findall(text)]
    transports = sorted(transports, key=transports.count, reverse=True)
    warnings = [" ".join((one or other).split()) for one, other in _WARNING.findall(text)]
    warnings = [line for line in warnings if not any(word in line for word in _HARMLESS)]
    lists = {"settings": settings, "transports": transports, "warnings": warnings}
    for name, words in lists.items():
        if words:
            found[name] = list(dict.fromkeys(words))[:_MOST]
    if "NVLS multicast support is available" in text:
        found["nvls"] = True
    found.update(_choices(text))
    return found


def _choices(text):
    """What was taken for an all-reduce of each size, and for the largest: {"algorithm", …}."""
    found, largest = {}, -1
    for operation, size, algorithm in _CHOICE.findall(text):
        if operation not in ("", "AllReduce"):
            continue
        name = _algorithm(algorithm)
        if int(size) >= largest:
            largest, found["algorithm"] = int(size), name
        if int(size) % (1 << 20) == 0:
            found["algorithm_%d_mib" % (int(size) >> 20)] = name
    return found


def _algorithm(word):
    """ "1" and "RING" are "Ring"."""
    if word.isdecimal():
        return _ALGORITHMS[int(word)] if int(word) < len(_ALGORITHMS) else word
    plain = word.replace("_", "").lower()
    return next((name for name in _ALGORITHMS if name.lower() == plain), word)


def _transport(words):
    """ "P2P/CUMEM", "P2P/IPC", "P2P/direct pointer", "SHM", "NET/IB", "NET/Socket"."""
    parts = words.split("/")
    return "SHM" if parts[0] in ("SHM", "direct shared memory") else "/".join(parts[:2])
