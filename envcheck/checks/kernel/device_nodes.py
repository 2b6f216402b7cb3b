"""Checks on the driver's device nodes: there, usable by this user, and the one for unified memory."""

from __future__ import annotations

from ...facts.kernel import DeviceNode
from ..container_start import start_with_gpus
from ..containers import DEVICES_FOR_CONTAINERS
from ..driver_on_disk import (
    driver_packages,
    install_driver,
    installed_version,
    modules_gone,
    uvm_on_disk,
)
from ..driver_state import HOLDERS, REBOOT, container, then_reboot
from ..driver_upgrade import MODULE_PACKAGE
from ..nvidia_devices import (
    GPU_NODE,
    host_facts,
    is_loaded,
    kernel_facts,
    mode_bits,
)
from ..reading import CudaDriver, Gpu, Kernel, Nvml, Skip, SnapshotView, facts_or, known, need
from ..system_commands import on_system
from ..verdicts import (
    Cause,
    Finding,
    Passed,
    Remedy,
    Verdict,
    Verdicts,
    about_file,
    about_gpu,
    check,
    fail,
    fill_in,
    warn,
    word,
)

# How a container's user gets a group of the host's.
_GROUPS = {
    "docker": "docker run --gpus all --group-add {group} " + fill_in("IMAGE", "your image"),
    "podman": "podman run --group-add keep-groups --device nvidia.com/gpu=all "
    + fill_in("IMAGE", "your image"),
    "kubernetes": "kubectl explain pod.spec.securityContext.supplementalGroups   # {group}",
}
_CONTROL = "/dev/nvidiactl"
_UVM = "/dev/nvidia-uvm"
_NO_DEVICE = 100
_OF_A_GROUP = (
    '"options nvidia NVreg_DeviceFileMode=0660'
    ' NVreg_DeviceFileGID=$(getent group video | cut -d: -f3)"'
)
_AGAIN = "Start the container again, with the GPUs: few engines add nodes to a running one."
_MAKE = "Make the nodes; nvidia-modprobe (setuid root) or nvidia-persistenced does it at each boot."

LACKING = fail(
    "gpu-node-missing",
    "has no device node",
    "There is no {paths}: CUDA does not find the GPU.",
    _MAKE,
)
NO_NODES = fail(
    "nodes-missing",
    "the driver's device nodes are missing",
    "There is no {path}: no program reaches the driver, though its module is loaded.",
    _MAKE,
    "sudo nvidia-modprobe -c 0 -u",
    "sudo systemctl enable --now nvidia-persistenced",
)
CLOSED = fail(
    "nodes-closed",
    "the GPUs' device nodes are closed to this user",
    "This user may not read and write the driver's device nodes: no program of this user finds a"
    " GPU.",
)
SOME_CLOSED = warn(
    "some-nodes-closed",
    "some GPUs' device nodes are closed to this user",
    "This user may not read and write some GPUs' device nodes: programs of this user do not find"
    " those GPUs.",
)
CGROUP = fail(
    "device-cgroup",
    "a device cgroup keeps this process off the GPUs",
    "A device cgroup keeps this process off the GPUs, though the nodes are open to all: no"
    " program that is started here finds a GPU.",
)


@check(
    "KRN-006",
    title="The device nodes exist, and this user may use them",
    causes=[LACKING, NO_NODES, CLOSED, SOME_CLOSED, CGROUP],
    about="Programs reach the GPU through /dev/nvidiactl and one /dev/nvidiaN for each GPU. They are made"
    " when the driver is first used; in a container, when it is started.",
    sources=["nvidia-container-toolkit#33; NVIDIA driver README, device node access"],
    follows=("PCI-001", "PCI-002", "KRN-001", "KRN-002", "ENV-002"),
)
def nodes_usable(view: SnapshotView) -> Verdicts:
    kernel = kernel_facts(view)
    if is_loaded(kernel) is False:
        raise Skip("the nvidia module is not loaded")
    nodes = need(kernel.device_nodes, "the device nodes")
    control = [node for node in nodes if node.path == _CONTROL]
    gpus = [node for node in nodes if GPU_NODE.match(node.path)]
    if not control or not gpus:
        yield _missing(view, "/dev/nvidia0" if control else _CONTROL)
        return
    if lacking := _lacking(view, {node.path for node in gpus}):
        yield _without_node(view, lacking)
        return
    closed = [node for node in control + gpus if not node.usable]
    if closed and not _confined(view) and all(map(_open_to_all, closed)):
        yield _by_a_cgroup(view, closed, gpus)
    elif closed:
        everything = control[0] in closed or len(closed) == len(gpus)
        yield _closed(view, CLOSED if everything else SOME_CLOSED, closed)
    else:
        yield Passed(f"{_CONTROL} and {len(gpus)} of /dev/nvidiaN, mode {gpus[0].mode}")


