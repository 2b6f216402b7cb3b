"""The driver's services: installed or not, running or not, without asking systemd."""

import os
import re

from ..facts import unavailable

UNITS = ("/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
# Name, program, and the packages whose version is the service's.
SERVICES = (
    (
        "nvidia-fabricmanager",
        "nv-fabricmanager",
        re.compile(r"(nvidia-fabric-?manager|cuda-drivers-fabricmanager)(-\d+)?\Z"),
    ),
    ("nvidia-persistenced", "nvidia-persistenced", re.compile(r"nvidia-persistenced\Z")),
    ("nvidia-dcgm", "nv-hostengine", re.compile(r"datacenter-gpu-manager(-4-core)?\Z")),
    ("nvidia-cuda-mps-control", "nvidia-cuda-mps-control", None),
    ("nvidia-powerd", "nvidia-powerd", None),
    ("nvidia-gridd", "nvidia-gridd", None),
)
SETTINGS = {"nvidia-fabricmanager": "/usr/share/nvidia/nvswitch/fabricmanager.cfg"}
COMM = 15  # characters of a program's name that /proc/PID/comm holds


def services(context, packages):
    running = _running(context, {program for _, program, _ in SERVICES})
    found = []
    for name, program, pattern in SERVICES:
        found.append(
            {
                "name": name,
                "installed": _installed(context, name, program),
                "running": running if isinstance(running, dict) else program in running,
                "version": _version(packages, pattern),
                "masked": os.path.realpath(context.path("%s/%s.service" % (UNITS[0], name)))
                == os.devnull,
                "settings": _settings(context, SETTINGS.get(name)),
            }
        )
    return found


def _settings(context, path):
    """The lines NAME=VALUE of a configuration file; none where it cannot be read."""
    try:
        lines = context.read(path).splitlines() if path else []
    except OSError:
        return {}
    pairs = (line.partition("=") for line in lines if not line.lstrip().startswith("#"))
    return {name.strip(): value.strip() for name, equals, value in pairs if equals}


def _installed(context, name, program):
    places = ["%s/%s.service" % (folder, name) for folder in UNITS]
    places += ["/usr/bin/" + program, "/usr/sbin/" + program]
    return any(os.path.exists(context.path(path)) for path in places)


def _version(packages, pattern):
    if pattern is None:
        return unavailable("not-supported", "it belongs to the driver")
    for package in packages:
        if pattern.match(package["name"]):
            return package["version"]
    return unavailable("absent", "no package of it")


def _running(context, programs):
    """Those of the programs that run, or the reason why that is not known."""
    try:
        pids = [name for name in os.listdir(context.path("/proc")) if name.isdecimal()]
    except OSError as error:
        return unavailable("error", str(error))
    if "1" not in pids:
        return unavailable("no-permission", "/proc hides other users' processes")
    prefixes = {program[:COMM] for program in programs}
    running = set()
    for pid in pids:
        try:
            if context.read("/proc/%s/comm" % pid, 64).strip() in prefixes:
                command = context.read("/proc/%s/cmdline" % pid, 4096).partition("\0")[0]
                running.add(os.path.basename(command))
        except OSError:
            continue  # it ended meanwhile
    return running & programs
