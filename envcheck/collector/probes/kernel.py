"""The kernel side of the driver: modules, device nodes, what is installed, services, kernel log."""

from ..facts import Facts, from_error
from ..linux import driver_files
from ..linux.device_nodes import device_nodes
from ..linux.driver_packages import (
    driver_packages,
    reboot_required,
    reboot_required_by,
    runfile_installer,
)
from ..linux.driver_version import GPUS, driver_parameters, excluded_gpus, parse_version
from ..linux.kernel_log import read_log
from ..linux.module_builds import build_logs
from ..linux.modules import (
    dkms_states,
    headers_installed,
    kept_out,
    kernels_installed,
    loaded_modules,
    module_files,
    module_options,
    uvm_parameters,
)
from ..linux.services import services
from ..linux.udev import udev_rules

DOCUMENT = "machine"
IN_CONTAINER = True
DEADLINE = 6

RELEASE = "/proc/sys/kernel/osrelease"
VERSION = "/proc/driver/nvidia/version"
MODULES = "/lib/modules"


def collect(context):
    facts = Facts(source="/proc, /sys and /dev")
    facts.attempt("release", RELEASE, _release, context)
    facts.attempt("modules", "/proc/modules", loaded_modules, context)
    _put_loaded_driver(context, facts)
    facts.put("driver_parameters", driver_parameters(context), "/proc/driver/nvidia/params")
    facts.put("excluded_gpus", excluded_gpus(context), GPUS)
    facts.put("uvm_parameters", uvm_parameters(context), "/sys/module/nvidia_uvm/parameters")
    facts.attempt("kernels_installed", MODULES, kernels_installed, context)
    facts.attempt("headers", MODULES, headers_installed, context)
    facts.attempt("module_files", MODULES, module_files, context, facts.get("release"))
    facts.attempt("dkms", "/var/lib/dkms", dkms_states, context)
    facts.attempt("build_logs", "/var/lib/dkms", build_logs, context)
    facts.attempt("kept_out", "modprobe.d and /proc/cmdline", kept_out, context)
    facts.put("udev_rules", udev_rules(context), "/etc/udev/rules.d and others")
    facts.attempt("module_options", "modprobe.d and /proc/cmdline", module_options, context)
    facts.attempt("device_nodes", "/dev", device_nodes, context)
    driver_files.put(facts, context)
    packages, source = driver_packages(context)
    facts.put("driver_packages", packages, source)
    facts.put("runfile_installer", runfile_installer(context), "/usr/bin")
    facts.put("reboot_required", reboot_required(context), "/run/reboot-required")
    facts.put("reboot_required_by", reboot_required_by(context), "/run/reboot-required.pkgs")
    found = services(context, facts.get("driver_packages") or [])
    facts.put("services", found, "/proc, systemd units and /usr/bin")
    events, source = read_log(context)
    facts.put("log", events, source)
    return facts


def _release(context):
    return context.read(RELEASE).strip()


def _put_loaded_driver(context, facts):
    """The loaded driver's version and flavour, by its own words."""
    try:
        version, flavour = parse_version(context.read(VERSION))
    except OSError as error:
        version = flavour = from_error(error)
    facts.put("driver_version", version, VERSION)
    facts.put("driver_flavour", flavour, VERSION)
