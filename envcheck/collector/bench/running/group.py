"""The rows of a group: as many of them as fit are warm at once, and measured in turn; then the others."""

from . import samples
from .measure import steps_in
from .row_at_work import CONTEXT
from .row_process import BUILD, ENDING, ample

MOST_TOGETHER = 8  # processes that are warm at once
_MARGIN = 1.5  # of a row's memory, so that no row is slower for the others' holding theirs
_LOSSES = 120.0  # seconds for one step and its loss


class GroupRun(object):
    """Runs them all; what comes of them goes to the BenchRunner."""

    def __init__(self, bench, rows):
        """rows: [(row, BatchTried of its largest batch, evidence of that)]."""
        self._bench = bench
        self._machinery = bench.machinery
        self._waiting = []
        self._imported = []
        self._whole = sum(not row["steps"] for row, _tried, _evidence in rows)
        for row, tried, evidence in rows:
            one = self._machinery.row(row)
            one.tried, one.evidence = tried, evidence
            self._waiting.append(one)

    def run(self):
        while self._waiting and not self._bench.stopped:
            warm = self._load()
            timed = [one for one in warm if not one.is_over]
            for one in timed:
                one.in_turn = len(warm) == self._whole and len(timed) > 1
            for number in range(self._bench.repetitions):
                for one in timed:
                    self._measure(one, number)
            for one in timed:
                if not one.is_over:
                    one.order(ENDING, end=True)
            self._bench.until(lambda timed=timed: all(one.is_over for one in timed))
            for one in warm:
                self._bench.over(one)
        # What was only imported when the user wanted no more is no row.
        for one in self._waiting:
            one.end("interrupted", "stopped by its user")
        self._bench.until(lambda: not self._bench.open)

    def _load(self):
        """Warm up as many as fit together: those that began, each waiting for orders or over."""
        warm = []
        while self._waiting and not self._bench.stopped:
            one = self._waiting[0]
            held = [other for other in warm if not other.is_over]
            if len(held) >= MOST_TOGETHER or not self._fits(one, held):
                break
            self._import(one)
            if one.is_over and one.outcome == "interrupted":
                break
            self._waiting.pop(0)
            if one.row["steps"]:
                if not one.is_over:
                    self._train(one)
                self._bench.over(one)
                continue
            if not one.is_over:
                self._warm(one)
            if one.outcome == "out-of-memory" and held:  # alone, it may fit
                again = self._machinery.row(one.row)
                again.tried, again.evidence = one.tried, one.evidence
                self._waiting.insert(0, again)
                break
            warm.append(one)
        return warm

    def _import(self, one):
        """Until this one is imported. Others are imported beside it, as many as there are processors."""
        began = self._bench.clock()
        self._bench.tell(one, "import")

        def look():
            at_work = [two for two in self._waiting if two.is_open and not _settled(two)]
            for two in self._waiting[: 2 * MOST_TOGETHER]:
                if not two.is_open and not two.is_over and len(at_work) < self._machinery.cores:
                    two.open()
                    if not two.is_over:
                        self._bench.open.append(two)
                        at_work.append(two)
            # While others are imported, nothing is timed.
            return _settled(one) and not at_work

        self._bench.until(look)
        for two in self._waiting:
            if two.is_open and two not in self._imported:
                self._imported.append(two)
                self._bench.left.took(two.row["name"], "import", self._bench.clock() - began)

    def _fits(self, one, held):
        """Whether it fits beside those that are warm, by what they and the largest batch have told."""
        same = [two for two in held if set(two.row["gpus"]) & set(one.row["gpus"])]
        free = self._machinery.free_mib(one.row)
        if not same or free is None:
            return True
        has = [two.pool_mib for two in same]
        if None in has:
            return True
        need = [tried.get("memory_mib", 0) for tried in one.tried if tried["outcome"] == "ok"]
        return sum(has) + CONTEXT * len(has) + _MARGIN * max(has + need) <= free

    def _warm(self, one):
        bench, began = self._bench, self._bench.clock()
        bench.tell(one, "build")
        one.order(BUILD, build=True)
        if not bench.settle(one):
            return
        bench.left.took(one.row["name"], "build", bench.clock() - began)
        began = bench.clock()
        while one.warm():
            if not bench.settle(one):
                return
            bench.tell(one, "warm-up")
        one.order(ENDING, memory=True)
        if bench.settle(one):
            self._machinery.look_at_memory(one, bench.until)
            one.order(BUILD, evidence=True)  # which may compile the same again
        if bench.settle(one) and one.rate:
            # What evidence was asked with is not to be measured.
            one.order(ample(0.2), warm=steps_in(0.2, one.rate))
            bench.settle(one)
        bench.left.took(one.row["name"], "warm-up", bench.clock() - began)

    def _measure(self, one, number):
        bench = self._bench
        if one.is_over or not one.rate:
            return
        bench.tell(one, "measure", number + 1, bench.repetitions)
        began = bench.clock()
        one.order(ample(bench.seconds), measure=steps_in(bench.seconds, one.rate))
        bench.settle(one)
        now = bench.clock()
        bench.left.took(one.row["name"], "measure", now - began)
        taken = self._machinery.between(began, now, bench.began)
        here = [told for told in taken if told["gpu"] in one.row["gpus"]]
        one.samples = samples.joined(one.samples, here)
        bench.tell(one, "measure", number + 1, bench.repetitions)

    def _train(self, one):
        """From the seed on, with the loss of each step; alone, since nothing else is to be in its way."""
        bench = self._bench
        bench.tell(one, "build")
        one.order(BUILD, build=True)
        for words, limit in (
            ({"losses": one.row["steps"]}, BUILD + _LOSSES),
            ({"memory": True}, ENDING),
        ):
            if bench.settle(one):
                bench.tell(one, "losses")
                one.order(limit, **words)
        if bench.settle(one):
            self._machinery.look_at_memory(one, bench.until)
            one.order(BUILD, evidence=True)
        if bench.settle(one):
            one.order(ENDING, end=True)
        bench.until(lambda: one.is_over)


def _settled(one):
    return one.is_waiting or one.is_over
