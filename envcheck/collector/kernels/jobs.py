"""What is to run where: a job for every GPU and level, at L2 for every framework."""

import os
import re

from ..facts import known
from .records import key

FRAMEWORKS = ("tensorflow", "torch", "jax")  # as level2.SIDES has them

# At L2: what a process of its own is started for, since cuBLAS reads the override but once.
_AS_THE_USER_HAS_IT = ("default", "switch-on", "switch-off", "half")
_OVERRIDDEN = ("override", "control")
OVERRIDE = "NVIDIA_TF32_OVERRIDE"

_LIBRARIES = ("libcublas", "libcublasLt", "libcupti")
_MAJOR = re.compile(r"\.so\.(\d+)")


class Part(object):
    """One process of a job. keys: the records.key of each mode that it is to tell of."""

    def __init__(self, keys, settings=(), environ=None):
        self.keys = keys
        self.settings = list(settings)
        self.environ = environ or {}


class Job(object):
    """One LevelRun to be made. outcome: "" where it is to run, else what comes of it, with the reason."""

    def __init__(self, level, device, parts=(), framework="", libraries=None):
        self.level = level
        self.device = device
        self.parts = list(parts)
        self.framework = framework
        self.libraries = libraries or dict.fromkeys(_LIBRARIES)
        self.outcome = device.outcome if device else ""
        self.reason = device.reason if device else ""

    @property
    def name(self):
        """For people who watch: "L1 GPU 0", "L2 torch GPU 0"."""
        words = [self.level, self.framework, self.device.name if self.device else ""]
        return " ".join(word for word in words if word)

    @property
    def module(self):
        return {"L0": "level0", "L1": "level1", "L2": "level2"}[self.level]


def plan(devices, target, options):
    """The Jobs for these Devices, in the order of a GPU's. target: its document, None without one."""
    jobs = []
    levels = [level for level in options.levels if target is not None or level == "L0"]
    blas = cublas(target) if "L1" in levels else None
    frameworks = _frameworks(target) if "L2" in levels else []
    for device in devices:
        if "L0" in levels:
            jobs.append(Job("L0", device, [Part([key(mode) for mode in options.modes])]))
        if "L1" in levels:
            jobs.append(_level1(device, blas, options))
        jobs += [
            _level2(device, facts, target, options) for _name, facts, why in frameworks if not why
        ]
    for name, _facts, why in frameworks if devices else ():
        if why:
            jobs.append(Job("L2", None, framework=name))
            jobs[-1].outcome, jobs[-1].reason = "not-run", why
    return jobs


def _level1(device, libraries, options):
    parts = [Part([key(mode) for mode in options.modes])] if libraries else []
    job = Job("L1", device, parts, libraries=libraries)
    if not libraries and not job.outcome:
        job.outcome = "not-run"
        job.reason = "the target has no cuBLAS: no framework mapped one, and the loader finds none"
    return job


def _level2(device, facts, target, options):
    parts = [
        Part(_keys(_AS_THE_USER_HAS_IT, options.modes), _AS_THE_USER_HAS_IT),
        Part(_keys(_OVERRIDDEN, options.modes), _OVERRIDDEN, {OVERRIDE: "0"}),
    ]
    return Job("L2", device, parts, facts["name"], _libraries(facts, _loaded(target) or []))


def _keys(settings, modes):
    keys = []
    for setting in settings:
        if setting == "half":
            keys += [key(mode, setting) for mode in ("fp16", "bf16") if mode in modes]
        elif setting != "switch-on":
            keys.append(key("fp32", setting))
        elif "tf32" in modes:
            keys.append(key("tf32", setting))
    return keys


def _frameworks(target):
    """[(name, facts, why it cannot run)] of the frameworks that the target has."""
    found = []
    for name in FRAMEWORKS:
        section = target.get(name)
        if section is not None:
            facts = section.get("facts") or {}
            found.append((name, facts, _why_not(name, section, facts)))
    return found


def _why_not(name, section, facts):
    if section.get("outcome") != "ok":
        return "%s could not be looked at: %s" % (name, section.get("reason") or "no answer")
    if not facts.get("imported"):
        error = known(facts.get("import_error")) or "no reason was given"
        return "%s cannot be imported: %s" % (name, error.splitlines()[0] if error else "")
    if facts.get("cuda_build") is False:
        return "this %s is built without CUDA" % name
    return ""


def cublas(target):
    """{"libcublas": path or None, "libcublasLt", "libcupti"} for L1; None where the target has no cuBLAS.

    What the first framework mapped; else what the loader finds, which is asked where it was not yet.
    """
    loaded = _loaded(target)
    for _name, facts, why in _frameworks(target):
        libraries = {} if why else _libraries(facts, loaded or [])
        if libraries.get("libcublas"):
            return libraries
    libraries = _libraries({}, loaded or [])
    return libraries if loaded is None or libraries["libcublas"] else None


def _loaded(target):
    """The loader's Libraries that were found; None where the loader was not asked."""
    facts = (target.get("loader") or {}).get("facts")
    if facts is None:
        return None
    return [library for library in facts.get("libraries", ()) if known(library.get("path"))]


def _libraries(framework, loaded):
    """The libraries of one framework: what it mapped, and of the rest what goes with that."""
    mapped = {
        library["name"]: library["path"]
        for library in framework.get("libraries", ())
        if known(library.get("path"))
    }
    blas = mapped.get("libcublas")
    major = _major(blas) or (known(framework.get("built_cuda")) or "").partition(".")[0]
    chosen = {}
    for name in _LIBRARIES:
        chosen[name] = mapped.get(name) or _best(name, loaded, major, chosen.get("libcublas"))
        major = major or _major(chosen[name])
    return chosen


def _best(name, loaded, major, beside):
    """Of the loader's: one of the CUDA major if there is, of a wheel if there is, the newest; else None.

    libcublasLt comes from the directory of libcublas and has its major, or is left to the loader.
    """

    def fitness(library):
        number = _major(known(library.get("soname")) or library["path"])
        return number == major, library.get("how") == "wheel", int(number or 0)

    paths = [library for library in loaded if library["name"] == name]
    if name == "libcublasLt" and beside:
        folder = os.path.dirname(beside)
        paths = [
            library
            for library in paths
            if os.path.dirname(library["path"]) == folder and fitness(library)[0]
        ]
    return max(paths, key=fitness)["path"] if paths else None


def _major(path):
    """The CUDA major in a file's name, "12" of "libcublas.so.12.5.3.2"; "" where there is none."""
    found = _MAJOR.search(os.path.basename(path or ""))
    return found.group(1) if found else ""
