"""Checks on the driver's device nodes: there, usable by this user, and the one for unified memory."""

from __future__ import annotations

from collections.abc import Iterable

from ...facts.kernel import DeviceNode, ModuleOption
from ...findings.subjects import Subject, about_file
from .. import config_lines as config
from .. import driver_on_disk as disk
from ..container_start import lost_gpus, start_with_gpus
from ..containers import DEVICES_FOR_CONTAINERS
from ..declared import declared_causes
from ..driver_state import HOLDERS, REBOOT, container, then_reboot
from ..nvidia_devices import GPU_NODE, host_facts, is_loaded, kernel_facts, open_to_all
from ..reading import CudaDriver, Kernel, Nvml, Skip, SnapshotView, facts_or, is_absent, known, need
from ..system_commands import on_system
from ..verdicts import Cause, Evidence, Finding, Passed, Remedy, Verdicts, check, word

CAUSE = declared_causes(__name__)

_CONTROL = "/dev/nvidiactl"
_UVM = "/dev/nvidia-uvm"
_NO_DEVICE = 100
_AGAIN = "Start the container again, with the GPUs: few engines add nodes to a running one."


@check("KRN-006")
def nodes_usable(view: SnapshotView) -> Verdicts:
    kernel = kernel_facts(view)
    loaded = is_loaded(kernel)
    if loaded is False:
        raise Skip("the nvidia module is not loaded")
    nodes = need(kernel.device_nodes, "the device nodes")
    control = [node for node in nodes if node.path == _CONTROL]
    gpus = [node for node in nodes if GPU_NODE.match(node.path)]
    closed = [node for node in control + gpus if not node.usable]
    listed = known(facts_or(view.machine.nvml, Nvml).gpus) or []
    if not control or not gpus:
        if listed and known(facts_or(view.machine.nvml, Nvml).init_code) == 0:
            yield Passed("made on demand: the driver answers")
            return
        if loaded is None:  # a node may be there without it: NVIDIA's libraries make some, as root
            need(kernel.modules, "whether the nvidia module is loaded")
        path = "/dev/nvidia0" if control else _CONTROL
        there = ", ".join(node.path for node in nodes[:6])
        evidence = [view.evidence("machine.kernel.device_nodes", there or "none")]
        if container(view):
            yield _not_given(view, path, evidence)
        else:
            yield CAUSE["nodes-missing"].found(about_file(path), evidence, path=path)
    elif shut := [] if _confined(view) else list(filter(open_to_all, closed)):
        if control[0] not in closed and len(closed) == len(shut) < len(gpus):
            free = f"{len(gpus) - len(closed)} of {len(gpus)} GPUs are open to this process"
            yield Passed(f"{free}; a device cgroup keeps the others for other jobs")
            return
        yield _closed(view, CAUSE["device-cgroup"], shut)
    elif closed:
        everything = control[0] in closed or len(closed) == len(gpus)
        yield _closed(
            view, CAUSE["nodes-closed"] if everything else CAUSE["some-nodes-closed"], closed
        )
    else:
        yield Passed(f"{_CONTROL} and {len(gpus)} of /dev/nvidiaN, mode {gpus[0].mode}")


def _not_given(view: SnapshotView, path: str, evidence: list[Evidence]) -> Finding:
    library = facts_or(view.machine.cuda, CudaDriver).library_path
    lacking = f"there is no {path}"
    if is_absent(library):
        lacking += " and no library of the driver"
        evidence.append(view.evidence("machine.cuda.library_path"))
    return CAUSE["container-without-gpus"].found(
        about_file(path), evidence, advice=_again(view), lacking=lacking
    )


def _again(view: SnapshotView) -> Remedy | None:
    return start_with_gpus(view, _AGAIN) if container(view) else None


def _modes(nodes: Iterable[DeviceNode]) -> str:
    return ", ".join(f"{n.path} {n.mode} {n.owner}:{n.group}" for n in list(nodes)[:6])


def _files(nodes: list[DeviceNode]) -> list[Subject]:
    return [subject for node in nodes[:6] for subject in about_file(node.path)]


def _closed(view: SnapshotView, cause: Cause, nodes: list[DeviceNode]) -> Finding:
    evidence = [view.evidence("machine.kernel.device_nodes", _modes(nodes))]
    evidence += config.shown(view, "udev_rules", config.setting_nodes(view, nodes[0].path))
    for one in _closing_options(view):
        text = f"{one.path}: {one.name}={one.value}"
        evidence.append(view.evidence("machine.kernel.module_options", text))
    if _confined(view):
        evidence.append(view.evidence("machine.host.selinux"))
    return cause.found(_files(nodes), evidence, advice=_open(view, nodes[0]))


def _confined(view: SnapshotView) -> bool:
    return container(view) is not None and known(host_facts(view).selinux) == "enforcing"


def _through_the_cgroup(view: SnapshotView) -> Remedy:
    if container(view):
        return lost_gpus(view)
    return Remedy(
        "Ask the scheduler for GPUs when the job is started; without a scheduler, see which service or slice"
        " (DeviceAllow=) this process belongs to.",
        ["srun --gres=gpu:1 --pty bash", "cat /proc/self/cgroup"],
    )


