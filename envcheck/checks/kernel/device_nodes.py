"""Checks on the driver's device nodes: there, usable by this user, and the one for unified memory."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.base import known
from ...facts.gpu import Gpu
from ...facts.kernel import DeviceNode, Kernel
from ...facts.missing import Skip
from ...facts.view import SnapshotView, need
from ...findings.commands import fill_in
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.shell import word
from ...findings.subjects import about_file, about_gpu
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
from ..registry import check
from ..system_commands import on_system

# How a container's user gets a group of the host's.
GROUPS = {
    "docker": "docker run --gpus all --group-add {group} " + fill_in("IMAGE", "your image"),
    "podman": "podman run --group-add keep-groups --device nvidia.com/gpu=all "
    + fill_in("IMAGE", "your image"),
    "kubernetes": "kubectl explain pod.spec.securityContext.supplementalGroups   # {group}",
}
CONTROL = "/dev/nvidiactl"
UVM = "/dev/nvidia-uvm"
_NO_DEVICE = 100
_OF_A_GROUP = (
    '"options nvidia NVreg_DeviceFileMode=0660'
    ' NVreg_DeviceFileGID=$(getent group video | cut -d: -f3)"'
)
AGAIN = "Start the container anew, with the GPUs: few engines add nodes to a running one."


@check(
    "KRN-006",
    title="The device nodes exist, and this user may use them",
    problem="the GPUs' device nodes cannot be used",
    about="Programs reach the GPU through /dev/nvidiactl and one /dev/nvidiaN for each GPU. They are"
    " made when the driver is first used; in a container, when it is started. Where this user may not"
    " read and write them, every program of the user finds no GPU, while root's do. Nodes under"
    " /dev/nvidia-caps belong to MIG and are closed on purpose: they are not judged.",
    sources=("nvidia-container-toolkit#33", "NVIDIA driver README, device node access"),
    follows=("PCI-001", "PCI-002", "KRN-001", "KRN-002", "ENV-002"),
)
def nodes_usable(view: SnapshotView) -> Iterator[Verdict]:
    kernel = kernel_facts(view)
    if is_loaded(kernel) is False:
        raise Skip("the nvidia module is not loaded")
    nodes = need(kernel.device_nodes, "the device nodes")
    control = [node for node in nodes if node.path == CONTROL]
    gpus = [node for node in nodes if GPU_NODE.match(node.path)]
    if not control or not gpus:
        yield _missing(view, CONTROL if not control else "/dev/nvidia0")
        return
    lacking = _lacking(view, {node.path for node in gpus})
    if lacking:
        yield _not_made(view, lacking)
        return
    closed = [node for node in control + gpus if not node.usable]
    if closed and not _confined(view) and all(map(_open_to_all, closed)):
        yield _by_a_cgroup(view, closed, gpus)
    elif closed:
        yield _closed(
            view, closed, everything=bool(control[0] in closed or len(closed) == len(gpus))
        )
    else:
        yield Passed(f"{CONTROL} and {len(gpus)} of /dev/nvidiaN, mode {gpus[0].mode}")


def _lacking(view: SnapshotView, paths: set[str]) -> list[Gpu]:
    """The GPUs that NVML lists and CUDA does not find, since they have no node."""
    cuda = view.machine.cuda
    devices = None if cuda is None or cuda.facts is None else known(cuda.facts.devices)
    if devices is None:
        return []
    seen = {known(device.pci_address) for device in devices}
    return [
        gpu
        for gpu in _listed(view)
        if known(gpu.minor_number) is not None
        and f"/dev/nvidia{known(gpu.minor_number)}" not in paths
        and known(gpu.pci_address) not in (None, *seen)
    ]


def _listed(view: SnapshotView) -> list[Gpu]:
    """The GPUs that NVML lists, as far as it could be asked."""
    probe = view.machine.nvml
    return [] if probe is None or probe.facts is None else known(probe.facts.gpus) or []


def _not_made(view: SnapshotView, gpus: list[Gpu]) -> Finding:
    paths = [f"/dev/nvidia{known(gpu.minor_number)}" for gpu in gpus]
    return Finding(
        "fail",
        f"There is no {', '.join(paths)}: CUDA does not find"
        f" {'that GPU' if len(gpus) == 1 else 'those GPUs'}.",
        subjects=[subject for gpu in gpus for subject in about_gpu(gpu)],
        evidence=[
            view.evidence("machine.kernel.device_nodes", f"no {', '.join(paths)}"),
            view.evidence("machine.cuda.device_count"),
        ],
        remedy=start_with_gpus(view, AGAIN)
        if container(view)
        else Remedy(
            "Make the nodes; nvidia-modprobe (setuid root) or nvidia-persistenced does it at each boot.",
            [f"sudo nvidia-modprobe -c {known(gpu.minor_number)}" for gpu in gpus],
        ),
    )


def _missing(view: SnapshotView, path: str) -> Verdict:
    if _driver_answers(view):
        return Passed("made on demand: the driver answers")
    return Finding(
        "fail",
        f"There is no {path}: no program reaches the driver, though its module is loaded.",
        subjects=about_file(path),
        evidence=[view.evidence("machine.kernel.device_nodes")],
        remedy=start_with_gpus(view, AGAIN)
        if container(view)
        else Remedy(
            "Make the nodes; nvidia-modprobe (setuid root) or nvidia-persistenced does it at each boot.",
            ["sudo nvidia-modprobe -c 0 -u", "sudo systemctl enable --now nvidia-persistenced"],
        ),
    )


def _driver_answers(view: SnapshotView) -> bool:
    """Whether NVML started and listed a GPU: it makes the nodes that it needs."""
    probe = view.machine.nvml
    return bool(
        probe is not None
        and probe.facts is not None
        and known(probe.facts.init_code) == 0
        and known(probe.facts.gpus)
    )


def _closed(view: SnapshotView, nodes: list[DeviceNode], everything: bool) -> Finding:
    told = ", ".join(f"{n.path} {n.mode} {n.owner}:{n.group}" for n in nodes[:6])
    evidence = [view.evidence("machine.kernel.device_nodes", told)]
    confined = _confined(view)
    if confined:
        evidence.append(view.evidence("machine.host.selinux"))
    return Finding(
        "fail" if everything else "warn",
        "This user may not read and write "
        + (
            "the driver's device nodes: no program of this user finds a GPU."
            if everything
            else "some GPUs' device nodes: programs of this user do not find those GPUs."
        ),
        subjects=[subject for node in nodes[:6] for subject in about_file(node.path)],
        evidence=evidence,
        remedy=_open(view, nodes[0], confined),
    )


def _confined(view: SnapshotView) -> bool:
    return container(view) is not None and known(host_facts(view).selinux) == "enforcing"


def _open_to_all(node: DeviceNode) -> bool:
    return mode_bits(node.mode) & 0o006 == 0o006


def _by_a_cgroup(view: SnapshotView, kept: list[DeviceNode], gpus: list[DeviceNode]) -> Verdict:
    if kept[0].path != CONTROL and len(kept) < len(gpus):
        return Passed(
            f"{len(gpus) - len(kept)} of {len(gpus)} GPUs are open to this process; a device cgroup "
            "keeps the others for other jobs"
        )
    told = ", ".join(f"{node.path} {node.mode}" for node in kept[:6])
    return Finding(
        "fail",
        "A device cgroup keeps this process off the GPUs, though the nodes are open to all: no "
        "program that is started here finds a GPU.",
        subjects=[subject for node in kept[:6] for subject in about_file(node.path)],
        evidence=[view.evidence("machine.kernel.device_nodes", told)],
        remedy=_through_the_cgroup(view),
    )


def _through_the_cgroup(view: SnapshotView) -> Remedy:
    if container(view):
        return start_with_gpus(view, AGAIN)
    return Remedy(
        "Ask the scheduler for GPUs when the job is started; where there is none, see which service "
        "or slice (DeviceAllow=) this process belongs to.",
        ["srun --gres=gpu:1 --pty bash", "cat /proc/self/cgroup"],
    )


def _open(view: SnapshotView, node: DeviceNode, confined: bool) -> Remedy:
    if confined:
        return Remedy(
            f"SELinux keeps containers off devices: allow it on the host. {DEVICES_FOR_CONTAINERS}",
            ["sudo getsebool container_use_devices", "sudo setsebool -P container_use_devices on"],
        )
    if _open_to_all(node):
        return _through_the_cgroup(view)
    if node.group not in ("root", "0") and mode_bits(node.mode) & 0o060 == 0o060:
        if container(view) in GROUPS:
            return Remedy(
                f"Start the container with the nodes' group, {node.group}, for its user.",
                [GROUPS[container(view) or ""].replace("{group}", word(node.group))],
            )
        return Remedy(
            f"Add the user to the group {node.group}, and log in again.",
            [f'sudo usermod -aG {word(node.group)} "$USER"', f"newgrp {word(node.group)}"],
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


@check(
    "KRN-007",
    title="nvidia-uvm is loaded",
    problem="the nvidia-uvm module is not loaded",
    about="CUDA needs a second kernel module, nvidia-uvm, and its node /dev/nvidia-uvm. Without it"
    " nvidia-smi is fine, and cuInit fails with error 999 ('unknown'): frameworks report no GPU. It is"
    " loaded on demand by nvidia-modprobe where that is installed setuid root, so where cuInit works, all"
    " is well.",
    sources=("gpu-burn#60", "gorgonia/cu#2"),
    follows=("PCI-001", "PCI-002", "KRN-001", "KRN-002", "DRV-002", "KRN-006", "KRN-011"),
)
def uvm_loaded(view: SnapshotView) -> Iterator[Verdict]:
    kernel = kernel_facts(view)
    if is_loaded(kernel) is False:
        raise Skip("the nvidia module is not loaded")
    cuda = view.machine.cuda
    code = None if cuda is None or cuda.facts is None else known(cuda.facts.init_code)
    if code == 0:
        yield Passed("cuInit works")
        return
    if code == _NO_DEVICE and not _listed(view):
        raise Skip("cuInit finds no device, as NVML does: a missing nvidia-uvm would be error 999")
    nodes = need(kernel.device_nodes, "the device nodes")
    node = next((node for node in nodes if node.path == UVM), None)
    if node is not None and is_loaded(kernel, "nvidia_uvm") is not False:
        yield from _usable(view, node)
    elif code is None:
        raise Skip("nothing has asked for it yet: libcuda was not tried")
    else:
        yield _no_uvm(view, kernel, node, code)


def _usable(view: SnapshotView, node: DeviceNode) -> Iterator[Verdict]:
    if node.usable:
        yield Passed(f"{UVM}, mode {node.mode}")
    else:
        yield _closed(view, [node], everything=True)


def _no_uvm(view: SnapshotView, kernel: Kernel, node: DeviceNode | None, code: int) -> Finding:
    evidence = [view.evidence("machine.cuda.init_code")]
    if is_loaded(kernel, "nvidia_uvm") is False:
        evidence.append(view.evidence("machine.kernel.modules", "nvidia_uvm is not among them"))
    if node is None:
        evidence.append(view.evidence("machine.kernel.device_nodes", f"no {UVM}"))
    return Finding(
        "fail",
        f"The module nvidia-uvm is not ready, and cuInit fails with error {code}: nvidia-smi works, and"
        " no CUDA program does.",
        subjects=about_file(UVM),
        evidence=evidence,
        remedy=_load_uvm(view, kernel),
    )


def _uvm_on_disk(view: SnapshotView, kernel: Kernel) -> Remedy | None:
    """What puts the module where it can be loaded from, where it is not there."""
    if modules_gone(kernel):
        return Remedy(
            f"The modules of the running kernel {known(kernel.release)} are not on disk any more, as after"
            " an upgrade of the kernel: reboot into the one that is installed now.",
            [HOLDERS, REBOOT],
        )
    if uvm_on_disk(kernel) is not False:
        return None
    version = known(kernel.driver_version) or installed_version(kernel)
    return Remedy(
        "nvidia-uvm is not on disk for this kernel, so it cannot be loaded: install the package that brings"
        f" it (some distributions had nvidia-uvm apart), or the whole driver {version} again, and reboot.",
        then_reboot(_whole_driver(view, kernel)),
    )


def _whole_driver(view: SnapshotView, kernel: Kernel) -> list[str]:
    packages = [text.split()[0] for text in driver_packages(kernel)]
    names = [name for name in packages if MODULE_PACKAGE.match(name)]
    return on_system(view, "reinstall", names=names) if names else install_driver(view)


def _load_uvm(view: SnapshotView, kernel: Kernel) -> Remedy:
    loaded = is_loaded(kernel, "nvidia_uvm")
    load = Remedy(
        ("Make its node" if loaded else "Load it and make its node")
        + "; nvidia-persistenced or this command at boot keeps it so.",
        ["sudo nvidia-modprobe -u -c 0", *([] if loaded else ["sudo modprobe nvidia-uvm"])],
    )
    if not container(view):
        return load if loaded else _uvm_on_disk(view, kernel) or load
    again = start_with_gpus(view, AGAIN)
    if is_loaded(kernel, "nvidia_uvm") is not False:
        return again
    return Remedy(
        f"On the host: {load.text} Then start the container again: nodes cannot be added to a running one.",
        [*load.commands, *again.commands],
    )
