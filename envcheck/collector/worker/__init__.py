"""The one protocol of work in a process of its own: a child that reports, a parent that watches.

Both sides exchange messages, one JSON object a line. The child may die or hang at any point: what it
reported before stays, and the stage that it had announced is the one to blame.

From child to parent (``messages.Writer``):
  {"begin": {...}}              imports are done, and the work begins; facts of the run
  {"stage": NAME, "of": KEY}    announced before anything that may fail or hang
  {"result": ..., "of": KEY}    anything known; it ends the stage of the same key
  {"done": {...}}               the last one; {"outcome", "reason"} where the work ended early

The child's side. A module of the collector with ``work(params, tell)``::

    def work(params, tell):
        tell.begin(framework_version="2.16.1")
        tell.stage("build", "resnet50")
        tell.result(build(), "resnet50")

An exception that escapes ends the work: with the outcome of ``messages.Ended`` and its subclasses, or with
"error" and the exception's text. Whatever libraries print goes to stderr and is never taken for a message.

The parent's side (``parent.Worker``)::

    argv = worker.command(python, "envcheck.collector.kernels.level0", params)
    child = start(argv, deadline, cwd, env)     # a process.Child
    one = Worker(child, Limits(start=60.0, stage=5.0, total=10.0), take=report.take)
    while one.step():                           # looks once, never waits
        pause(0.005)
    one.outcome, one.reason                     # "ok", or why not, in one sentence

``Limits`` are seconds: ``start`` until "begin"; ``stage`` since the last message after that; ``total`` since
"begin"; ``stages``, {NAME: seconds} for all stages of that name together, which do not count in ``total``.
None is no limit. Past a limit the parent kills the process group; a process that does not even die by
SIGKILL is reported in ``one.stuck``. ``take(kind, value, key)`` gets "begin" and "result" messages, as they
come; values come from a foreign process, so that a ValueError, KeyError, TypeError, AttributeError or
ArithmeticError that it raises drops the message.

Messages travel in the child's standard output, which is a file in memory. Work that takes hours gives the
path of a named pipe as params["pipe"], and the pipe (``pipes.LinePipe``) to its Worker.
"""

import json
import os
from collections import namedtuple

# The directory, or the zip, that holds the envcheck package.
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

# How a document's Python is started. document: "machine" or "target".
PythonCommand = namedtuple("PythonCommand", "document argv cwd")

# Makes `envcheck` of the directory or zip sys.argv[1] importable, and leaves sys.path as its user has it.
PACKAGE = (
    "import sys\n"
    "package = type(sys)('envcheck')\n"
    "package.__path__ = [sys.argv[1] + '/envcheck']\n"
    "sys.modules['envcheck'] = package\n"
)
# Runs as `python -c BOOTSTRAP ROOT MODULE PARAMS`.
BOOTSTRAP = PACKAGE + (
    "from envcheck.collector.runtime.shadows import hidden\n"
    "with hidden():\n"
    "    from envcheck.collector.worker.child import main\n"
    "main(sys.argv[2], sys.argv[3])\n"
)


def command(python, module, params):
    """The command line of a worker. python: that of the interpreter. params: what JSON can hold."""
    return list(python) + ["-c", BOOTSTRAP, ROOT, module, json.dumps(params)]
