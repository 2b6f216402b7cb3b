"""The inside of a probe's process: run one probe, and frame its facts on stdout."""

import contextlib
import importlib
import json
import os
import signal
import sys

from ..facts import Facts, dumps
from . import orphans, shadows
from .context import Context

# What stands between the marks is the answer, whatever a chatty sitecustomize or library prints.
BEGIN = "\n<<<envcheck facts\n"
END = "\nenvcheck facts>>>\n"

OWN = "envcheck.collector.probes."

# Started as `python -c BOOTSTRAP ROOT MODULE PARAMS`. ROOT holds the package, as a directory or inside
# a zip; sys.path stays the way the interpreter's user has it.
PACKAGE = (
    "import sys\n"
    "package = type(sys)('envcheck')\n"
    "package.__path__ = [sys.argv[1] + '/envcheck']\n"
    "sys.modules['envcheck'] = package\n"
)
BOOTSTRAP = PACKAGE + (
    "from envcheck.collector.runtime.shadows import hidden\n"
    "with hidden():\n"
    "    from envcheck.collector.runtime.child import main\n"
    "main(sys.argv[2], sys.argv[3])\n"
)


def main(module, params):
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints from here on is not part of the answer
    if not module.startswith(OWN):
        _stand_in()
    params = json.loads(params)
    context = Context(dict(os.environ), root=params.pop("root", "/"), params=params)
    with shadows.hidden():
        probe = _from_file(module) if module.startswith("/") else importlib.import_module(module)
    facts = probe.collect(context)
    if not isinstance(facts, Facts):  # another package's probe need not know this class
        facts = Facts.of(facts)
    answer.write(BEGIN + dumps({"facts": facts.values, "sources": facts.sources}) + END)
    answer.flush()
    with contextlib.suppress(Exception):  # a framework may have put something of its own there
        sys.stderr.flush()
    # Libraries that a probe loaded may crash or hang in their exit handlers: the answer is out.
    os._exit(0)


def _stand_in():
    """Fork, and go on in the child: this process is the only parent that another package's probe can kill.

    It ends as the child does, and the collector names the probe that it stands for.
    """
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


def _from_file(path):
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("foreign_probe", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def parse(stdout):
    """The answer inside a child's output (bytes): {"facts", "sources"}. Raises ValueError without one."""
    begin, end = BEGIN.strip().encode(), END.strip().encode()
    start = stdout.rfind(begin)
    stop = stdout.rfind(end)
    if start < 0 or stop < start:
        raise ValueError("no facts in its output")
    try:
        answer = json.loads(stdout[start + len(begin) : stop].decode("utf-8"))
    except RecursionError:
        raise ValueError("its facts are nested too deeply")
    if not isinstance(answer, dict) or not isinstance(answer.get("facts"), dict):
        raise ValueError("no facts in its output")
    return answer
