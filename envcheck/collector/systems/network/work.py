"""The program of one machine, in the target's interpreter: see the package."""

import functools
import gc
import os
import time

from ...runtime import process
from ...worker import messages
from ...worker.parent import Limits, Worker
from ..running.records import CouldNotRun
from . import by_horovod, by_torch, interfaces, meeting, pair, partner, rounds, together

MODULE = __name__  # which worker.command runs
_SHORTEST, _LONGEST = 2.0, 60.0  # seconds of a round
_QUIET = 20.0  # seconds without a newcomer after which they begin, beside twice the import's
_TOGETHER = 8  # rounds' time for all together
_PAUSE = 0.03  # between two looks at children: with many machines on one computer each look counts


class _Step(object):
    """A child that runs one function of this package. facts: what it reported, key by key."""

    def __init__(self, join, function, spec, seconds, environ=None):
        def work():
            tell = messages.Writer(os.dup(1))
            os.dup2(2, 1)
            os.environ.update(environ or {})
            try:
                link = function(join, spec, tell)
                tell.done()
                if link is not None:
                    link.close()
            except Exception as error:
                tell.done(outcome="error", reason=messages.describe(error))
            os._exit(0)

        self.facts = {}
        name = function.__module__.rpartition(".")[2]
        child = process.Child([name], seconds, own_session=False, tied=True, work=work)
        self._worker = Worker(child, Limits(), self._take)

    def _take(self, _kind, value, key):
        if key == "collective":
            self.facts.setdefault(key, []).append(value)
        elif isinstance(value, dict):
            self.facts.update(value)

    def runs(self):
        return self._worker.step()

    def stop(self):
        self._worker.stop()

    def report(self):
        """Once it has ended, its facts, and in which step, where it did not come to its end."""
        worker = self._worker
        while worker.step():
            time.sleep(_PAUSE)
        found = dict(self.facts, outcome=worker.outcome)
        if worker.outcome != "ok":
            found.update(step=(worker.stage or ("",))[0], reason=worker.why)
        return found


def work(params, tell):
    """params: {"name", "peers": [[name, address]], "pairs": [[[a, b]]] of each round, None: the circle's,
    "named": the first round in which they use the interface that leads to the others, whatever their names
    say, "together": [index], "slot": seconds of a round, 0 where a rehearsal gives them, "port", "gpus":
    number, "patience": seconds until the others are there}."""
    began = time.monotonic()
    gc.disable()  # it costs a sixth of the import, and its marks copy pages in each child
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    join, about = _load()
    machine = _Machine(join, params, tell)
    tell.begin(**dict(about, **machine.about()))
    start, slot = machine.meet(time.monotonic() - began)
    tell.result({"slot": slot, "loopback": machine.loopback}, "machine")
    machine.work(start, slot)


def _load():
    """(what makes a Link, the versions of what it is made of): by PyTorch, or without it by Horovod."""
    problems = []
    for library, link in ((by_torch, by_torch.TorchLink), (by_horovod, by_horovod.HorovodLink)):
        try:
            modules, about = library.load()
            return functools.partial(link, modules), about
        except CouldNotRun as error:
            problems.append(str(error))
    raise CouldNotRun("; ".join(problems))


