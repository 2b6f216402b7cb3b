"""The inside of a row's process: imports the framework, builds the model, warms up and measures."""

import time

from ..facts import from_error
from ..runtime import shadows
from ..worker import messages
from . import styles
from .records import RowFailed
from .warming import Warming, steps_in

MODULE = __name__  # which worker.command runs
_AGAIN = 0.2  # seconds of steps after the evidence, with which nothing that it compiled is measured


def work(params, tell):
    """params: {"row", "place", "repetitions", "seconds": of one, "warm_up": seconds at most}."""
    row = params["row"]
    style = styles.load(row["style"])
    began = time.monotonic()
    with shadows.hidden():
        from .. import framework
    module, problem = framework.load(style.FRAMEWORK)
    if module is None:
        raise RowFailed(ImportError("import %s: %s" % (style.FRAMEWORK, problem)))
    version = framework.ask(framework.version_of, module)
    spent = round(time.monotonic() - began, 3)
    tell.begin(framework_version=version, import_seconds=spent)
    try:
        measure(lambda: style.build(module, row, styles.Place(**params["place"])), params, tell)
    except Exception as error:
        raise RowFailed(error)


def measure(build, params, tell, clock=time.monotonic):
    """Each stage ends with its result. Without memory, evidence or loss, rates are measured all the same."""
    tell.stage("build", "built")
    began = clock()
    training = build()
    seconds = round(clock() - began, 3)
    tell.result({"seconds": seconds, "parameters": int(training.parameters)}, "built")
    agree = getattr(training, "agree", int)

    def run(steps):
        began = clock()
        skipped = int(training.run(steps) or 0)
        return {"t": began, "seconds": clock() - began, "steps": steps, "skipped": skipped}

    tell.stage("warm-up", "warm")
    warming = Warming(params["warm_up"])
    steps = agree(warming.next())
    while steps:
        warming.ran(steps, run(steps)["seconds"])
        steps = agree(warming.next())
    warm = {"steps": warming.steps, "seconds": warming.seconds, "steady": warming.steady}
    tell.result(dict(warm, rate=warming.rate), "warm")
    tell.stage("evidence", "evidence")
    tell.result(_memory(training), "memory")
    tell.result(_evidence(training), "evidence")
    run(agree(steps_in(_AGAIN, warming.rate)))
    steps = agree(steps_in(params["seconds"], warming.rate))
    for _number in range(params["repetitions"]):
        tell.stage("measure", "repetition")
        found = run(steps)
        tell.result(dict(found, loss=_loss(training)), "repetition")


def _memory(training):
    try:
        return dict(training.memory())
    except Exception as error:
        return {name: from_error(error) for name in ("tensors_mib", "pool_mib")}


def _evidence(training):
    try:
        return training.evidence()
    except Exception as error:
        return {"problem": messages.describe(error)}


def _loss(training):
    try:
        return float(training.loss())
    except Exception:
        return None