def _again(view: SnapshotView) -> Remedy | None:
    """In a container, what gives it its nodes."""
    return start_with_gpus(view, _AGAIN) if container(view) else None


def _listed(view: SnapshotView) -> list[Gpu]:
    return known(facts_or(view.machine.nvml, Nvml).gpus) or []


def _lacking(view: SnapshotView, paths: set[str]) -> dict[str, Gpu]:
    """The GPUs that NVML lists and CUDA does not find, by the node that they lack."""
    devices = known(facts_or(view.machine.cuda, CudaDriver).devices)
    if devices is None:
        return {}
    seen = {known(device.pci_address) for device in devices}
    nodes = {
        f"/dev/nvidia{known(gpu.minor_number)}": gpu
        for gpu in _listed(view)
        if known(gpu.minor_number) is not None and known(gpu.pci_address) not in (None, *seen)
    }
    return {path: gpu for path, gpu in nodes.items() if path not in paths}


def _without_node(view: SnapshotView, gpus: dict[str, Gpu]) -> Finding:
    paths = ", ".join(gpus)
    return LACKING.found(
        [subject for gpu in gpus.values() for subject in about_gpu(gpu)],
        [
            view.evidence("machine.kernel.device_nodes", f"no {paths}"),
            view.evidence("machine.cuda.device_count"),
        ],
        advice=_again(view),
        commands=[f"sudo nvidia-modprobe -c {known(gpu.minor_number)}" for gpu in gpus.values()],
        paths=paths,
    )


def _missing(view: SnapshotView, path: str) -> Verdict:
    # NVML makes the nodes that it needs.
    if known(facts_or(view.machine.nvml, Nvml).init_code) == 0 and _listed(view):
        return Passed("made on demand: the driver answers")
    evidence = [view.evidence("machine.kernel.device_nodes")]
    return NO_NODES.found(about_file(path), evidence, advice=_again(view), path=path)


def _closed(view: SnapshotView, cause: Cause, nodes: list[DeviceNode]) -> Finding:
    modes = ", ".join(f"{n.path} {n.mode} {n.owner}:{n.group}" for n in nodes[:6])
    evidence = [view.evidence("machine.kernel.device_nodes", modes)]
    if _confined(view):
        evidence.append(view.evidence("machine.host.selinux"))
    return cause.found(
        [subject for node in nodes[:6] for subject in about_file(node.path)],
        evidence,
        advice=_open(view, nodes[0]),
    )


def _confined(view: SnapshotView) -> bool:
    return container(view) is not None and known(host_facts(view).selinux) == "enforcing"


def _open_to_all(node: DeviceNode) -> bool:
    return mode_bits(node.mode) & 0o006 == 0o006


def _by_a_cgroup(view: SnapshotView, kept: list[DeviceNode], gpus: list[DeviceNode]) -> Verdict:
    if kept[0].path != _CONTROL and len(kept) < len(gpus):
        return Passed(
            f"{len(gpus) - len(kept)} of {len(gpus)} GPUs are open to this process; a device cgroup "
            "keeps the others for other jobs"
        )
    modes = ", ".join(f"{node.path} {node.mode}" for node in kept[:6])
    return CGROUP.found(
        [subject for node in kept[:6] for subject in about_file(node.path)],
        [view.evidence("machine.kernel.device_nodes", modes)],
        advice=_through_the_cgroup(view),
    )


def _through_the_cgroup(view: SnapshotView) -> Remedy:
    return _again(view) or Remedy(
        "Ask the scheduler for GPUs when the job is started; where there is none, see which service "
        "or slice (DeviceAllow=) this process belongs to.",
        ["srun --gres=gpu:1 --pty bash", "cat /proc/self/cgroup"],
    )


def _open(view: SnapshotView, node: DeviceNode) -> Remedy:
    kind, group = container(view), word(node.group)
    if _confined(view):
        return Remedy(
            f"SELinux keeps containers off devices: allow it on the host. {DEVICES_FOR_CONTAINERS}",
            ["sudo getsebool container_use_devices", "sudo setsebool -P container_use_devices on"],
        )
    if _open_to_all(node):
        return _through_the_cgroup(view)
    if node.group not in ("root", "0") and mode_bits(node.mode) & 0o060 == 0o060:
        if kind in _GROUPS:
            return Remedy(
                f"Start the container with the nodes' group, {node.group}, for its user.",
                [_GROUPS[kind].replace("{group}", group)],
            )
        return Remedy(
            f"Add the user to the group {node.group}, and log in again.",
            [f'sudo usermod -aG {group} "$USER"', f"newgrp {group}"],
        )
    return Remedy(
        "Give the nodes to a group, now and at each boot (NVreg_DeviceFileGID), and let the user be in it;"
        " log in again. The driver's own default is a node that everybody may open.",
        [
            "grep -rn NVreg_DeviceFile /etc/modprobe.d",
            f"echo {_OF_A_GROUP} | sudo tee /etc/modprobe.d/nvidia-nodes.conf",
            f"sudo chgrp video {word(node.path)} && sudo chmod 0660 {word(node.path)}",
            'sudo usermod -aG video "$USER"',
        ],
    )


