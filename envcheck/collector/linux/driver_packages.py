"""What is installed of the driver: libraries on disk, packages, the runfile installer; reboots due."""

import glob
import os
import re

from ..facts import from_error, unavailable

LIBRARY_FOLDERS = tuple(
    (
        "/usr/lib/x86_64-linux-gnu /usr/lib/aarch64-linux-gnu /usr/lib64 /usr/lib /usr/lib64/nvidia "
        "/usr/local/nvidia/lib64 /usr/local/nvidia/lib /usr/lib/wsl/lib /run/opengl-driver/lib "
        "/usr/local/cuda*/compat /usr/lib/wsl/drivers/*"
    ).split()
)
# Drivers have had three digits in front since 2007; "libcuda.so.1.1" (WSL, Tegra) says no version.
LIBRARY = re.compile(r"(libcuda|libnvidia-ml)\.so\.(\d{3,}\.\d[\d.]*)\Z")
LINKS = ("libcuda.so.1", "libnvidia-ml.so.1")

DPKG = "/var/lib/dpkg/status"
DPKG_LIMIT = 64 << 20  # bytes
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

# pacman's and Portage's databases: a folder for each package, named NAME-VERSION(-RELEASE).
FOLDERS = (("pacman", "/var/lib/pacman/local"), ("portage", "/var/db/pkg/x11-drivers"))
FOLDER_NAME = re.compile(r"([a-z][a-z0-9.-]*?)-((?:\d+:)?\d{3,}\.\d[^-]*(?:-[^-]+)?)\Z")
DRIVER_FOLDER = re.compile(
    r"nvidia(-open|-lts|-dkms|-utils|-drivers|-\d+xx)*\Z|linux-[a-z0-9-]*nvidia(-open)?\Z"
)

RUNFILE = ("/usr/bin/nvidia-uninstall", "/usr/local/bin/nvidia-uninstall")
RUNFILE_INSTALLER = "/usr/bin/nvidia-installer"
RUNFILE_STATE = "/var/lib/nvidia"
REBOOT = ("/run/reboot-required", "/var/run/reboot-required")


def driver_files(context):
    """The driver's libraries where the loader looks, and where its links of version 1 lead."""
    files = {}
    for pattern in LIBRARY_FOLDERS:
        for folder in sorted(glob.glob(context.path(pattern))):
            for name in _names(folder):
                path = os.path.join(folder, name)
                real = os.path.realpath(path)
                match = LIBRARY.match(name)
                if name in LINKS:
                    match = LIBRARY.match(os.path.basename(real))
                if match and os.path.isfile(real):
                    files.setdefault(
                        real,
                        {
                            "path": _inside(context, path),
                            "library": match.group(1),
                            "version": match.group(2),
                            "real_path": _inside(context, real),
                        },
                    )
    return [files[real] for real in sorted(files)]


def _names(folder):
    """The libraries in a folder, files with a version in front of links to them."""
    try:
        names = [
            name for name in os.listdir(folder) if name.startswith(("libcuda.", "libnvidia-ml."))
        ]
    except OSError:
        return []
    return sorted(names, key=lambda name: (name in LINKS, name))


def _inside(context, path):
    """A real path as this context's machine knows it."""
    root = os.path.realpath(context.root).rstrip("/")
    plain = context.root.rstrip("/")
    for prefix in (plain, root):
        if prefix and path.startswith(prefix + "/"):
            return path[len(prefix) :]
    return path


def driver_packages(context):
    """(the driver's packages, source) from dpkg's, pacman's or Portage's own files, or by asking rpm."""
    try:
        return parse_dpkg(context.read(DPKG, DPKG_LIMIT)), DPKG
    except OSError as error:
        if error.errno != 2:
            return from_error(error), DPKG
    for manager, folder in FOLDERS:
        if os.path.isdir(context.path(folder)):
            return parse_folders(manager, _listed(context, folder)), folder
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


def _listed(context, folder):
    try:
        return os.listdir(context.path(folder))
    except OSError:
        return []


def parse_folders(manager, names):
    """The driver's packages among folders that are named after a package and its version."""
    found = []
    for name in sorted(names):
        match = FOLDER_NAME.match(name)
        if match and DRIVER_FOLDER.match(match.group(1)):
            found.append({"manager": manager, "name": match.group(1), "version": match.group(2)})
    return found


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
