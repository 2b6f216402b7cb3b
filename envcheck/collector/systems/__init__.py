"""The acceleration systems, a file for each, found by walking this folder.

Each file says SYSTEM, its name as ``doctor --only`` takes it, and DEADLINE, the seconds for its work beyond
the framework's import. What else it may say, with its default, is in _OPTIONAL.

``run(framework, params, tell)`` does the work. framework: the module, None without one. params: {"device":
"gpu" or "cpu", "gpus": [PCI address], "memory_mib": what it may take of each GPU, None where that is not
known, "seconds": for its work, "libraries": {"libnccl": [path, the likeliest first]}, "framework": its
name, "pynvml", "module"}. tell: a records.SystemWriter. It sees the GPUs that it is given and no
other: they are CUDA's 0, 1, …

    with tell.trial("jit_compile") as trial:
        trial["modules"] = 1
    with tell.trial("off", control=True) as trial:
        trial["modules"] = 0

What a trial raises becomes its outcome, and the next one runs. records.NotApplicable and
records.CouldNotRun, raised outside of trials, are the outcome of the whole. A file that starts further
processes of itself (ranks.run) has ``rank(framework, params, tell)``, too, which returns their answer.
"""

import importlib
import pkgutil

_OPTIONAL = {
    "DOCUMENT": "target",  # whose interpreter runs it; "machine": envcheck's own, with the driver alone
    "FRAMEWORKS": ("",),  # runs in each of "tensorflow", "torch", "jax", which is imported first
    "MODULES": (),  # must be there to import; else the system is not applicable
    "LIBRARIES": (),  # the target's own that it calls: "libnccl"; without any of one it is not applicable
    "BUILT_WITH": (),  # a fact of its framework, and what it stands for: ("tensorrt_build", "TensorRT")
    "GPUS": 0,  # how many it needs: with 0 it runs on the CPU where there is none; with 2 it gets all
    "ON_CPU": "",  # runs there all the same: "none": without a GPU, "few": with fewer than GPUS
    "BY_RANKS": False,  # its ranks import the framework and run() gets None; ranks.run(tell=) reports them
    "EACH_GPU": False,  # it runs on every GPU in turn, not on the first alone
    "ALONE": False,  # it is timed: nothing else runs beside it
}


class System(object):
    """One file of this folder in one framework; attributes: its constants, in small letters."""

    def __init__(self, module, framework, file):
        """file: the constants of the file, by their names."""
        self.module, self.framework = module, framework
        self.name, self.deadline = file["SYSTEM"], file["DEADLINE"]
        for name, default in _OPTIONAL.items():
            setattr(self, name.lower(), file.get(name, default))


def load():
    """The Systems, those that run side by side first, then by name."""
    names = [name for _finder, name, package in pkgutil.iter_modules(__path__) if not package]
    files = {name: vars(importlib.import_module(__name__ + "." + name)) for name in names}
    found = [
        System(name, framework, file)
        for name, file in files.items()
        for framework in file.get("FRAMEWORKS", ("",))
    ]
    return sorted(found, key=lambda one: (one.alone, one.module, one.framework))
