"""Bare metal, a virtual machine, a container, WSL2: what this system runs in."""

import os

from ..facts import from_error
from . import mounts

DMI = "/sys/class/dmi/id/"
# Words in DMI's strings, and the hypervisor they stand for; the first that is found counts.
HYPERVISORS = (
    ("vmware", ("vmware",)),
    ("oracle", ("virtualbox", "innotek")),
    ("xen", ("xen",)),
    ("bhyve", ("bhyve",)),
    ("parallels", ("parallels",)),
    ("apple", ("apple virtualization",)),
    (
        "kvm",
        ("nutanix", "kubevirt", "openstack", "google compute engine", "amazon ec2")
        + ("alibaba cloud", "digitalocean", "hetzner", "scaleway", "tencent cloud")
        + ("rhev", "kvm", "qemu", "bochs"),
    ),
    ("microsoft", ("hyper-v", "virtual machine")),
)
# Azure's machines are distinguished from other Hyper-V ones by this tag alone.
CLOUDS = {"7783-7084-3265-9085-8269-3286-77": "azure", "oraclecloud": "oracle"}
CLOUDS.update({"amazon ec2": "amazon", "alibaba cloud": "alibaba", "tencent cloud": "tencent"})
CLOUDS.update({name: name for name in ("google", "digitalocean", "hetzner", "scaleway", "ovh")})
CLOCKS = (("kvm-clock", "kvm"), ("hyperv_clocksource", "microsoft"), ("xen", "xen"))
CLOCK_SOURCES = "/sys/devices/system/clocksource/clocksource0/available_clocksource"
# Parts of a control group's name, or of the directories below an overlay, by container engine.
GROUPS = (
    ("/kubepods", "kubernetes"),
    ("/docker", "docker"),
    ("/libpod", "podman"),
    ("/lxc", "lxc"),
    ("/machine.slice/machine-", "systemd-nspawn"),
)
LAYERS = (
    ("/docker/", "docker"),
    ("/containerd/", "containerd"),
    ("containers/storage/", "podman"),
    ("/enroot/", "enroot"),
)
POD_SECRETS = "/var/run/secrets/kubernetes.io"
POD = "/kubelet/pods/"  # of the kubelet's directory, /var/lib/kubelet or another
IDENTITY = ("/etc/hosts", "/etc/hostname", "/etc/resolv.conf")


def put_container(facts, context):
    for clue in (_by_pod, _by_files, _by_environment, _by_init, _by_mounts, _by_groups):
        try:
            found = clue(context)
        except OSError:
            continue
        if found:
            facts.put("container", *found)
            return
    facts.missing("container", "absent", "no sign of one")


def _by_pod(context):
    """Kubernetes comes before the engine that it starts containers with: what helps there is another."""
    if os.path.isdir(context.path(POD_SECRETS)):
        return "kubernetes", POD_SECRETS
    if any(mount.point in IDENTITY and POD in mount.root for mount in mounts.read(context)):
        return "kubernetes", mounts.TABLE
    return None


def _by_files(context):
    if os.path.exists(context.path("/run/.containerenv")):
        return "podman", "/run/.containerenv"
    if os.path.exists(context.path("/.dockerenv")) and not _leftover(context):
        return "docker", "/.dockerenv"
    if os.path.isdir(context.path("/.singularity.d")) and _apptainer(context):
        return "apptainer", "/.singularity.d"
    return None


def _leftover(context):
    """Is /.dockerenv only what an image left behind that now is a machine's root?

    Then the kernel's threads are there to see, and nothing is mounted over the files that docker
    brings into every container.
    """
    try:
        if context.read("/proc/2/comm").strip() != "kthreadd":
            return False
        return not any(mount.point in IDENTITY for mount in mounts.read(context))
    except OSError:
        return False


def _by_environment(context):
    environ = context.environ
    if _apptainer(context):
        return "apptainer", "environment"
    if "KUBERNETES_SERVICE_HOST" in environ and "KUBERNETES_SERVICE_PORT" in environ:
        return "kubernetes", "KUBERNETES_SERVICE_HOST"
    return None


