"""What is to run where: a SystemJob for every system and framework, on one GPU, on each, on all, or none."""

import os
import time

from ... import framework
from ...facts import known
from ...kernels.jobs import FRAMEWORKS
from ...worker.messages import one_line
from ...worker.parent import Limits, Worker
from . import records

_MEMORY_SHARE = 4  # of what is free, one part in so many is taken
_TOO_MUCH = "it reported more than fits into a Snapshot: the rest is left out"


class SystemJob(object):
    """One SystemRun to be made. outcome: "" where it is to run, else what comes of it, with the reason.

    worker: its process, once it is open. folder: for its temporary files, while it runs.
    """

    def __init__(self, system, devices=(), on="gpu"):
        self.system, self.devices, self.on = system, list(devices), on
        self.outcome = self.reason = ""
        self.folder = self.worker = None
        self._reader = records.SystemReader()

    @property
    def name(self):
        """For people who watch: "xla jax", "memory GPU 0"."""
        names = [device.name for device in self.devices] if self.system.each_gpu else []
        return " ".join(filter(None, [self.system.name, self.system.framework] + names))

    @property
    def visible(self):
        """CUDA_VISIBLE_DEVICES of its process; None where that is the user's."""
        if self.on == "cpu" and self.system.on_cpu:
            return "-1"  # it leaves those alone that are there
        return ",".join(device.visible for device in self.devices) if self.devices else None

    @property
    def addresses(self):
        """The PCI addresses of its GPUs, as far as they are known."""
        return list(filter(None, [device.seed.get("pci_address") for device in self.devices]))

    def without(self, outcome, reason):
        self.outcome, self.reason = outcome, reason
        return self

    def open(self, child, clock=time.monotonic, patience=1):
        """patience: what its limits are multiplied by."""
        limits = Limits(records.IMPORT * patience, total=self.system.deadline * patience)
        self.worker = Worker(child, limits, self._reader.take, clock=clock)

    def _why(self):
        """(outcome, reason) of the run."""
        worker = self.worker
        outcome, reason = worker.outcome, worker.why
        if outcome == "timeout" and worker.begun is None:
            name = self.system.framework or "its process"
            reason = "%s was not imported within %g s" % (name, worker.limits.start)
        elif outcome == "timeout":
            reason = "no answer within %g s" % worker.limits.total
        return outcome if outcome in records.OUTCOMES else "error", reason

    def facts(self):
        """The SystemRun."""
        reader, worker = self._reader, self.worker
        run = {"system": self.system.name, "device": self.on, "gpus": self.addresses}
        run.update(outcome=self.outcome or "ok", reason=self.reason, trials=reader.trials)
        if self.system.framework:
            run["framework"] = self.system.framework
        if worker is None:
            return run
        run.update(reader.run)
        run["outcome"], run["reason"] = outcome, reason = self._why()
        if worker.stage is not None and not worker.done:
            name, key = worker.stage
            died = outcome if outcome in records.TRIAL_OUTCOMES else "error"
            found = {"name": name, "outcome": died, "reason": reason}
            reader.trials.append(records.trial_of(found, key))
        if reader.full:
            run.update(outcome="error", reason=_TOO_MUCH)
        if worker.begun is not None:
            run["seconds"] = round(worker.latest - worker.begun, 3)
        run["log"] = [one_line(text) for text in framework.about_gpus(worker.log)]
        return run


def plan(systems, names, chosen, documents):
    """The SystemJobs. names: of the systems that are asked for. chosen: ([Device], why there are none)."""
    devices, why = chosen
    jobs = []
    for system in systems:
        document = documents[system.document]
        if system.name not in names or document is None:
            continue
        section = document.get(system.framework) if system.framework else {}
        if section is None:
            continue  # the target does not have the framework
        refused = _refused(system, document, section, devices, why)
        if refused:
            jobs.append(SystemJob(system).without(*refused))
        else:
            jobs += _jobs(system, section, devices)
    return jobs


