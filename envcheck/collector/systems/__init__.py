"""The acceleration systems, a file for each system and framework, found by walking this folder.

Each file says:
  SYSTEM     its name, as ``doctor --only`` takes it: "xla". Several files may share one.
  DEADLINE   seconds for its work, beyond the framework's import
and, where it is not what stands here:
  DOCUMENT = "target"  whose interpreter runs it: "machine" is envcheck's own, with the driver alone
  FRAMEWORK = ""       what it imports first: "tensorflow", "torch" or "jax"
  MODULES = ()         what else must be there to import; where it is not, the system is not applicable
  LIBRARIES = ()       the target's own that it calls: "libnccl"; without any of one it is not applicable
  BUILT_WITH = ()      what its framework must be built with: the fact that says so, and its name:
                       ("tensorrt_build", "TensorRT")
  GPUS = 0             how many it needs: with 0 it runs on the CPU where there is none; with 2 it gets all
  ON_CPU = ""          when it runs on the CPU all the same: "none" where there is no GPU, "few" where there
                       are fewer than it needs, too, "always"
  BY_RANKS = False     its ranks import the framework, all at once, and its own process does not: run() gets
                       None, and ranks.run(..., tell=tell) says when they are ready
  IMPORTS = ()         what its ranks import, too, before they are ready
  EACH_GPU = False     it runs on every GPU in turn, not on the first alone
  ALONE = False        it is timed: nothing else runs beside it

``run(framework, params, tell)`` does the work. framework: the module, None without one. params: {"device":
"gpu" or "cpu", "gpus": [PCI address], "memory_mib": what it may take of each GPU, None where that is not
known, "seconds": for its work, "sweep": whether what moves data does so by size, too, "libraries":
{"libnccl": [path, the likeliest first]}, "pynvml", "root", "module"}. tell: a
telling.SystemTeller. It sees the GPUs that it is given and no other: they are CUDA's 0, 1, …

    with tell.trial("jit_compile") as trial:
        trial["modules"] = 1
    with tell.trial("off", control=True) as trial:
        trial["modules"] = 0

What a trial raises becomes its outcome, and the next one runs. records.NotApplicable and
records.CouldNotRun, raised outside of trials, are the outcome of the whole.

A file that starts further processes of itself (ranks.run) has a ``rank(framework, params)``, too, which
returns what that process saw.
"""

import importlib
import pkgutil

DOCUMENTS = ("machine", "target")
FRAMEWORKS = ("", "tensorflow", "torch", "jax")
ON_CPU = ("", "none", "few", "always")
MOST = 120.0  # seconds that a system may ask for
_DEADLINE = "its DEADLINE is not above 0 and up to %g" % MOST


class NotASystem(Exception):
    """A file is no system: one sentence that says what is missing."""


class System(object):
    """One file of this folder, as the process that starts it sees it."""

    def __init__(self, name, said):
        """said: the file's constants and functions. Raises NotASystem."""
        self.module = name
        self.name = said.get("SYSTEM")
        self.deadline = said.get("DEADLINE")
        self.document = said.get("DOCUMENT", "target")
        self.framework = said.get("FRAMEWORK", "")
        self.libraries = said.get("LIBRARIES", ())
        self.built_with = said.get("BUILT_WITH", ())
        self.gpus = said.get("GPUS", 0)
        self.on_cpu = said.get("ON_CPU", "")
        self.each_gpu = said.get("EACH_GPU", False)
        self.alone = said.get("ALONE", False)
        if not self.name or not callable(said.get("run")):
            raise NotASystem("systems/%s.py lacks SYSTEM or run(framework, params, tell)" % name)
        for wrong, words in (
            (not _is_number(self.deadline) or not 0 < self.deadline <= MOST, _DEADLINE),
            (self.document not in DOCUMENTS, "its DOCUMENT or FRAMEWORK is none"),
            (self.framework not in FRAMEWORKS, "its DOCUMENT or FRAMEWORK is none"),
            (self.on_cpu not in ON_CPU, "its ON_CPU is none"),
            (self.framework and self.document == "machine", "a FRAMEWORK is the target's"),
            (not _is_number(self.gpus) or self.gpus < 0, "its GPUS is no number of GPUs"),
            (
                self.each_gpu and self.gpus > 1,
                "EACH_GPU and GPUS = %s exclude each other" % self.gpus,
            ),
            (not isinstance(said.get("MODULES", ()), tuple), "its MODULES is no tuple of names"),
            (not isinstance(self.libraries, tuple), "its LIBRARIES is no tuple of names"),
        ):
            if wrong:
                raise NotASystem("systems/%s.py: %s" % (name, words))


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def load():
    """The Systems, those that run side by side first, then by name."""
    names = [name for _finder, name, package in pkgutil.iter_modules(__path__) if not package]
    found = [System(name, vars(importlib.import_module(__name__ + "." + name))) for name in names]
    return sorted(found, key=lambda one: (one.alone, one.module))
