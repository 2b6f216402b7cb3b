"""Which GPUs the micro-kernels run on, out of what the probes found: nothing is asked again here."""

import os

from ..facts import is_unavailable, known

BUSY = 10  # percent of utilization
_MIG = "MIG-"
# It holds every GPU under MPS, and computes nothing itself.
_MPS_SERVER = "nvidia-cuda-mps-server"


class NoSuchGpu(Exception):
    """nvidia-smi lists GPUs, and none with the index that was asked for: one sentence."""


class Device(object):
    """One GPU, or one MIG instance.

    seed: the facts of a LevelRun that are known beforehand. visible: what CUDA_VISIBLE_DEVICES must be
    for a process to see it alone. lane: equal for devices that share a GPU. ordinal: libcuda's, None
    where it lists another instance of that GPU. outcome: "" where kernels may run on it, else "busy" or
    "not-run", with the reason. passing: nothing but the utilization says that it is busy.
    """

    def __init__(self, seed, visible="", lane="", ordinal=None, instance=""):
        self.seed = seed
        self.visible = visible
        self.lane = lane
        self.ordinal = ordinal
        self.instance = instance
        self.outcome = ""
        self.reason = ""
        self.passing = False

    @property
    def name(self):
        """As the user knows it: "GPU 0", "GPU 0 MIG 3.0"."""
        index = self.seed.get("index")
        shown = "GPU %s" % (index if isinstance(index, int) else self.ordinal)
        return shown + (" MIG " + self.instance if self.instance else "")


def choose(machine, options, environ, ours=()):
    """([Device], why there is none) for a machine's document. Raises NoSuchGpu.

    environ: the user's environment. ours: ids of processes that this collector itself has started.
    """
    devices, gpus, reason = _devices(machine)
    if options.gpus is None:
        if not devices:
            return [], reason
        devices, reason = _visible(devices, environ.get("CUDA_VISIBLE_DEVICES"))
    else:
        devices = _named(devices, gpus, options.gpus, reason)
    for device in devices:
        if not device.outcome:
            _judge(device, gpus.get(device.lane, {}), options, ours)
    return devices, reason


def _devices(machine):
    """(Devices in CUDA's order, {PCI address: NVML's GPU}, why there are no devices)."""
    nvml = (machine.get("nvml") or {}).get("facts") or {}
    gpus = {}
    for gpu in known(nvml.get("gpus")) or []:
        if known(gpu.get("pci_address")):
            gpus[gpu["pci_address"]] = gpu
    section = machine.get("cuda") or {}
    listed = known((section.get("facts") or {}).get("devices"))
    if not listed:
        return [], gpus, _no_devices(section)
    found = []
    for device in listed:
        address = known(device.get("pci_address")) or ""
        if not _instances(gpus.get(address, {})):
            found.append(_whole(device, gpus.get(address, {}), address))
    # Of all MIG instances CUDA lists the first alone; any other runs where it is named.
    for gpu in gpus.values():
        address = gpu["pci_address"]
        here = [device for device in listed if known(device.get("pci_address")) == address]
        found += [_instance(here, gpu, instance) for instance in _instances(gpu)]
    return found, gpus, ""


def _instances(gpu):
    """The facts of its MIG instances; none where MIG is off."""
    return (known(gpu.get("mig_instances")) or []) if gpu.get("mig_enabled") is True else []


def _no_devices(section):
    """Why libcuda lists no device: one sentence."""
    facts = section.get("facts")
    if facts is None:
        why = section.get("reason") or "the machine was not asked for any"
        return "libcuda could not be asked for its devices: %s" % why
    if known(facts.get("load_error")):
        return "libcuda cannot be loaded: %s" % facts["load_error"]
    code, name = known(facts.get("init_code")), known(facts.get("init_name"))
    if code:
        return "cuInit failed: %s (%d)" % (name or "CUresult", code)
    if is_unavailable(facts.get("devices")) and facts["devices"].get("detail"):
        return "libcuda lists no devices: %s" % facts["devices"]["detail"]
    return "libcuda lists no device"


def _whole(device, gpu, address):
    seed = _seed(device, gpu)
    uuid = known(device.get("uuid")) or known(gpu.get("uuid"))
    if uuid:
        seed["uuid"] = uuid
    ordinal = device["ordinal"]
    return Device(seed, uuid or str(ordinal), address or "ordinal %d" % ordinal, ordinal)


