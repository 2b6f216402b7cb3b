"""The inside of a probe's process: run one probe; its facts are the one result that it reports."""

import os
import signal
import sys

from ..facts import Facts
from ..runtime import orphans, shadows
from ..runtime.context import Context
from . import command as worker_command
from . import messages
from . import work_of as worker_work_of
from .child import load

if not sys.flags.isolated:  # what is imported later comes from the target's PYTHONPATH
    from ..runtime import process  # noqa: F401

OWN = "envcheck.collector.probes."
_MODULE = "envcheck.collector.worker.probe"


def command(python, module, params):
    """The command line of a probe's process. params: what the probe gets."""
    return worker_command(python, _MODULE, {"module": module, "params": params})


def work_of(module, params):
    """The same for a copy of this process."""
    return worker_work_of(_MODULE, {"module": module, "params": params})


def parse(result):
    """The answer in a process.Result: {"facts", "sources"}. Raises ValueError without one."""
    found = [
        message["result"]
        for message in messages.read(result.stdout.splitlines())
        if message.get("of") == "facts" and "result" in message
    ]
    if not found or not isinstance(found[-1], dict) or not isinstance(found[-1].get("facts"), dict):
        raise ValueError("no facts in its output")
    return found[-1]


def work(params, tell):
    if not params["module"].startswith(OWN):
        _stand_in()
    given = params["params"]
    context = Context(dict(os.environ), root=given.pop("root", "/"), params=given)
    try:
        with shadows.hidden():
            probe = load(params["module"])
        facts = probe.collect(context)
        if not isinstance(facts, Facts):  # another package's probe need not know this class
            facts = Facts.of(facts)
    except Exception:
        sys.__excepthook__(*sys.exc_info())
        raise
    tell.result({"facts": facts.values, "sources": facts.sources}, "facts")


def _stand_in():
    """Fork, and go on in the child: this process is the only parent that another package's probe can kill."""
    tie = orphans.tie(os.getpid())
    pid = os.fork()
    if pid == 0:
        if tie is not None:
            tie()
        return
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))
