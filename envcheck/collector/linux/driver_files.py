"""The driver's libraries on disk: their versions, and which of them a container's engine brought in."""

import glob
import os
import re

from ..facts import unavailable
from ..files import names
from . import mounts

LIBRARY_FOLDERS = tuple(
    (
        "/usr/lib/x86_64-linux-gnu /usr/lib/aarch64-linux-gnu /usr/lib64 /usr/lib /usr/lib64/nvidia "
        "/usr/local/nvidia/lib64 /usr/local/nvidia/lib /.singularity.d/libs /usr/lib/wsl/lib "
        "/run/opengl-driver/lib /usr/local/cuda*/compat /usr/lib/wsl/drivers/*"
    ).split()
)
# Drivers have had three digits in front since 2007; "libcuda.so.1.1" (WSL, Tegra) says no version.
LIBRARY = re.compile(r"(libcuda|libnvidia-ml)\.so\.(\d{3,}\.\d[\d.]*)\Z")
# What a container's root may be put together from: a mount of one of these brings more than a driver.
SYSTEM_FOLDERS = ("/", "/usr", "/usr/lib", "/usr/lib64", "/usr/local", "/nix", "/nix/store")
SOURCE = "the loader's directories"
LINKS = ("libcuda.so.1", "libnvidia-ml.so.1")


def put(facts, context):
    """The driver's libraries where the loader looks, and where its links of version 1 lead."""
    found = {}
    try:
        table = mounts.read(context)
    except OSError:
        table = None
    for pattern in LIBRARY_FOLDERS:
        for folder in sorted(glob.glob(context.path(pattern))):
            for name in _names(folder):
                path = os.path.join(folder, name)
                real = os.path.realpath(path)
                match = LIBRARY.match(name)
                if name in LINKS:
                    match = LIBRARY.match(os.path.basename(real))
                # An engine mounts the host's over empty ones, which images keep.
                if not os.path.isfile(real) or os.path.getsize(real) == 0:
                    continue
                inside = _inside(context, real)
                if match and real not in found:
                    found[real] = {
                        "path": _inside(context, path),
                        "library": match.group(1),
                        "version": match.group(2),
                        "real_path": inside,
                        "mounted": unavailable("error", mounts.TABLE)
                        if table is None
                        else _is_mounted(table, inside),
                    }
    facts.put("driver_files", [found[real] for real in sorted(found)], SOURCE)


def _is_mounted(table, path):
    mount = mounts.of(table, path)
    return mount is not None and mount.point not in SYSTEM_FOLDERS


def _names(folder):
    """The libraries in a folder, files with a version in front of links to them."""
    found = [one for one in names(folder) if one.startswith(("libcuda.", "libnvidia-ml."))]
    return sorted(found, key=lambda name: name in LINKS)


def _inside(context, path):
    """A real path as this context's machine knows it."""
    root = os.path.realpath(context.root).rstrip("/")
    plain = context.root.rstrip("/")
    for prefix in (plain, root):
        if prefix and path.startswith(prefix + "/"):
            return path[len(prefix) :]
    return path
