"""What is installed of the driver: packages, the runfile installer; reboots due."""

import os
import re

from ..facts import from_error, unavailable

DPKG = "/var/lib/dpkg/status"
DPKG_LIMIT = 64 << 20  # bytes
# Package managers that keep a directory NAME-VERSION for each package, and where a version begins.
FOLDERS = (
    ("pacman", "/var/lib/pacman/local", lambda words: len(words) - 2),  # VERSION-RELEASE
    (
        "portage",
        "/var/db/pkg/x11-drivers",
        lambda words: next((at for at, word in enumerate(words) if word[:1].isdigit()), 0),
    ),
)
RPM = "/usr/bin/rpm"
RPM_DEADLINE = 2
RPM_NAMES = tuple(
    (
        "nvidia* libnvidia* kmod-nvidia* akmod-nvidia* dkms-nvidia* xorg-x11-drv-nvidia* cuda- "
        "drivers* cuda-compat*"
    ).split()
)
PACKAGE = re.compile(
    r"(nvidia-(driver|headless|kernel|dkms|open|utils|fabric-?manager|persistenced|modprobe|compute"
    r"|tesla|legacy|smi|firmware)|libnvidia-(compute|ml|cfg|nscq|gpucomp)|libcuda1"
    r"|linux-(modules|objects|signatures)-nvidia|k?mod-nvidia|akmod-nvidia|dkms-nvidia"
    r"|xorg-x11-drv-nvidia|cuda-(drivers|compat))"
)
NOT_THE_DRIVER = re.compile(r"-local-repo-|-local-tegra-|^nvidia-driver-assistant")

RUNFILE = ("/usr/bin/nvidia-uninstall", "/usr/local/bin/nvidia-uninstall")
RUNFILE_INSTALLER = "/usr/bin/nvidia-installer"
RUNFILE_STATE = "/var/lib/nvidia"
REBOOT = ("/run/reboot-required", "/var/run/reboot-required")


def driver_packages(context):
    """(the driver's packages, source) from dpkg's own file, or by asking rpm."""
    try:
        return parse_dpkg(context.read(DPKG, DPKG_LIMIT)), DPKG
    except OSError as error:
        if error.errno != 2:
            return from_error(error), DPKG
    for manager, place, begins in FOLDERS:
        if context.names(place):
            return parse_names(manager, begins, context.names(place)), place
    if not os.path.exists(context.path(RPM)):
        return unavailable("absent", "no package manager that is known here"), DPKG
    result = context.run(
        [context.path(RPM), "-qa", "--qf", "%{NAME} %{VERSION}-%{RELEASE}\n"] + list(RPM_NAMES),
        RPM_DEADLINE,
    )
    if result.ok:
        return parse_rpm(result.stdout.decode("utf-8", "replace")), "rpm -qa"
    reason = "timeout" if result.outcome == "timeout" else "error"
    return unavailable(reason, "rpm " + result.describe()), "rpm -qa"


def parse_dpkg(text):
    """The driver's installed packages in dpkg's status file."""
    found = {}
    for match in re.finditer(r"^Package: (\S+)$", text, re.M):
        name = match.group(1)
        if not PACKAGE.match(name) or NOT_THE_DRIVER.search(name):
            continue
        end = text.find("\n\n", match.end())
        stanza = text[match.end() : end if end >= 0 else len(text)]
        version = re.search(r"^Version: (\S+)$", stanza, re.M)
        status = re.search(r"^Status: (\S+) \S+ (\S+)$", stanza, re.M)
        if version and status and status.group(2) not in ("not-installed", "config-files"):
            # A package of several architectures is one: held, or half installed, where any of them is.
            other = found.get((name, version.group(1)), {})
            whole = status.group(2) == "installed" and other.get("state")
            found[name, version.group(1)] = {
                "manager": "dpkg",
                "name": name,
                "version": version.group(1),
                "state": whole or status.group(2),
                "held": status.group(1) == "hold" or other.get("held", False),
            }
    return [found[key] for key in sorted(found)]


def parse_names(manager, begins, names):
    """The driver's packages by the names of directories."""
    found = []
    for words in (name.split("-") for name in sorted(names)):
        at = begins(words)
        name, version = "-".join(words[:at]), "-".join(words[at:])
        if at > 0 and words[0] and "nvidia" in name and not NOT_THE_DRIVER.search(name):
            found.append({"manager": manager, "name": name, "version": version})
    return found


def parse_rpm(text):
    """The driver's packages in lines of "NAME VERSION-RELEASE"."""
    found = set()
    for line in text.splitlines():
        words = line.split()
        if len(words) == 2 and PACKAGE.match(words[0]) and not NOT_THE_DRIVER.search(words[0]):
            found.add((words[0], words[1]))
    return [{"manager": "rpm", "name": name, "version": version} for name, version in sorted(found)]


def runfile_installer(context):
    """Where the runfile installer's uninstaller is: what it installed no package manager knows."""
    places = list(RUNFILE)
    if os.path.isdir(context.path(RUNFILE_STATE)):
        places.append(RUNFILE_INSTALLER)
    for path in places:
        if os.path.exists(context.path(path)):
            return path
    return unavailable("absent", "no %s" % RUNFILE[0])


def reboot_required(context):
    """Whether the distribution asks for a reboot; only Debian's relatives say so in a file."""
    if any(os.path.exists(context.path(path)) for path in REBOOT):
        return True
    if os.path.exists(context.path(DPKG)):
        return False
    return unavailable("not-supported", "this distribution keeps no such file")


def reboot_required_by(context):
    """The packages that ask for it."""
    try:
        text = context.read(REBOOT[0] + ".pkgs")
    except OSError as error:
        return from_error(error)
    return sorted({line.strip() for line in text.splitlines() if line.strip()})
