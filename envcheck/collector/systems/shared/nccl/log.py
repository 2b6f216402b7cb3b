"""What NCCL writes with NCCL_DEBUG=INFO: version, settings, transports, algorithms, channels, warnings.

Its words differ by version; seen: 2.2 to 2.32. What a version does not write is not told.
"""

import re

# What is set for a run, on top of what the user has set.
ENVIRON = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,GRAPH,TUNING,ENV,NVLS"}

_VERSION = re.compile(r"NCCL version (\d{1,3}(?:\.\d{1,5}){1,3})(?:\+cuda(\d{1,3}\.\d{1,3}))?")
_SETTING = re.compile(r"\b(NCCL_[A-Z0-9_]{1,60}) set by environment to ([^\s]{1,200})")
_VIA = re.compile(
    r" via (direct shared memory|P2P/direct pointer|[A-Z0-9]{2,4}(?:/[\w-]{1,40}){0,4})"
)
_CHANNELS = re.compile(r"\b(\d{1,4}) coll channels\b")
_OLD_CHANNELS = re.compile(r"\bChannel \d{1,4}/(\d{1,4}) :(?: +\d{1,4}){2}")
_CHOICE = re.compile(r"(?:(\w{1,40}): )?(\d{1,20}) Bytes -> Algo (\w{1,20}) proto (\w{1,20})")
_WARNING = re.compile(r"NCCL WARN (.{1,400})")
_NO_P2P = re.compile(r"P2P is disabled between .{1,200}")

_ALGORITHMS = ("Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT")
_PROTOCOLS = ("LL", "LL128", "Simple")
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
    settings = ["%s=%s" % (name, value.rstrip(".")) for name, value in _SETTING.findall(text)]
    settings = [one for one in settings if one.partition("=")[0] not in _OURS]
    transports = [_transport(one) for one in _VIA.findall(text)]
    channels = [int(one) for one in _CHANNELS.findall(text) or _OLD_CHANNELS.findall(text)]
    warnings = [" ".join(one.split()) for one in _WARNING.findall(text) + _NO_P2P.findall(text)]
    if channels:
        found["channels"] = max(channels)
    for name, words in (
        ("settings", settings),
        ("transports", sorted(transports, key=transports.count, reverse=True)),
        ("warnings", [one for one in warnings if not _is_harmless(one)]),
    ):
        if words:
            found[name] = _each_once(words)[:_MOST]
    if "NVLS multicast support is available" in text:
        found["nvls"] = True
    found.update(_choices(text))
    return found


def _choices(text):
    """What was taken for an all-reduce of each size, and for the largest: {"algorithm", "protocol", …}."""
    found, largest = {}, -1
    for operation, size, algorithm, protocol in _CHOICE.findall(text):
        if operation not in ("", "AllReduce"):
            continue
        if int(size) >= largest:
            largest = int(size)
            found["algorithm"] = _named(algorithm, _ALGORITHMS)
            found["protocol"] = _named(protocol, _PROTOCOLS)
        if int(size) % (1 << 20) == 0:
            found["algorithm_%d_mib" % (int(size) >> 20)] = _named(algorithm, _ALGORITHMS)
    return found


def _named(word, names):
    """ "1" and "RING" are "Ring"."""
    if word.isdecimal():
        return names[int(word)] if int(word) < len(names) else word
    plain = word.replace("_", "").lower()
    return next((name for name in names if name.lower() == plain), word)


def _transport(words):
    """ "P2P/CUMEM", "P2P/IPC", "P2P/direct pointer", "SHM", "NET/IB", "NET/Socket"."""
    if words == "direct shared memory":
        return "SHM"
    parts = words.split("/")
    if parts[0] == "SHM":
        return "SHM"
    told = "/".join(parts[:2])
    return told + "/GDRDMA" if "GDRDMA" in parts else told


def _is_harmless(line):
    return any(word in line for word in _HARMLESS)


def _each_once(words):
    return sorted(set(words), key=words.index)