UVM_NOT_READY = fail(
    "uvm-not-ready",
    "the nvidia-uvm module is not loaded",
    "The module nvidia-uvm is not ready, and cuInit fails with error {code}: nvidia-smi works, and"
    " no CUDA program does.",
)


@check(
    "KRN-007",
    title="nvidia-uvm is loaded",
    causes=[UVM_NOT_READY, CLOSED],
    about="CUDA needs a second kernel module, nvidia-uvm, and its node /dev/nvidia-uvm. Without it"
    " nvidia-smi is fine, and cuInit fails with error 999 ('unknown'): frameworks report no GPU.",
    sources=["gpu-burn#60; gorgonia/cu#2"],
    follows=("PCI-001", "PCI-002", "KRN-001", "KRN-002", "DRV-002", "KRN-006", "KRN-011"),
)
def uvm_loaded(view: SnapshotView) -> Verdicts:
    kernel = kernel_facts(view)
    if is_loaded(kernel) is False:
        raise Skip("the nvidia module is not loaded")
    code = known(facts_or(view.machine.cuda, CudaDriver).init_code)
    if code == 0:
        yield Passed("cuInit works")
        return
    if code == _NO_DEVICE and not _listed(view):
        raise Skip("cuInit finds no device, as NVML does: a missing nvidia-uvm would be error 999")
    nodes = need(kernel.device_nodes, "the device nodes")
    node = next((node for node in nodes if node.path == _UVM), None)
    if node is not None and is_loaded(kernel, "nvidia_uvm") is not False:
        yield Passed(f"{_UVM}, mode {node.mode}") if node.usable else _closed(view, CLOSED, [node])
    elif code is None:
        raise Skip("nothing has asked for it yet: libcuda was not tried")
    else:
        yield _no_uvm(view, kernel, node, code)


def _no_uvm(view: SnapshotView, kernel: Kernel, node: DeviceNode | None, code: int) -> Finding:
    evidence = [view.evidence("machine.cuda.init_code")]
    if is_loaded(kernel, "nvidia_uvm") is False:
        evidence.append(view.evidence("machine.kernel.modules", "nvidia_uvm is not among them"))
    if node is None:
        evidence.append(view.evidence("machine.kernel.device_nodes", f"no {_UVM}"))
    return UVM_NOT_READY.found(
        about_file(_UVM), evidence, advice=_load_uvm(view, kernel), code=code
    )


def _uvm_not_on_disk(view: SnapshotView, kernel: Kernel) -> Remedy | None:
    """What puts the module where it can be loaded from; None where it is there."""
    if modules_gone(kernel):
        return Remedy(
            f"The modules of the running kernel {known(kernel.release)} are not on disk any more, as after"
            " an upgrade of the kernel: reboot into the one that is installed now.",
            [HOLDERS, REBOOT],
        )
    if uvm_on_disk(kernel) is not False:
        return None
    version = known(kernel.driver_version) or installed_version(kernel)
    packages = [text.split()[0] for text in driver_packages(kernel)]
    names = [name for name in packages if MODULE_PACKAGE.match(name)]
    install = on_system(view, "reinstall", names=names) if names else install_driver(view)
    return Remedy(
        "nvidia-uvm is not on disk for this kernel, so it cannot be loaded: install the package that brings"
        f" it (some distributions had nvidia-uvm apart), or the whole driver {version} again, and reboot.",
        then_reboot(install),
    )


def _load_uvm(view: SnapshotView, kernel: Kernel) -> Remedy:
    loaded = is_loaded(kernel, "nvidia_uvm")
    load = Remedy(
        ("Make its node" if loaded else "Load it and make its node")
        + "; nvidia-persistenced or this command at boot keeps it so.",
        ["sudo nvidia-modprobe -u -c 0", *([] if loaded else ["sudo modprobe nvidia-uvm"])],
    )
    again = _again(view)
    if again is None:
        return load if loaded else _uvm_not_on_disk(view, kernel) or load
    if loaded is not False:
        return again
    return Remedy(
        f"On the host: {load.text} Then start the container again: nodes cannot be added to a running one.",
        [*load.commands, *again.commands],
    )