def libraries(system, document):
    """{name: [path]} of what a system calls: mapped by a framework, then a wheel's, then the loader's."""
    mapped = []
    for name in FRAMEWORKS:
        facts = (document.get(name) or {}).get("facts") or {}
        mapped += known(facts.get("libraries")) or []
    loaded = known(((document.get("loader") or {}).get("facts") or {}).get("libraries")) or []
    found = {}
    for name in system.libraries:
        paths = [
            known(one.get("path"))
            for one in mapped + sorted(loaded, key=lambda one: one.get("how") != "wheel")
            if one["name"] == name
        ]
        first = {os.path.realpath(path): path for path in reversed(paths) if path}
        found[name] = [path for path in dict.fromkeys(paths) if path in first.values()]
    return found


def _refused(system, document, section, devices, why):
    """(outcome, reason) of what cannot run there; None of what can."""
    facts = section.get("facts") or {}
    lacking = [name for name, paths in libraries(system, document).items() if not paths]
    if lacking and (document.get("loader") or {}).get("facts") is not None:
        return "not-applicable", "the target has no %s" % " and no ".join(lacking)
    if system.framework and section.get("outcome") != "ok":
        return "not-run", "could not be looked at: %s" % (section.get("reason") or "no answer")
    if system.framework and not facts.get("imported"):
        error = (known(facts.get("import_error")) or "").strip().splitlines()
        return "not-run", "cannot be imported: %s" % (error[0] if error else "no reason was given")
    if system.built_with and facts.get(system.built_with[0]) is False:
        built = system.framework, system.built_with[1]
        return "not-applicable", "this %s is built without %s" % built
    if system.gpus and not system.on_cpu:
        if facts.get("cuda_build") is False:
            return "not-applicable", "built without CUDA"
        if not devices:
            return "not-run", "no GPU: %s" % why
    return None


def _jobs(system, section, devices):
    facts = section.get("facts") or {}
    sees_none = system.framework and known(facts.get("gpus")) == []
    few = system.on_cpu == "few" and (sees_none or len(_whole(devices)) < system.gpus)
    if facts.get("cuda_build") is False or not devices or few:
        return [SystemJob(system, on="cpu")]
    if sees_none:
        return [SystemJob(system).without("not-run", "it sees no GPU")]
    if system.each_gpu:
        return [_on(system, [device]) for device in devices]
    return [_on_several(system, devices) if system.gpus > 1 else _on(system, _first_idle(devices))]


def _first_idle(devices):
    return [device for device in devices if not device.outcome][:1] or devices[:1]


def _on_several(system, devices):
    """On all whole GPUs that are idle: of MIG instances CUDA shows a process the first alone."""
    whole = [device for device in devices if not device.instance]
    if len(_whole(devices)) < 2:
        several = len({device.lane for device in devices}) > 1
        why = "MIG instances, of which a process sees one" if several else "one GPU"
        return SystemJob(system, devices[:1]).without("not-applicable", why)
    idle = [device for device in whole if not device.outcome]
    return _on(system, idle if len(idle) > 1 else whole)


def _whole(devices):
    """The lanes of whole GPUs."""
    return {device.lane for device in devices if not device.instance}


def _on(system, devices):
    job = SystemJob(system, devices)
    for device in devices:
        if device.outcome and not job.outcome:
            job.without(device.outcome, "%s: %s" % (device.name, device.reason))
    return job


def memory_mib(devices, machine, width):
    """How much of each GPU a process may take where ``width`` of them run side by side; None: not known."""
    nvml = (machine.get("nvml") or {}).get("facts") or {}
    free = {
        gpu.get("pci_address"): known(gpu.get("memory_free_mib"))
        for gpu in known(nvml.get("gpus")) or []
    }
    found = [free.get(device.seed.get("pci_address")) for device in devices]
    if not found or None in found or any(device.instance for device in devices):
        return None  # of an instance NVML's figure is that of the whole GPU
    return min(found) // _MEMORY_SHARE // width