def _open(view: SnapshotView, node: DeviceNode) -> Remedy:
    group = word(node.group)
    if _confined(view):
        return Remedy(
            f"SELinux keeps containers off devices: allow it on the host. {DEVICES_FOR_CONTAINERS}",
            ["sudo getsebool container_use_devices", "sudo setsebool -P container_use_devices on"],
        )
    if open_to_all(node):
        return _through_the_cgroup(view)
    if container(view):
        text = f"Start the container with the nodes' group, {node.group}, for its user."
        return Remedy(
            text, [f"# docker run --group-add {group} …, podman run --group-add keep-groups …"]
        )
    if node.group not in ("root", "0") and node.mode[-2:-1] in ("6", "7"):
        text = f"Add the user to the group {node.group}, and log in again."
        return Remedy(text, [f'sudo usermod -aG {group} "$USER"', f"newgrp {group}"])
    if rules := config.setting_nodes(view, node.path):
        made = [f"sudo rm {word(node.path)}", "sudo nvidia-modprobe -c 0 -u"]
        return config.undo(view, rules, "sudo udevadm control --reload", *made)
    return Remedy(
        "Take the options away that close the nodes (NVreg_DeviceFileMode, -UID, -GID), or give the nodes by"
        " them to a group that the user is in, and reboot. The driver's own default is a node that everybody"
        " may open.",
        [f"ls -l {word(node.path)}", *config.drop_options(view, _closing_options(view))],
    )


def _closing_options(view: SnapshotView) -> list[ModuleOption]:
    options = known(kernel_facts(view).module_options) or []
    return [one for one in options if one.name.startswith("NVreg_DeviceFile")]


@check("KRN-007")
def uvm_loaded(view: SnapshotView) -> Verdicts:
    kernel = kernel_facts(view)
    if is_loaded(kernel) is False:
        raise Skip("the nvidia module is not loaded")
    code = known(facts_or(view.machine.cuda, CudaDriver).init_code)
    if code == 0:
        yield Passed("cuInit works")
        return
    if code == _NO_DEVICE and not known(facts_or(view.machine.nvml, Nvml).gpus):
        raise Skip("cuInit finds no device, as NVML does: a missing nvidia-uvm would be error 999")
    nodes = need(kernel.device_nodes, "the device nodes")
    node = next((node for node in nodes if node.path == _UVM), None)
    loaded = is_loaded(kernel, "nvidia_uvm")
    if node is not None and loaded is not False:
        cause = (
            CAUSE["device-cgroup"]
            if open_to_all(node) and not _confined(view)
            else CAUSE["nodes-closed"]
        )
        yield Passed(f"{_UVM}, mode {node.mode}") if node.usable else _closed(view, cause, [node])
    elif code is None:
        raise Skip("nothing has asked for it yet: libcuda was not tried")
    else:
        evidence = [view.evidence("machine.cuda.init_code")]
        if loaded is False:
            evidence.append(view.evidence("machine.kernel.modules", "nvidia_uvm is not among them"))
        if node is None:
            evidence.append(view.evidence("machine.kernel.device_nodes", f"no {_UVM}"))
        advice = _load_uvm(view, kernel, loaded)
        inside = " in this container" if container(view) else ""
        if not loaded and (lines := config.keeping_out(view, "nvidia_uvm")):
            evidence += config.shown(view, "kept_out", lines)
            then = "sudo nvidia-modprobe -u -c 0"
            advice = config.undo(view, lines, "sudo modprobe nvidia-uvm", then)
            where = config.where(lines)
            yield CAUSE["uvm-kept-out"].found(
                about_file(_UVM), evidence, advice=advice, code=code, where=where
            )
            return
        yield (
            CAUSE["uvm-node-missing"] if loaded and node is None else CAUSE["uvm-not-ready"]
        ).found(about_file(_UVM), evidence, advice=advice, code=code, path=_UVM, inside=inside)


def _load_uvm(view: SnapshotView, kernel: Kernel, loaded: bool | None) -> Remedy:
    again, load = _again(view), [] if loaded else ["sudo modprobe nvidia-uvm"]
    make = "Make its node" if loaded else "Load it and make its node"
    text = f"{make}; this command at each boot keeps it so."
    commands = ["sudo nvidia-modprobe -u -c 0", *load]
    if again is not None and loaded is not False:
        return again
    if again is not None:
        then = "Then start the container again: nodes cannot be added to a running one."
        return Remedy(f"On the host: {text} {then}", [*commands, *again.commands])
    if not loaded and disk.modules_gone(kernel):
        return Remedy(
            f"The modules of the running kernel {known(kernel.release)} are no longer on disk, as after"
            " an upgrade of the kernel: reboot into the one that is installed now.",
            [HOLDERS, REBOOT],
        )
    if not loaded and disk.uvm_on_disk(kernel) is False:
        names = [p.name for p in disk.packages_of(kernel) if disk.MODULE_PACKAGE.match(p.name)]
        version = known(kernel.driver_version) or disk.installed_version(kernel)
        install = on_system(view, "reinstall", names=names) if names else []
        return Remedy(
            "nvidia-uvm is not on disk for this kernel, so it cannot be loaded: install the package that"
            f" brings it (some distributions had it apart), or the whole driver {version} again, and reboot.",
            then_reboot(install or on_system(view, "install-driver")),
        )
    return Remedy(text, commands)
