"""Kernel modules that matter to a GPU: those loaded, on disk, in DKMS, and those kept out."""

import os
import re
import time

from ..facts import unavailable
from ..files import names as file_names
from .modinfo import read_modinfo

MODULES = "/lib/modules"
DKMS = "/var/lib/dkms"
CMDLINE = "/proc/cmdline"
# In the order in which modprobe prefers them: a file hides those of its name further down.
MODPROBE = (
    "/etc/modprobe.d",
    "/run/modprobe.d",
    "/usr/local/lib/modprobe.d",
    "/usr/lib/modprobe.d",
    "/lib/modprobe.d",
)
RELEVANT = re.compile(r"(nvidia|nouveau|nova|vfio|nvgpu|gdrdrv|nv_peer_mem)")
# The driver's main module; Debian's packages add the branch to its name.
MODULE_FILE = re.compile(
    r"nvidia(-srv|-current|-tesla(-\d+)?|-legacy-\w+)?(-open)?\.ko(\.(gz|xz|zst))?\Z"
)
UVM_FILE = re.compile(r"nvidia(-[a-z0-9-]+)?-uvm\.ko(\.(gz|xz|zst))?\Z")
NIXOS_MODULES = "/run/booted-system/kernel-modules/lib/modules"
WALK_LIMIT = 4000  # directories
PARAMETERS = 100  # more than nvidia-uvm has
OPTIONS = 100  # more than the driver has
LINES = 100
DECOMPRESSION = 0.5  # seconds for all compressed modules together


def loaded_modules(context):
    modules = []
    for line in context.read("/proc/modules").splitlines():
        name, _, rest = line.partition(" ")
        if not RELEVANT.match(name):
            continue
        module = {"name": name}
        state = re.search(r" (Live|Loading|Unloading)\b", rest)
        if state:
            module["state"] = state.group(1)
        try:
            module["version"] = context.read("/sys/module/%s/version" % name).strip()
        except OSError:
            module["version"] = unavailable("absent", "the module states none")
        modules.append(module)
    return modules


def uvm_parameters(context):
    """{name: value} of the loaded nvidia-uvm's parameters."""
    folder = "/sys/module/nvidia_uvm/parameters"
    names = context.names(folder)[:PARAMETERS]
    return {name[:64]: context.text("%s/%s" % (folder, name)).strip()[:64] for name in names}


def module_files(context, running):
    """The driver's module files of every kernel, the ``running`` one's first.

    Only where installers put them: under updates, extra, weak-updates and kernel/drivers/video.
    """
    folder = modules_folder(context)
    top = context.path(folder)
    kernels = sorted(os.listdir(top), key=lambda name: (name != running, name))
    deadline = time.monotonic() + DECOMPRESSION
    files = []
    for kernel in kernels:
        paths, uvm = _find_modules(os.path.join(top, kernel))
        for path in paths:
            module = {"kernel": kernel, "path": "%s/%s" % (folder, os.path.relpath(path, top))}
            module.update(read_modinfo(path, deadline))
            if uvm is not None:
                module["uvm"] = uvm
            files.append(module)
    return files


def modules_folder(context):
    """Where the kernels' modules are: NixOS has them in its store."""
    if not os.path.isdir(context.path(MODULES)) and os.path.isdir(context.path(NIXOS_MODULES)):
        return NIXOS_MODULES
    return MODULES


def kernels_installed(context):
    """Kernels with modules of their own; a left-over directory without them does not count."""
    top = context.path(modules_folder(context))
    names = sorted(os.listdir(top))
    return [name for name in names if os.path.isdir(os.path.join(top, name, "kernel"))]


def headers_installed(context):
    """Kernels whose headers are there to build a module with."""
    top = context.path(modules_folder(context))
    names = sorted(os.listdir(top))
    return [name for name in names if os.path.exists(os.path.join(top, name, "build/Makefile"))]


def _find_modules(kernel):
    """(paths of the driver's main module below /lib/modules/KERNEL, whether nvidia-uvm is there, too)."""
    places = (
        "updates extra extramodules weak-updates misc dkms video kernel/drivers/video "
        "kernel/drivers/char/drm"
    ).split()
    # Ubuntu's prebuilt modules lie in kernel/nvidia-BRANCH.
    names = file_names(os.path.join(kernel, "kernel"))
    places += ["kernel/" + name for name in names if name.startswith("nvidia")]
    found, uvm = [], False
    remaining = WALK_LIMIT
    for place in places:
        for folder, _, names in os.walk(os.path.join(kernel, place)):
            found += [os.path.join(folder, name) for name in names if MODULE_FILE.match(name)]
            uvm = uvm or any(UVM_FILE.match(name) for name in names)
            remaining -= 1
            if remaining <= 0:
                return sorted(found), uvm or None
    return sorted(found), uvm