def _instance(listed, gpu, instance):
    """``listed``: libcuda's devices of that GPU."""
    uuid = known(instance.get("uuid"))
    same = [device for device in listed if known(device.get("uuid")) == uuid]
    seed = _seed(same[0] if same else {}, gpu)
    for key in ("uuid", "multiprocessors"):
        if known(instance.get(key)) is not None:
            seed[key] = instance[key]
    numbers = [known(instance.get(key)) for key in ("gpu_instance", "compute_instance")]
    made = Device(
        seed,
        uuid or "",
        gpu["pci_address"],
        same[0]["ordinal"] if same else None,
        ".".join("?" if number is None else str(number) for number in numbers),
    )
    if not uuid:
        made.outcome, made.reason = "not-run", "NVML does not tell this MIG instance's UUID"
    return made


def _seed(device, gpu):
    seed = {}
    for key in ("index", "pci_address", "name", "compute_capability"):
        value = known(gpu.get(key))
        value = known(device.get(key)) if value is None else value
        if value is not None:
            seed[key] = value
    return seed


def _visible(devices, value):
    """(the devices that a process with CUDA_VISIBLE_DEVICES=value sees, why there are none)."""
    if value is None:
        return devices, ""
    seen = []
    for word in value.split(","):
        matched = _matched(devices, word.strip())
        if not matched:  # libcuda reads no further than to the first that it does not know
            break
        seen += [device for device in matched if device not in seen]
    why = 'CUDA_VISIBLE_DEVICES="%s" hides every GPU' % value[:200]
    return seen, "" if seen else why


def _matched(devices, word):
    """The one device that a word of CUDA_VISIBLE_DEVICES means, in a list; else an empty list."""
    if word.isdecimal():
        return [device for device in devices if device.ordinal == int(word)][:1]
    if not word.startswith(("GPU-", _MIG)):
        return []
    matched = [device for device in devices if device.visible.startswith(word)]
    return matched if len(matched) == 1 else []


def _named(devices, gpus, indices, reason):
    """The devices that nvidia-smi's indices stand for; one that says why for each that there is not."""
    addresses = {
        gpu["index"]: address
        for address, gpu in gpus.items()
        if known(gpu.get("index")) is not None
    }
    chosen = []
    for index in indices:
        address = addresses.get(index)
        found = [device for device in devices if device.lane == address]
        if not found:
            missing = Device({"index": index}, lane=address or "index %d" % index)
            missing.outcome = "not-run"
            missing.reason = _not_there(index, gpus.get(address, {}), addresses, reason)
            missing.seed.update(_seed({}, gpus.get(address, {})))
            found = [missing]
        chosen += found
    return chosen


def _not_there(index, gpu, addresses, reason):
    if gpu:
        if gpu.get("mig_enabled") is True and not reason:
            return "MIG is on, and there is no instance"
        return reason or "libcuda lists no device at %s" % gpu["pci_address"]
    if not addresses:
        return "--gpu %d: NVML lists no GPU%s" % (index, ", and %s" % reason if reason else "")
    listed = ", ".join(str(number) for number in sorted(addresses))
    raise NoSuchGpu("--gpu %d: nvidia-smi lists no such GPU (there are: %s)" % (index, listed))


def _judge(device, gpu, options, ours):
    """Fill in why kernels may not run on a device: it is in use, or its compute mode forbids it."""
    processes = [
        process
        for process in known(gpu.get("processes")) or []
        if process["pid"] not in ours and "C" in process.get("kind", "") and not _idles(process)
    ]
    # A desktop computes with the graphics that it draws; how much the utilization tells.
    working = [process for process in processes if "G" not in process["kind"]]
    mode = known(gpu.get("compute_mode"))
    if mode == "Prohibited":
        device.outcome, device.reason = "not-run", "its compute mode is Prohibited"
    elif mode in ("Exclusive_Process", "Exclusive_Thread") and processes:
        device.outcome = "not-run"
        device.reason = "its compute mode is %s, and %s" % (mode, _users(processes))
    else:
        seen = _users(working) if working else _load(gpu)
        if seen and options.busy_ok:
            device.seed.update(busy=True, reason=seen)
        elif seen:
            device.outcome, device.reason, device.passing = "busy", seen, not working


def _idles(process):
    name = known(process.get("name"))
    return isinstance(name, str) and os.path.basename(name.split(" ")[0]) == _MPS_SERVER


def _users(processes):
    first = processes[0]
    memory = known(first.get("memory_mib"))
    shown = "%s (process %d%s) is using it" % (
        known(first.get("name")) or "a process",
        first["pid"],
        "" if memory is None else ", %d MiB" % memory,
    )
    return shown if len(processes) == 1 else shown + ", and %d more" % (len(processes) - 1)


def _load(gpu):
    utilization = known(gpu.get("utilization_percent"))
    if utilization is None or utilization < BUSY:
        return ""
    return "its utilization was %d %%" % utilization