def _apptainer(context):
    return "APPTAINER_CONTAINER" in context.environ or "SINGULARITY_CONTAINER" in context.environ


def _by_init(context):
    """What a container's manager tells its first process, or systemd as that process notes."""
    for source, separator in (("/run/systemd/container", "\n"), ("/proc/1/environ", "\0")):
        words = context.text(source).split(separator)
        names = [word.partition("=")[2] for word in words if word.startswith("container=")]
        names = names if "environ" in source else words
        if names and names[0].strip() not in ("", "wsl"):  # systemd calls WSL a container
            return names[0].strip(), source
    return None


def _by_mounts(context):
    for mount in mounts.read(context):
        if mount.filesystem == "fuse.lxcfs" and mount.point.startswith("/proc/"):
            return "lxc", mounts.TABLE
        if mount.point == "/" and mount.filesystem in ("overlay", "fuse.fuse-overlayfs"):
            layers = [option for option in mount.options if option.startswith("upperdir=")]
            for part, name in LAYERS:
                if layers and part in layers[0]:
                    return name, mounts.TABLE
    return None


def _by_groups(context):
    text = context.read("/proc/1/cgroup")
    for part, name in GROUPS:
        if part in text:
            return name, "/proc/1/cgroup"
    return None


def put_hypervisor(facts, context, cpu_flags):
    """cpu_flags: all of /proc/cpuinfo's; on x86 the flag "hypervisor" tells for sure."""
    if facts.get("wsl"):
        facts.put("hypervisor", "microsoft", "WSL")
        return
    x86 = "fpu" in cpu_flags
    name, source = _named(context, trusted="hypervisor" in cpu_flags)
    if x86 and "hypervisor" not in cpu_flags and source != "/sys/hypervisor/type":
        facts.missing("hypervisor", "absent", "the CPU flag is not set", "/proc/cpuinfo")
    elif name:
        facts.put("hypervisor", name, source)
    elif x86:
        facts.put("hypervisor", "unknown", "/proc/cpuinfo")
    else:
        facts.missing("hypervisor", "absent", "nothing names one", DMI)


def put_cloud(facts, context):
    names = ("sys_vendor", "product_name", "chassis_asset_tag", "bios_vendor")
    strings = " ".join(context.text(DMI + name) for name in names).lower()
    found = next((name for part, name in CLOUDS.items() if part in strings), None)
    if found and facts.get("hypervisor"):
        facts.put("cloud", found, DMI)
    else:
        facts.missing("cloud", "absent", "no cloud's name", DMI)


def _named(context, trusted):
    """(the hypervisor that something names, the source), or (None, "")."""
    source = "/sys/hypervisor/type"
    if context.text(source).strip():
        return context.text(source).strip(), source
    strings = " ".join(
        context.text(DMI + name)
        for name in ("sys_vendor", "product_name", "board_vendor", "bios_vendor")
    )
    bare = ".metal" in strings and not trusted  # Amazon's machines without a hypervisor
    for name, words in HYPERVISORS:
        if any(word in strings.lower() for word in words) and not bare:
            return name, DMI + "sys_vendor"
    clocks = context.text(CLOCK_SOURCES)
    for part, name in CLOCKS:
        if part in clocks:
            return name, CLOCK_SOURCES
    compatible = "/proc/device-tree/hypervisor/compatible"
    for part in ("kvm", "xen", "vmware"):
        if part in context.text(compatible):
            return part, compatible
    return None, ""


def put_wsl(facts, context):
    try:
        release = context.read("/proc/sys/kernel/osrelease").strip().lower()
    except OSError as error:
        facts.put("wsl", from_error(error))
        return
    device = os.path.exists(context.path("/dev/dxg"))
    facts.put(
        "wsl",
        device or "microsoft-standard" in release or release.endswith("-microsoft"),
        "/dev/dxg" if device else "/proc/sys/kernel/osrelease",
    )
    if facts.get("wsl"):
        facts.put("wsl_device", device, "/dev/dxg")
