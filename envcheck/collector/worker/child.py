"""The inside of a worker's process: runs one module's ``work(params, tell)``."""

import importlib
import json
import os

from ..runtime import shadows
from . import messages

ESCAPED = 4  # the exit status after an exception


def main(module, params):
    params = json.loads(params)
    if "pipe" in params:
        from . import pipes

        descriptor = pipes.open_to_write(params["pipe"], waits=not params.get("loses"))
    else:
        descriptor = os.dup(1)  # which no program that the work starts inherits
    os.dup2(2, 1)  # what a library prints from here on is no message
    tell = messages.Writer(descriptor, loses=params.get("loses", False))
    code = 0
    try:
        with shadows.hidden():
            work = load(module).work
        work(params, tell)
        tell.done()
    except (
        BaseException
    ) as error:  # SystemExit too: some packages end the process that imports them
        code = ESCAPED
        if isinstance(error, messages.Ended):
            tell.done(outcome=error.outcome, reason=messages.one_line(error))
        else:
            tell.done(outcome="error", reason=messages.describe(error))
    messages.flush()
    # Exit handlers of CUDA and of frameworks may crash or hang, and everything is reported.
    os._exit(code)


def load(module):
    """A module by its dotted name, or by the path of its file."""
    if not module.startswith("/"):
        return importlib.import_module(module)
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("foreign", module)
    found = module_from_spec(spec)  # type: ignore[arg-type]
    spec.loader.exec_module(found)
    return found