class _Machine(object):
    def __init__(self, join, params, tell):
        self._params, self._tell = params, tell
        self._step = functools.partial(_Step, join)
        self._is_again = params["pairs"] is not None
        self._peers, self._gpus = params["peers"], params["gpus"]
        self._index = [name for name, _address in self._peers].index(params["name"])
        self.loopback = {}  # {bytes: best seconds}, of the rehearsal

    def about(self):
        others = [address for name, address in self._peers if name != self._params["name"]]
        found = interfaces.facts(others[0] if others else "127.0.0.1")
        return dict(found, reached_at=self._peers[self._index][1])

    def meet(self, imported):
        """(when the first round begins, its seconds)."""
        params, hubs = self._params, meeting.hubs(len(self._peers))
        patience, steps = params["patience"], []
        common = {"machines": len(self._peers), "patience": patience, "index": self._index}
        needs = params["slot"] or self._rehearse()
        if self._index in hubs:
            port = params["port"] + hubs.index(self._index)
            spec = dict(common, port=port, quiet=_QUIET + 2 * imported)
            steps.append(self._step(meeting.host, spec, patience + 10.0))
        for number, hub in enumerate(hubs):
            address = "127.0.0.1" if hub == self._index else self._peers[hub][1]
            spec = dict(common, address=address, port=params["port"] + number, needs=needs)
            steps.append(self._step(meeting.join, spec, patience))
        while True:
            running = [one.runs() for one in steps]
            found = [one.facts["slot"] for one in steps if "slot" in one.facts]
            if found:
                self._waiting = steps
                return time.monotonic() + 0.5, found[0]
            if not any(running):
                reasons = [one.report().get("reason", "") for one in steps]
                raise CouldNotRun("no common start with the others: %s" % max(reasons, key=len))
            time.sleep(_PAUSE)

    def _rehearse(self):
        """Seconds for a round, by one on this machine's loopback while the others do the same: where they
        share its cores, a round takes half of it, since each machine then works for one end."""
        began, port = time.monotonic(), self._params["port"] + 5
        if self._gpus:
            return 20.0  # NCCL joins no GPU with itself
        spec, own = {"place": ["127.0.0.1", port], "seconds": _LONGEST, "gpu": None}, _taking("lo")
        steps = [self._step(pair.run, dict(spec, rank=rank), _LONGEST, own) for rank in (0, 1)]
        reports = [one.report() for one in steps]
        failed = [one["reason"] for one in reports if one["outcome"] != "ok"]
        if failed:
            raise CouldNotRun("it fails with itself, without a network: %s" % failed[0])
        self.loopback = reports[0].get("sent", {})
        return min(_LONGEST, max(_SHORTEST, 1.0 + (time.monotonic() - began) / 2))

    def work(self, start, slot):
        plan = self._plan()
        for number, other in enumerate(plan):
            begin = start + number * slot
            self._wait(begin)
            if other is not None:
                self._tell.stage("round %d" % number, "pair")
                self._tell.result(self._meet_one(number, other, begin + slot - 0.1), "pair")
        for step in self._waiting:
            step.stop()
        if self._index in self._params["together"]:
            self._wait(start + len(plan) * slot)
            self._tell.result(self._all(slot * _TOGETHER), "together")

    def _plan(self):
        """This machine's partner in each round, None where it rests."""
        if not self._is_again:
            count = len(self._peers)
            return [partner(self._index, one, count) for one in rounds(count)]
        return [
            next((sum(pair) - self._index for pair in pairs if self._index in pair), None)
            for pairs in self._params["pairs"]
        ]

    def _wait(self, until):
        for step in self._waiting:
            step.runs()
        time.sleep(max(0.0, until - time.monotonic()))

    def _meet_one(self, number, other, until):
        """In rounds that are tried again, the other one of the two keeps the store."""
        first = (max if self._is_again else min)(self._index, other)
        seconds = until - time.monotonic()
        spec = {
            "rank": int(first != self._index),
            "place": [self._peers[first][1], self._params["port"] + 10 + number],
            "seconds": seconds,
            "gpu": number % self._gpus if self._gpus else None,
        }
        named = self._is_again and number >= self._params["named"]
        own = _taking(self.about()["towards"]) if named else {}
        step = self._step(pair.run, spec, seconds, own)
        found = dict(step.report(), round=number, other=self._peers[other][0], rank=spec["rank"])
        if named:
            found["named"] = True
        if spec["gpu"] is not None:
            found["gpu"] = spec["gpu"]
        return found

    def _all(self, seconds):
        members = self._params["together"]
        spec = {
            "rank": members.index(self._index),
            "size": len(members),
            "place": [self._peers[members[0]][1], self._params["port"] + 8],
            "seconds": seconds,
            "gpu": 0 if self._gpus else None,
        }
        own = _taking(self.about()["towards"])
        return self._step(together.run, spec, seconds, own).report()


def _taking(interface):
    """The variables by which libraries take that interface."""
    return dict.fromkeys(interfaces.SETTINGS, interface) if interface else {}
