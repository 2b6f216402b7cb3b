"""The inside of a system's process: import the framework, run the system; its records alone go to stdout."""

import contextlib
import importlib
import importlib.util
import json
import os
import sys
import time

from ..runtime import orphans, shadows
from ..runtime.child import PACKAGE
from . import telling

# Started as `python -c BOOTSTRAP ROOT MODULE PARAMS`, as a probe is.
BOOTSTRAP = PACKAGE + (
    "from envcheck.collector.runtime.shadows import hidden\n"
    "with hidden():\n"
    "    from envcheck.collector.acceleration.child import main\n"
    "main(sys.argv[2], sys.argv[3])\n"
)


def main(module, params):
    descriptor = os.dup(1)  # which nothing that the system starts inherits
    os.dup2(2, 1)  # what a library prints from here on is no record
    tell = telling.SystemTeller(descriptor)
    code = 0
    try:
        params = dict(json.loads(params), module=module)
        if "parent" in params:  # of a rank, whose parent has threads: it ties itself
            (orphans.tie(params["parent"]) or bool)()
        with shadows.hidden():
            system = importlib.import_module("envcheck.collector.acceleration.systems." + module)
        _work(system, params, tell)
    except telling.NotApplicable as error:
        tell.run(outcome="not-applicable", reason=telling.line(error))
    except telling.CouldNotRun as error:
        tell.run(outcome="not-run", reason=telling.line(error))
    except BaseException as error:  # SystemExit too: some packages end whoever imports them
        code = 1
        tell.run(outcome="error", reason=telling.outcome_of(error)[1])
    if not code:
        tell.tell(done=True)
    with contextlib.suppress(Exception):  # a framework may have put something of its own there
        sys.stderr.flush()
    # Exit handlers of CUDA and of frameworks may crash or hang: everything is told.
    os._exit(code)


def _work(system, params, tell):
    for name in getattr(system, "MODULES", ()):
        if not _is_there(name):
            raise telling.NotApplicable("%s is not installed" % name)
    by_ranks = getattr(system, "BY_RANKS", False) and "rank" not in params
    framework = None
    if not by_ranks:
        further = getattr(system, "IMPORTS", ()) if "rank" in params else ()
        framework = _framework(getattr(system, "FRAMEWORK", ""), further, tell)
    if "rank" in params:
        tell.answer(system.rank(framework, params))
    else:
        system.run(framework, params, tell)


def _framework(name, further, tell):
    """The framework's module, None where there is to be none; says when it is imported."""
    began = time.monotonic()
    module = None
    if name:
        with shadows.hidden():
            from .. import framework
        module, problem = framework.load(name)
        if module is None:
            raise telling.CouldNotRun("import %s: %s" % (name, problem))
        tell.run(framework_version=framework.ask(framework.version_of, module))
    for one in further:
        importlib.import_module(one)
    tell.tell(ready=round(time.monotonic() - began, 3))
    return module


def _is_there(name):
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError, AttributeError):
        return False
