"""Does what a remedy's commands promise to a made-up machine, so that the doctor can look at it again.

An interpreter of the commands that change a described machine: modules, services, nodes, modes of GPUs, the
driver's files, variables. It knows nothing of faults or findings; ``Unknown`` names a command it has no
meaning for. What only looks changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from world import bases
from world.contents import Content
from world.gpus import Gpu
from world.machine import LIB, Machine, module_on_disk

_LOOKS = re.compile(
    r"(sudo )?(dmesg|grep (?!-rlE)|fuser|ls|lspci|journalctl|cat|df|ldconfig|dpkg -[lS]|apt-cache"
    r"|apt list|type|time|docker (info|ps)|newgrp|nvidia-bug-report\.sh|mokutil --sb-state"
    r"|ubuntu-drivers list|dcgmi"
    r"|nvidia-ctk cdi list|nvidia-smi( |$)(?!.*(-rac|-rgc|-pl|-pm|-c |-e |mig .*-cgi|--gpu-reset)))"
    r"|systemctl status"
)
# Begins the driver anew, or brings the libraries that programs talk to it by.
_STARTS_DRIVER = re.compile(
    r"modprobe|nvidia-modprobe|reboot|poweroff|nvidia-smi --gpu-reset|apt install|systemctl"
)
_ADDRESS = re.compile(r"-i (\S+)")
_ENROLLED = "/var/lib/shim-signed/mok/enrolled"
_MODULES = ["nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia"]
_DAEMONS = {
    "nvidia-persistenced": "/usr/bin/nvidia-persistenced",
    "nvidia-fabricmanager": "/usr/bin/nv-fabricmanager",
}


class Unknown(Exception):
    """A command that is not understood here."""


def mend(machine: Machine, healthy: Machine, commands: Sequence[str]) -> None:
    """Run the commands on ``machine``. healthy: the machine before anything was wrong with its hardware.

    Raises Unknown.
    """
    lines = [one for line in commands for one in line.partition("  # ")[0].split(" && ")]
    run = [one.removeprefix("sudo ") for one in lines if not _LOOKS.match(one)]
    for command in run:
        _run(machine, healthy, command)
    if any(map(_STARTS_DRIVER.match, run)):
        _settle(machine, healthy)


def _run(m: Machine, healthy: Machine, command: str) -> None:
    for pattern, act in _MEANING:
        if found := re.match(pattern, command):
            if act is not None:
                act(m, healthy, found)
            return
    raise Unknown(command)


Act = Callable[[Machine, Machine, re.Match[str]], object]


def _gpus(m: Machine, command: str) -> list[Gpu]:
    wanted = _ADDRESS.search(command)
    named = wanted[1].split(",") if wanted else [gpu.address for gpu in m.gpus]
    return [gpu for gpu in m.gpus if gpu.address in named]


def _text(content: Content) -> str:
    return content if isinstance(content, str) else ""


def _blocked(m: Machine) -> bool:
    """Whether modprobe would not load the module, or the kernel would not take it."""
    files = [_text(text) for path, text in m.files.items() if path.startswith("/etc/modprobe.d/")]
    kept_out = any(re.search(r"^install nvidia /bin/false", text, re.M) for text in files)
    return kept_out or (m.secure_boot and _ENROLLED not in m.files)


def _load(m: Machine, _healthy: Machine, found: re.Match[str]) -> None:
    name = found[1].replace("-", "_")
    on_disk = m.files.get(f"/lib/modules/{m.kernel}/updates/dkms/nvidia.ko", "") is not None
    if _blocked(m) or not on_disk or "nouveau" in m.modules:
        return
    m.module_driver = None if name == "nvidia" else m.module_driver
    m.modules += [one for one in ([name] if name != "nvidia" else _MODULES) if one not in m.modules]


def _reboot(m: Machine, healthy: Machine, _found: re.Match[str]) -> None:
    files = [_text(text) for path, text in m.files.items() if path.startswith("/etc/modprobe.d/")]
    if any("blacklist nouveau" in text for text in files) and "nouveau" in m.modules:
        m.modules.remove("nouveau")
    # What the kernel said, and what waits for a reset, is of the boot before.
    m.log = list(healthy.log)
    _reset(m, m.gpus, healthy)
    m.module_driver = None
    _load(m, healthy, re.match("(nvidia)", "nvidia"))  # type: ignore[arg-type]


def _reset(m: Machine, gpus: Sequence[Gpu], healthy: Machine) -> None:
    before = {gpu.address: gpu for gpu in healthy.gpus}
    for gpu in gpus:
        same = before[gpu.address]
        correctable, uncorrectable, _pending, failed = gpu.remap or (0, 0, False, False)
        retired = gpu.retired and (*gpu.retired[:2], False)
        gpu.change(
            mig=gpu.mig and (gpu.mig[1],) * 2,
            ecc=gpu.ecc and (gpu.ecc[1],) * 2,
            remap=gpu.remap and (correctable, uncorrectable, False, failed),
            retired=retired,
            reset_required=False,
            recovery_action=0,
            dram_uncorrected=(0, gpu.dram_uncorrected[1]) if gpu.dram_uncorrected else None,
            repair=same.repair,
        )


def _change(**values: object) -> Act:
    def act(m: Machine, healthy: Machine, found: re.Match[str]) -> None:
        for gpu in _gpus(m, found[0]):
            gpu.change(**values)
            if "compute_mode" in values and gpu.index in m.hidden_from_cuda:
                m.hidden_from_cuda.remove(gpu.index)

    return act


def _limit(m: Machine, _healthy: Machine, found: re.Match[str]) -> None:
    for gpu in _gpus(m, found[0]):
        gpu.change(limit_mw=int(float(found[1]) * 1000))


def _clocks(m: Machine, _healthy: Machine, found: re.Match[str]) -> None:
    for gpu in _gpus(m, found[0]):
        clock = gpu.default_app_sm
        gpu.change(app_sm=clock, clock_sm=gpu.max_sm, reasons=[])


def _ecc(m: Machine, _healthy: Machine, found: re.Match[str]) -> None:
    for gpu in _gpus(m, found[0]):
        gpu.change(ecc=(gpu.ecc[0], found[1] == "1"))


def _instance(m: Machine, healthy: Machine, found: re.Match[str]) -> None:
    same = [gpu.mig_instances for gpu in healthy.gpus if gpu.mig_instances]
    for gpu in _gpus(m, found[0]):
        gpu.change(mig_instances=same[0][:1] if same else [])
        if gpu.index in m.hidden_from_cuda:
            m.hidden_from_cuda.remove(gpu.index)


def _service(m: Machine, healthy: Machine, found: re.Match[str]) -> None:
    for name in found[2].split():
        daemon = next((one for one in healthy.services if name[:12] in one), _DAEMONS.get(name, ""))
        if found[1] == "stop":
            m.services = [one for one in m.services if one != daemon]
        elif daemon and daemon not in m.services:
            m.services.append(daemon)
        for gpu, same in zip(m.gpus, healthy.gpus, strict=False) if found[1] != "stop" else ():
            if name == "nvidia-persistenced":
                gpu.change(persistence=True)
            elif name == "nvidia-fabricmanager":
                gpu.change(fabric=same.fabric)


def _nodes(m: Machine, healthy: Machine, _found: re.Match[str]) -> None:
    if "nvidia" not in m.modules:
        return
    m.files = {path: at for path, at in m.files.items() if not path.startswith("/dev/nvidia")}
    _load(m, healthy, re.match("(nvidia_uvm)", "nvidia_uvm"))  # type: ignore[arg-type]


def _comment_lines(m: Machine, _healthy: Machine, found: re.Match[str]) -> None:
    lines = _text(m.files[found[2]]).splitlines()
    kept = [f"# {line}" if re.search(found[1], line) else line for line in lines]
    m.files[found[2]] = "\n".join([*kept, ""])


def _comment_out(m: Machine, _healthy: Machine, found: re.Match[str]) -> None:
    for path, text in m.files.items():
        if path.startswith("/etc/modprobe.d/"):
            m.files[path] = re.sub(found[1], "# \\g<0>", _text(text), flags=re.M)


def _build(m: Machine, _healthy: Machine, _found: re.Match[str]) -> None:
    m.files |= module_on_disk(m.kernel, m.driver, m.flavour)


def _enroll(m: Machine) -> None:
    m.write(_ENROLLED, "")


def _userland(m: Machine, healthy: Machine, _found: re.Match[str]) -> None:
    m.packages = {**healthy.packages, **m.packages}
    m.files = {
        path: at
        for path, at in m.files.items()
        if not (path.startswith((LIB, "/usr/bin/nvidia")) and at is None)
    }


def _manager(m: Machine, healthy: Machine, _found: re.Match[str]) -> None:
    for name, version in healthy.packages.items():
        if "fabricmanager" in name:
            m.packages[name] = version


def _unload(m: Machine, _healthy: Machine, found: re.Match[str]) -> None:
    m.modules = [one for one in m.modules if one not in found[1].replace("-", "_").split()]


def _write(m: Machine, _healthy: Machine, found: re.Match[str]) -> None:
    m.write(found[2], found[1].encode().decode("unicode_escape"))


# What a command does, by its words. None: rebuilds or holds what the description has no part of.
_MEANING: list[tuple[str, Act | None]] = [
    (r"modprobe -r (.*)", _unload),
    (r"modprobe (\S+)", _load),
    (r"nvidia-modprobe ", _nodes),
    (r"printf '([^']*)' \| (?:sudo )?tee (\S+)", _write),
    (r"grep -rlE '([^']*)' /etc/modprobe.d \| xargs -r (?:sudo )?sed ", _comment_out),
    (r"sed -i\.bak -E '/([^']*)/s/\^/# /' (\S+)", _comment_lines),
    (r"depmod -a|update-initramfs|dpkg --configure|apt --fix-broken|echo nvidia-peermem", None),
    (r"apt install (?:ubuntu-drivers-common|linux-headers-)", None),
    (r"apt install [^|]*nvidia-fabricmanager", _manager),
    (r"apt install linux-modules-nvidia-\d+", lambda *given: (_build(*given), _enroll(given[0]))),
    (r"apt install (nvidia-utils|nvidia-smi|libcuda1)", _userland),
    (r"dkms autoinstall", _build),
    (r"mokutil --import", lambda m, *_: _enroll(m)),
    (r"reboot|poweroff", _reboot),
    (r"systemctl (enable --now|start|stop|restart) (.*)", _service),
    (r"nvidia-smi --gpu-reset", lambda m, healthy, found: _reset(m, _gpus(m, found[0]), healthy)),
    (r"nvidia-smi .*-c DEFAULT", _change(compute_mode=0)),
    (r"nvidia-smi .*-pl ([\d.]+)", _limit),
    (r"nvidia-smi .*-pm 1", _change(persistence=True)),
    (r"nvidia-smi .*-r[ag]c", _clocks),
    (r"nvidia-smi .*-e ([01])", _ecc),
    (r"nvidia-smi mig .*-cgi", _instance),
    (r"unset (\w+)", lambda m, _, found: m.environment.pop(found[1], None)),
    (r"ulimit -n (\d+)", lambda m, _, found: m.limits.update(RLIMIT_NOFILE=int(found[1]))),
]


def _settle(m: Machine, healthy: Machine) -> None:
    """What follows for NVML, CUDA and nvidia-smi: they answer where module and libraries fit."""
    gone = [path for path, at in m.files.items() if path.startswith(LIB) and at is None]
    if "nvidia" not in m.modules or m.loaded != m.driver or gone:
        return
    for device in m.devices:
        if device.files.get("driver") in (None, "nouveau"):
            known = next((one for one in healthy.devices if one.address == device.address), None)
            device.files["driver"] = known and known.files.get("driver")
    m.services = m.services or list(healthy.services)
    m.nvml_first, m.smi_out, m.smi_code = list(healthy.nvml_first), None, 0
    if "nvidia_uvm" in m.modules and not m.hidden_from_cuda:
        m.cuda_init = healthy.cuda_init


def healthy(base: str) -> Machine:
    return bases.BASES[base]()
