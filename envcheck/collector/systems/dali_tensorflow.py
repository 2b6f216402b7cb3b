"""DALI's plugin for TensorFlow: its library is loaded into the TensorFlow that is installed."""

import glob
import importlib
import importlib.util
import os

from .running import records

SYSTEM = "dali"
FRAMEWORKS = ("tensorflow",)
MODULES = ("nvidia.dali",)
DEADLINE = 20.0


def run(_tensorflow, _params, tell):
    if not _is_there():
        raise records.NotApplicable("nvidia-dali-tf-plugin is not installed")
    with tell.trial("not imported", control=True) as trial:
        trial["libraries"] = _mapped()
    with tell.trial("tensorflow plugin") as trial:
        plugin = importlib.import_module("nvidia.dali.plugin.tf")
        trial["libraries"] = _mapped()
        trial["dataset"] = hasattr(plugin, "DALIDataset")


def _is_there():
    """A package of its own, or, with DALI before 0.3, files in DALI's."""
    if importlib.util.find_spec("nvidia.dali_tf_plugin"):
        return True
    folder = os.path.dirname(importlib.util.find_spec("nvidia.dali").origin)
    return bool(glob.glob(os.path.join(folder, "plugin", "libdali_tf*.so")))


def _mapped():
    """The names of the plugin's libraries in this process."""
    with open("/proc/self/maps", errors="replace") as file:
        names = {
            os.path.basename(line.split(" ")[-1].strip()) for line in file if "libdali_tf" in line
        }
    return sorted(names)
