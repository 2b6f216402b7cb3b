"""One job's processes: watched while they report, and started again without what they died of."""

import time
from collections import namedtuple

from ..facts import is_unavailable, unavailable
from ..worker import parent
from . import merging, records

# Seconds. start: until the first stage begins (drivers and frameworks take their time). stage: without a
# new message after that. seconds: for the work of a whole process.
Limits = namedtuple("Limits", "start stage seconds")
LIMITS = {
    "L0": Limits(60.0, 5.0, 10.0),  # eight GPUs without persistence start slowly
    "L1": Limits(20.0, 6.0, 10.0),
    "L2": Limits(90.0, 30.0, 30.0),
}
COMPILING = 240.0  # for all that a part's framework compiles: XLA may take minutes for a new chip
_WORTH_IT = 0.5  # seconds left, below which no process is started again

NO_TIME = "no time left for it"
_NAMES = "names"  # the stage in which CUPTI looks on; the mode is known before it


class Attempt(object):
    """One Job at work: call ``step`` until it is False, then ``run`` is its LevelRun.

    stuck: a Result's, of a process that could not be killed. evidence: the last lines that a process which
    died wrote. fatal: why nothing else should be run on this GPU. died: whether any of its processes ended
    before it was done.
    """

    def __init__(self, job, params, start, limits, clock=time.monotonic):
        """params: what every process of it gets. start(job, part, params, deadline): a process.Child."""
        self.job = job
        self.params = params
        self.limits = limits
        self.stuck = None
        self.evidence = self.fatal = ""
        self.died = False
        self._start = start
        self._clock = clock
        self._began = self._ended = clock()
        self._waiting = list(job.parts)
        self._reports = []  # a records.PartReport for every part
        self._outcome, self._reason = job.outcome, job.reason
        self._left_out = {}  # key: why it was never reached
        self._restarts = 0
        self._worker = None

    def step(self):
        """Look once, without waiting. Whether there is more to come."""
        if self._worker is None:
            if self._outcome or not self._waiting:
                return False
            self._open(self._waiting.pop(0))
            if self._worker is None:
                return False
        worker = self._worker
        self._ended = self._clock()
        if not worker.step():
            self._worker = None
            self._end(worker)
        return self._worker is not None or (bool(self._waiting) and not self._outcome)

    def _open(self, part):
        self._part = part
        self._reports.append(records.PartReport())
        self._remaining = self.limits.seconds  # of work, for all processes of this part
        self._may_compile = COMPILING
        self._tries = 0
        self._names = True
        self._lost = {}  # stage: why what it finds is not known
        self._cut_short = ""  # why a process of it ended before all was looked at
        self._dead = set()
        self._launch([])

    def _launch(self, skip):
        report = self._reports[-1]
        params = dict(
            self.params,
            module=self.job.module,
            skip=skip,
            dead=sorted(self._dead),
            names=self._names,
            seconds=round(self._remaining, 3),
            settings=self._part.settings,
        )
        deadline = self.limits.start + self._remaining + 2 * self.limits.stage
        if self.job.level == "L2":
            deadline += self._may_compile
        child = self._start(self.job, self._part, params, deadline)
        stages = {records.COMPILE: self._may_compile}
        limits = parent.Limits(self.limits.start, self.limits.stage, stages=stages)
        self._worker = parent.Worker(child, limits, report.take, clock=self._clock)

    def _end(self, worker):
        """A process is over: blame what it died of, and start the next, if any of it is left."""
        report = self._reports[-1]
        compiled = worker.spent.get(records.COMPILE, 0.0)
        self._may_compile = max(0.0, self._may_compile - compiled)
        if worker.begun is not None:
            self._remaining = max(0.0, self._remaining - (self._ended - worker.begun - compiled))
        if worker.done and worker.stuck is None:
            self._finish()
            return
        self.died = True
        outcome, why = self._verdict(worker)
        self.evidence = worker.evidence or self.evidence
        if worker.begun is None:
            self._failed(outcome, why, worker)
            return
        self._cut_short = why
        self._blame(worker.stage, outcome, why)
        unreached = [name for name in self._part.keys if name not in report.modes]
        if worker.stuck is not None:
            self.stuck, self.fatal = worker.stuck, "a process of %s cannot be ended" % self.job.name
            self._leave(unreached, self.fatal)
            self._give_up(self.fatal)
        elif not unreached:
            self._finish()
        elif self._tries >= len(self._part.keys):
            self._leave(unreached, "not reached: %s" % why)
        elif self._remaining < _WORTH_IT or self._may_compile < _WORTH_IT:
            self._leave(unreached, NO_TIME if self._may_compile else why)
        else:
            self._tries += 1
            self._restarts += 1
            self._launch(list(report.modes))

    def _verdict(self, worker):
        """(outcome, why) of a process that ended before it was done."""
        compiles = worker.stage is not None and worker.stage[0] == records.COMPILE
        if compiles and worker.outcome == "timeout":
            words = "%s was still compiling after %g s, and was not waited for any longer"
            return "not-run", words % (self.job.framework, COMPILING)
        if worker.result.code == records.DEAD_CONTEXT and worker.outcome == "crashed":
            return "crashed", "its CUDA context broke"
        return worker.outcome, worker.reason

    def _blame(self, begun, outcome, why):
        """Write down what the announced stage came to."""
        report = self._reports[-1]
        if begun is None:
            # What broke its context, it reports itself, and leaves.
            if report.modes.get(report.latest, {}).get("outcome") == "error":
                self._dead.add(report.latest)
            return
        stage, name = begun
        if stage == _NAMES and self._names:
            self._names = False
            self._lost[stage] = "%s while CUPTI looked on" % why
            return
        self._dead.add(name)
        reason = why if outcome == "not-run" else '%s in stage "%s"' % (why, stage)
        mode = report.modes.get(name, merging.mode(name))
        report.modes[name] = dict(mode, outcome=outcome, reason=reason)

    def _failed(self, outcome, why, worker):
        """The process never got to work: neither would another one."""
        self.stuck = worker.stuck
        if self.stuck is not None:
            self.fatal = "a process of %s cannot be ended" % self.job.name
        elif outcome == "timeout" and self.job.level == "L0":
            self.fatal = "%s had %s" % (self.job.name, why)
        if not any(report.modes for report in self._reports):
            # The run as a whole, without modes: of one that is "not-run" nobody would say that it failed.
            self._outcome, self._reason = outcome, why
            self._waiting = []
            return
        modes = self._reports[-1].modes
        unreached = [name for name in self._part.keys if name not in modes]
        if unreached:
            modes[unreached[0]] = merging.mode(unreached[0], outcome=outcome, reason=why)
        self._leave(unreached, why)
        self._give_up(why)

    def _leave(self, names, why):
        """The part is over, and these of its modes were not reached."""
        for name in names:
            if name not in self._reports[-1].modes:
                self._left_out[name] = why
        self._finish()

    def _give_up(self, why):
        """No other part is run either."""
        for part in self._waiting:
            self._reports.append(records.PartReport())
            self._leave(part.keys, why)
        self._waiting = []

    def _finish(self):
        for mode in self._reports[-1].modes.values():
            hardware = dict(mode.get("hardware") or {})
            names = hardware.get("kernel_names")
            if _NAMES in self._lost and (names is None or is_unavailable(names)):
                hardware["kernel_names"] = unavailable("error", self._lost[_NAMES])
            elif names is None and self._cut_short and self._has_names(mode):
                words = "%s, before CUPTI looked on" % self._cut_short
                hardware["kernel_names"] = unavailable("lost", words)
            if hardware:
                mode["hardware"] = hardware

    def _has_names(self, mode):
        """Whether kernels' names belong to what this mode reports."""
        return self.job.level != "L0" and mode.get("outcome") == "ok"

    def run(self):
        """The LevelRun of all that was reported."""
        run = merging.facts(self.job, self._reports)
        run.update(
            outcome=self._outcome or run.get("outcome") or "ok",
            seconds=round(self._ended - self._began, 3),
            restarts=self._restarts,
            modes=merging.modes(self.job, self._reports, self._left_out),
        )
        if self._reason:
            run["reason"] = self._reason
        return run
