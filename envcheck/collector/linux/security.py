"""What keeps kernel modules and containers in check: Secure Boot, lockdown, SELinux."""

import os
import re

from ..facts import from_error

FIRMWARE = "/sys/firmware/efi"
SECURE_BOOT = FIRMWARE + "/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
LOCKDOWN = "/sys/kernel/security/lockdown"
SELINUX = "/sys/fs/selinux"


# Settings of the kernel: by which it keeps users from what containers without root need; of memory.
SETTINGS = (
    "vm.overcommit_memory",
    "kernel.numa_balancing",
    "user.max_user_namespaces",
    "kernel.unprivileged_userns_clone",
    "kernel.apparmor_restrict_unprivileged_userns",
)


def put_security(facts, context):
    found = []
    for name in SETTINGS:
        path = "/proc/sys/" + name.replace(".", "/")
        value = context.text(path).strip()
        if value:
            found.append({"name": name, "value": value, "source": path})
    if facts.get("wsl"):
        found += _wsl_settings(context)
    facts.put("settings", found, "/proc/sys")
    _put_secure_boot(facts, context)
    _put_lockdown(facts, context)
    _put_selinux(facts, context)


def _wsl_settings(context):
    """Whether .wslconfig keeps the GPU away; the path as Windows writes it, without a user's name."""
    for user in context.names("/mnt/c/Users"):
        text = context.text("/mnt/c/Users/%s/.wslconfig" % user)
        match = re.search(r"(?mi)^gpuSupport[ \t]*=[ \t]*(\w+)", text)
        if match:
            path = "%UserProfile%\\.wslconfig"
            return [{"name": "wsl2.gpuSupport", "value": match.group(1), "source": path}]
    return []


def _put_secure_boot(facts, context):
    if not os.path.isdir(context.path(FIRMWARE)):
        hidden = ", or hidden from this container" if facts.get("container") else ""
        facts.missing("secure_boot", "absent", "not booted by EFI" + hidden, FIRMWARE)
        return
    try:
        with open(context.path(SECURE_BOOT), "rb") as file:
            variable = file.read(16)
    except OSError as error:
        facts.put("secure_boot", from_error(error), SECURE_BOOT)
        return
    if len(variable) == 5:  # four bytes of attributes, and the value
        facts.put("secure_boot", variable[4] == 1, SECURE_BOOT)
    else:
        facts.missing("secure_boot", "error", "%d bytes instead of 5" % len(variable), SECURE_BOOT)


def _put_lockdown(facts, context):
    try:
        text = context.read(LOCKDOWN)
    except OSError as error:
        facts.put("lockdown", from_error(error), LOCKDOWN)
        return
    chosen = re.search(r"\[(\w+)\]", text)
    if chosen:
        facts.put("lockdown", chosen.group(1), LOCKDOWN)
    else:
        facts.missing("lockdown", "error", "not understood: " + text[:80], LOCKDOWN)


def _put_selinux(facts, context):
    try:
        text = context.read(SELINUX + "/enforce").strip()
        facts.put("selinux", "enforcing" if text == "1" else "permissive", SELINUX + "/enforce")
    except OSError as error:
        if os.path.isdir(context.path(SELINUX)):  # the kernel has it, and no policy is loaded
            facts.put("selinux", "disabled", SELINUX)
        else:
            facts.put("selinux", from_error(error), SELINUX)
