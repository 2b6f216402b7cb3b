"""The operating system, CPU, memory, limits and disks that a GPU stack runs on."""

import os
import re

from .. import account
from ..facts import Facts, from_error, unavailable
from ..linux import disk, limits, security, virtualization

SUPPLIES = "/sys/class/power_supply"
DOCUMENT = "machine"
IN_CONTAINER = True
DEADLINE = 5

# The instruction sets that wheels, or the libraries in them, are built for or choose between.
CPU_FLAGS = frozenset(
    (
        "sse4_1 sse4_2 avx avx2 fma f16c avx512f avx512bw avx512_vnni avx512_bf16 amx_tile asimd "
        "asimddp asimdhp sve sve2 bf16 i8mm"
    ).split()
)


def collect(context):
    facts = Facts("host probe")
    _put_identity(facts, context)
    _put_system(facts, context)
    facts.put("on_battery", _on_battery(context), SUPPLIES)
    _put_libc(facts, context)
    flags = _put_cpu(facts, context)
    limits.put_memory(facts, context)
    limits.put_cpus(facts, context)
    limits.put_cgroup(facts, context)
    limits.put_resources(facts, context)
    virtualization.put_wsl(facts, context)
    virtualization.put_container(facts, context)
    virtualization.put_hypervisor(facts, context, flags)
    virtualization.put_cloud(facts, context)
    security.put_security(facts, context)
    facts.put("disks", disk.disks(context, account.home(context)), disk.SOURCE)
    return facts


def _put_identity(facts, context):
    source = "/proc/sys/kernel/hostname"
    facts.attempt("hostname", source, lambda: context.read(source).strip())
    facts.put("is_root", os.geteuid() == 0, "geteuid")
    name = account.name(context)
    if name:
        known = account.entry(context) is not None
        facts.put("user", name, account.PASSWD if known else "environment")
    else:
        facts.missing("user", "absent", "user id %d has no name" % os.geteuid(), account.PASSWD)


def _put_system(facts, context):
    kernel = "/proc/sys/kernel/osrelease"
    facts.attempt("kernel", kernel, lambda: context.read(kernel).strip())
    facts.put("architecture", os.uname().machine, "uname")
    for source in ("/etc/os-release", "/usr/lib/os-release"):
        try:
            release = parse_os_release(context.read(source))
            break
        except OSError as error:
            release, trouble = {}, from_error(error)
    else:
        for name in ("os_id", "os_like", "os_version", "os_name"):
            facts.put(name, trouble, "/etc/os-release")
        return
    for name, key in (("os_id", "ID"), ("os_version", "VERSION_ID"), ("os_name", "PRETTY_NAME")):
        value = release.get(key) or unavailable("absent", "no %s in it" % key)  # a rolling release
        facts.put(name, value, source)
    image = ["ostree"] * os.path.exists(context.path("/run/ostree-booted"))
    facts.put("os_like", image + release.get("ID_LIKE", "").split()[:8], source)


def _on_battery(context):
    """Whether the machine has a mains adapter, and it is not plugged in."""
    online = []
    for name in context.names(SUPPLIES):
        try:
            if context.read("%s/%s/type" % (SUPPLIES, name)).strip() == "Mains":
                online.append(context.read("%s/%s/online" % (SUPPLIES, name)).strip())
        except OSError:
            continue  # it was unplugged meanwhile
    return bool(online) and "1" not in online


def parse_os_release(text):
    """The variables of an os-release(5) text."""
    values = {}
    for line in text.splitlines():
        key, sign, value = line.strip().partition("=")
        if not sign or key.startswith("#"):
            continue
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
            value = re.sub(r"\\([\"'$`\\])", r"\1", value[1:-1])
        values[key] = value
    return values


def _put_libc(facts, context):
    try:
        words = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()
    except (OSError, ValueError):
        words = []  # another C library does not know the name
    if len(words) == 2 and words[0] == "glibc":
        facts.put("libc", "glibc", "confstr(CS_GNU_LIBC_VERSION)")
        facts.put("glibc", words[1], "confstr(CS_GNU_LIBC_VERSION)")
        return
    loader = _musl_loader(context)
    if loader:
        facts.put("libc", "musl", loader)
        facts.missing("glibc", "absent", "the C library is musl", loader)
    else:
        facts.missing("libc", "error", "neither glibc nor musl was recognised")
        facts.missing("glibc", "error", "the C library does not say")


def _musl_loader(context):
    names = context.names("/lib")
    return next(("/lib/" + name for name in names if name.startswith("ld-musl-")), None)


def _put_cpu(facts, context):
    """Put the model and the flags that matter; returns all flags, as a set."""
    source = "/proc/cpuinfo"
    try:
        # One CPU's entry is enough; the kernel would gather hundreds of them.
        text = context.read(source, 16384)
    except OSError as error:
        facts.put("cpu_model", from_error(error), source)
        facts.put("cpu_flags", from_error(error), source)
        return set()
    entry = parse_cpuinfo(text)
    implementer, part = entry.get("CPU implementer"), entry.get("CPU part")
    model = entry.get("model name") or entry.get("cpu")
    if not model and implementer and part:
        model = "implementer %s, part %s" % (implementer, part)
    facts.put("cpu_model", model or unavailable("absent", "no model name in it"), source)
    words = entry.get("flags") or entry.get("Features")
    if words is None:
        facts.missing("cpu_flags", "absent", "no flags in it", source)
        return set()
    flags = set(words.split())
    facts.put("cpu_flags", sorted(flags & CPU_FLAGS), source)
    return flags


def parse_cpuinfo(text):
    """The first value of each key of /proc/cpuinfo, whose last line may be cut off."""
    entry = {}
    for line in text.splitlines()[:-1] if not text.endswith("\n") else text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            entry.setdefault(key.strip(), value.strip())
    return entry
