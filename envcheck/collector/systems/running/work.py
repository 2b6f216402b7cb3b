"""The inside of a system's process: imports the framework and runs the system, or one of its ranks."""

import importlib
import importlib.util
import time

from ...runtime import orphans, shadows
from . import records

MODULE = __name__  # which worker.command runs


def work(params, tell):
    """params: those of the system, "module", and of a rank "rank" and "parent"."""
    is_rank = "rank" in params
    if "parent" in params:  # of a rank, whose parent has threads: it ties itself
        (orphans.tie(params["parent"]) or bool)()
    tell = records.SystemWriter(tell)
    with shadows.hidden():
        system = importlib.import_module("envcheck.collector.systems." + params["module"])
    for name in getattr(system, "MODULES", ()):
        if not _is_there(name):
            raise records.NotApplicable("%s is not installed" % name)
    framework = None
    if is_rank or not getattr(system, "BY_RANKS", False):
        framework = _framework(params.get("framework"), tell)
    if is_rank:
        tell.answer(system.rank(framework, params, tell))
    else:
        system.run(framework, params, tell)


def _framework(name, tell):
    """The framework's module, None where there is to be none; reports that it is imported."""
    began = time.monotonic()
    module = version = None
    if name:
        with shadows.hidden():
            from ... import framework
        module, problem = framework.load(name)
        if module is None:
            raise records.CouldNotRun("import %s: %s" % (name, problem))
        version = framework.ask(framework.version_of, module)
    tell.begin(time.monotonic() - began, version)
    return module


def _is_there(name):
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError, AttributeError):
        return False
