"""The inside of a level's process: run the level, whose records alone go to stdout."""

import contextlib
import importlib
import json
import os
import sys

from ..runtime import shadows
from ..runtime.child import PACKAGE
from . import records

# Started as `python -c BOOTSTRAP ROOT MODULE PARAMS`, as a probe is.
BOOTSTRAP = PACKAGE + (
    "from envcheck.collector.runtime.shadows import hidden\n"
    "with hidden():\n"
    "    from envcheck.collector.kernels.child import main\n"
    "main(sys.argv[2], sys.argv[3])\n"
)
ESCAPED = 4  # the exit status after an exception that nobody took
SAYS = "@envcheck-escaped "
_LAST = 500  # characters


def main(module, params):
    descriptor = os.dup(1)  # which nothing that the level starts inherits
    os.dup2(2, 1)  # what a library prints from here on is no record
    code = 0
    try:
        with shadows.hidden():
            level = importlib.import_module("envcheck.collector.kernels." + module)
        level.run(json.loads(params), records.Teller(descriptor))
    except BaseException as error:  # SystemExit too: some packages end whoever imports them
        code = ESCAPED
        _say(error)
    with contextlib.suppress(Exception):  # a framework may have put something of its own there
        sys.stderr.flush()
    # Exit handlers of CUDA and of frameworks may crash or hang: everything is told.
    os._exit(code)


def _say(error):
    words = " ".join(str(error).split())[:1000]
    line = "\n%s%s: %s\n" % (SAYS, type(error).__name__, words)
    with contextlib.suppress(OSError):  # closed by the framework
        os.write(2, line.encode("utf-8", "replace"))


def last_words(result):
    """The last lines that the process of this process.Result wrote to stderr, for people."""
    lines = result.stderr.decode("utf-8", "replace").splitlines()
    return "\n".join(line for line in lines if line and not line.startswith(SAYS))[-_LAST:]


def escaped(stderr):
    """What the last exception that escaped was, out of a process's stderr (bytes); "" without one."""
    for line in reversed(stderr.decode("utf-8", "replace").splitlines()):
        if line.startswith(SAYS):
            return line[len(SAYS) :]
    return ""
