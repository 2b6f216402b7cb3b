"""The parent's side of a worker: takes its messages, ends it past its limits, and says what became of it."""

import time

from . import messages

# What ``take`` may raise for a message that makes no sense.
_MALFORMED = (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError)


class Limits(object):
    """Seconds, None for no limit: ``start`` until "begin", ``stage`` since the last message after that,
    ``total`` since "begin"; ``stages``, {NAME: seconds}, of all stages of a name, which ``total`` leaves out.
    """

    def __init__(self, start=None, stage=None, total=None, stages=None):
        self.start = start
        self.stage = stage
        self.total = total
        self.stages = stages or {}

    @property
    def most(self):
        """The most that the process may take in all; for the deadline of its process.Child."""
        limits = [self.start, self.stage, self.total] + list(self.stages.values())
        return sum(seconds or 0.0 for seconds in limits)


class Worker(object):
    """One process at work. Call ``step`` until it is False; then ``outcome`` and ``reason`` are known.

    begun: when, by the clock. stage: (name, key) of what was announced and has no result. spent: {name:
    seconds in stages that have a limit of their own}. result: the process.Result. log: its stderr.
    """

    def __init__(self, child, limits, take, pipe=None, clock=time.monotonic, mark=messages.MARK):
        """child: a process.Child. take(kind, value, key): gets the messages "begin" and "result".

        pipe: where they come from, instead of standard output. What take raises drops the message.
        """
        self.child = child
        self.limits = limits
        self.begun = self.stage = self.result = self.stuck = None
        self.spent = {}
        self.done = False
        self.outcome, self.reason = "", ""
        self.log = ""
        self._take = take
        self._pipe = pipe
        self._clock = clock
        self._mark = mark
        self._opened = self.latest = clock()
        self._ended = None  # (outcome, reason) by its own word, or by the one that stopped it
        self.was_stopped = False

    @property
    def runs(self):
        return self.result is None

    @property
    def evidence(self):
        """The last lines that it wrote to stderr."""
        return "\n".join(line for line in self.log.splitlines() if line.strip())[-500:]

    @property
    def why(self):
        """The reason, and what it wrote last where its process died."""
        last = self.evidence.splitlines()[-1:] if self.outcome == "crashed" else []
        return messages.one_line(": ".join([self.reason] + last))

    def step(self):
        """Look once, without waiting. Whether it still runs."""
        if self.result is not None:
            return False
        result = self.child.poll()
        lines = self.child.new_stdout().split(b"\n") if self._pipe is None else self._pipe.lines()
        for message in messages.read(lines, self._mark):
            self._receive(message)
        if result is not None:
            self._end(result)
        else:
            self._check_limits()
        return result is None

    def stop(self, outcome="stopped", reason="it was stopped"):
        """Begin to end it and its process group; ``step`` on until it is over."""
        if self.result is None and self._ended is None:
            self._ended = outcome, reason
            self.was_stopped = True
            self.child.stop()

    def _receive(self, message):
        now = self._clock()
        self._leave_stage(now)
        if "begin" in message:
            self.begun = now if self.begun is None else self.begun
            self._hand("begin", message["begin"], "")
        elif "stage" in message:
            self.stage = str(message["stage"]), str(message.get("of", ""))
        elif "result" in message:
            self._receive_result(message["result"], message.get("of", ""))
        elif "done" in message:
            self._receive_done(message["done"])

    def _receive_result(self, value, key):
        if self.stage is not None and self.stage[1] == key:
            self.stage = None
        self._hand("result", value, key)

    def _receive_done(self, facts):
        outcome = facts.get("outcome", "ok") if isinstance(facts, dict) else "ok"
        if outcome == "ok":
            self.done, self.stage = True, None
        elif self._ended is None:
            reason = messages.one_line(facts.get("reason", ""))
            self._ended = messages.one_line(outcome, 40), reason

    def _hand(self, kind, value, key):
        try:
            self._take(kind, value, key)
        except _MALFORMED:
            pass

    def _leave_stage(self, now):
        """Add the time since the last message to a stage with a limit of its own."""
        if self.stage is not None and self.stage[0] in self.limits.stages:
            name = self.stage[0]
            self.spent[name] = self.spent.get(name, 0.0) + now - self.latest
        self.latest = now

    def _check_limits(self):
        limit, since = self._limit()
        now = self._clock()
        if limit is not None and now - since >= limit:
            self._leave_stage(now)
            self.stop("timeout", "no answer within %g s" % round(limit, 1))
        elif self.begun is not None and self.limits.total is not None:
            worked = now - self.begun - sum(self.spent.values())
            counts = self.stage is None or self.stage[0] not in self.limits.stages
            if counts and worked >= self.limits.total:
                self.stop("timeout", "not done within %g s" % round(self.limits.total, 1))

    def _limit(self):
        """(seconds of silence that are allowed now, since when)."""
        if self.begun is None:
            return self.limits.start, self._opened
        if self.stage is not None and self.stage[0] in self.limits.stages:
            name = self.stage[0]
            remaining = self.limits.stages[name] - self.spent.get(name, 0.0)
            return max(0.0, remaining), self.latest
        return self.limits.stage, self.latest

    def _end(self, result):
        self._leave_stage(self._clock())
        self.result, self.stuck = result, result.stuck
        self.log = result.stderr.decode("utf-8", "replace")
        if self._pipe is not None:
            self._pipe.close()
        self.outcome, self.reason = self._why(result)

    def _why(self, result):
        if self.done:  # whatever became of its process afterwards
            return "ok", ""
        if self._ended is not None:
            return self._ended
        if result.outcome == "timeout":
            return "timeout", "not done within %g s" % round(result.seconds, 1)
        if result.outcome == "not-started":
            return "error", "its process could not be started: %s" % result.error
        return "crashed", "its process " + result.describe()