def dkms_states(context):
    """The driver's entries in DKMS's own tree, MODULE/VERSION/KERNEL/ARCHITECTURE."""
    top = context.path(DKMS)
    states = []
    for module in sorted(name for name in os.listdir(top) if name.startswith("nvidia")):
        for version in _folders(os.path.join(top, module)):
            builds = _builds(os.path.join(top, module), version)
            states += [dict(build, module=module, version=version) for build in builds]
    return states


def _builds(module, version):
    """One entry for each kernel that a version was built for, or one that says it was only added."""
    builds = []
    for kernel in _folders(os.path.join(module, version)):
        if kernel in ("build", "source"):
            continue
        for architecture in _folders(os.path.join(module, version, kernel)):
            built = os.path.join(module, version, kernel, architecture)
            if not os.path.isdir(os.path.join(built, "module")):
                continue
            active = os.path.join(module, "kernel-%s-%s" % (kernel, architecture))
            installed = os.path.realpath(active) == os.path.realpath(built)
            builds.append({"kernel": kernel, "state": "installed" if installed else "built"})
    return builds or [{"kernel": unavailable("absent", "never built"), "state": "added"}]


def _folders(path):
    paths = [(name, os.path.join(path, name)) for name in file_names(path)]
    return [name for name, one in paths if os.path.isdir(one) and not os.path.islink(one)]


def kept_out(context):
    """The lines of modprobe.d and the kernel's command line that keep relevant modules out."""
    found = [(CMDLINE, name, word) for name, word in parse_cmdline(context.read(CMDLINE))]
    for path, verb, name, rest in _modprobe_lines(context):
        if _keeps_out(verb, name, rest):
            found.append((path, name, " ".join([verb, name] + rest)))
    return [
        {"path": path, "module": name, "line": line[:200]}
        for path, name, line in found
        if RELEVANT.match(name)
    ][:LINES]


def module_options(context):
    """What modprobe.d and the kernel's command line set of relevant modules, and where."""
    found = []
    for path, verb, name, rest in _modprobe_lines(context):
        if verb == "options" and RELEVANT.match(name):
            found += [(path, name, word) for word in rest]
    for word in context.text(CMDLINE).split():
        name, dot, option = word.partition(".")
        if dot and "=" in option and RELEVANT.match(name):
            found.append((CMDLINE, name.replace("-", "_"), option))
    texts = [(path, name) + option.partition("=")[::2] for path, name, option in found[:OPTIONS]]
    return [
        {"path": path, "module": name, "name": option[:64], "value": value.strip("\"'")[:400]}
        for path, name, option, value in texts
    ]


def _modprobe_lines(context):
    """[path, verb, module, the other words] of each line in modprobe.d."""
    seen = {}  # files by their names
    for folder in MODPROBE:
        for name in context.names(folder):
            if name.endswith(".conf"):
                seen.setdefault(name, "%s/%s" % (folder, name))
    lines = []
    for path in seen.values():
        for line in context.text(path).replace("\\\n", " ").splitlines():
            words = line.partition("#")[0].split()
            if len(words) > 1:
                lines.append((path, words[0], words[1].replace("-", "_"), words[2:]))
    return lines


def _keeps_out(verb, name, rest):
    if verb == "alias":
        return rest[:1] == ["off"]
    if verb == "install":
        return bool(rest) and os.path.basename(rest[0]) in ("true", "false")
    if verb == "options":
        return name == "nouveau" and "modeset=0" in rest
    return verb == "blacklist"


def parse_cmdline(text):
    """[(module that the kernel's command line keeps out, the word that does)]"""
    found = []
    for word in text.split():
        key, _, value = word.partition("=")
        # rd.driver.blacklist is about the initial RAM disk alone: the module is loaded later.
        if key in ("modprobe.blacklist", "module_blacklist"):
            found += [(name.replace("-", "_"), word) for name in value.split(",") if name]
        elif word == "nouveau.modeset=0":
            found.append(("nouveau", word))
    return found
