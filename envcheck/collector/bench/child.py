"""The inside of a row's process: imports the framework, builds the training, warms up, then obeys orders."""

import contextlib
import json
import os
import sys
import time

from ..runtime import shadows
from ..runtime.child import PACKAGE
from . import measure, styles, telling
from .place import Place

# Started as `python -c BOOTSTRAP ROOT PARAMS`, as a probe is.
BOOTSTRAP = PACKAGE + (
    "from envcheck.collector.runtime.shadows import hidden\n"
    "with hidden():\n"
    "    from envcheck.collector.bench.child import main\n"
    "main(sys.argv[2])\n"
)


def main(params):
    descriptor = os.dup(1)  # which nothing that the framework starts inherits
    os.dup2(2, 1)  # what a library prints from here on is no record
    tell = telling.RowTeller(descriptor)
    code = 0
    try:
        _work(json.loads(params), tell)
        tell.tell(done=True)
    except BaseException as error:  # SystemExit too: some packages end whoever imports them
        code = 1
        tell.failed(error)
    with contextlib.suppress(Exception):  # a framework may have put something of its own there
        sys.stderr.flush()
    # Exit handlers of CUDA and of frameworks may crash or hang: everything is told.
    os._exit(code)


def _work(params, tell):
    """params: {"row", "place", "warm_up": seconds}."""
    row = params["row"]
    style = styles.load(row["style"])
    began = time.monotonic()
    with shadows.hidden():
        from .. import framework
    module, problem = framework.load(style.FRAMEWORK)
    if module is None:
        raise ImportError("import %s: %s" % (style.FRAMEWORK, problem))
    version = framework.ask(framework.version_of, module)
    tell.tell(run={"framework_version": version})
    tell.tell(ready=round(time.monotonic() - began, 3))
    began = time.monotonic()
    training = style.build(module, row, Place(**params["place"]))
    seconds = round(time.monotonic() - began, 3)
    tell.tell(built={"seconds": seconds, "parameters": int(training.parameters)})
    if not row["steps"]:
        tell.tell(warm=measure.warm_up(training.run, time.monotonic, params["warm_up"]))
        tell.tell(evidence=training.evidence())
    for order in _orders():
        if "measure" in order:
            tell.tell(repetition=_repetition(training, order["measure"]))
            tell.tell(losses=[training.loss()])
        elif "losses" in order:
            tell.tell(losses=_losses(training, order["losses"]))
        else:
            break
    if hasattr(training, "accuracy"):
        tell.tell(run={"accuracy": training.accuracy()})
    tell.tell(memory=training.memory())


def _orders():
    """What the parent says, until it says no more."""
    with os.fdopen(os.dup(0), encoding="utf-8") as said:
        for text in iter(said.readline, ""):
            yield json.loads(text)


def _repetition(training, steps):
    began = time.monotonic()
    skipped = training.run(steps)
    seconds = time.monotonic() - began
    return {"seconds": seconds, "steps": steps, "skipped": int(skipped or 0)}


def _losses(training, steps):
    """The loss after each of so many steps."""
    found = []
    for _step in range(steps):
        training.run(1)
        found.append(training.loss())
    return found
