"""The one protocol of work in a process of its own: JSON messages, one a line, from child to parent.

  {"begin": {...}}              imports are done, and the work begins; facts of the run
  {"stage": NAME, "of": KEY}    announced before anything that may fail or hang
  {"result": ..., "of": KEY}    anything known; it ends the stage of the same key
  {"done": {...}}               the last one; {"outcome", "reason"} where the work ended early

A child is a module of the collector with ``work(params, tell)``, started by ``command``; ``tell`` is a
messages.Writer. An exception that escapes ends the work: with the outcome of ``messages.Ended``, or "error".
The parent is a ``parent.Worker`` over a process.Child. Whatever the child reported before it died or hung
counts, and the stage that it had announced is the one to blame. Messages travel in standard output, a file
in memory; work that takes hours gives the path of a named pipe as params["pipe"] (``pipes.LinePipe``).
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


def work_of(module, params):
    """The same work for a copy of this process: a function for process.Child."""

    def work():
        from .child import main

        main(module, json.dumps(params))

    return work


def command(python, module, params):
    """The command line of a worker. python: that of the interpreter. params: what JSON can hold."""
    return list(python) + ["-c", BOOTSTRAP, ROOT, module, json.dumps(params)]
