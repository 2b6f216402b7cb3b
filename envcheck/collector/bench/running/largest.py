"""The largest batch of a row: each try is a process of its own, so that no memory is left from the last."""

from .batch import BatchSearch
from .row_at_work import CONTEXT
from .row_process import BUILD, ENDING

_STEPS = 3  # of a try: the first compiles, the second has the optimizer's state


class LargestBatch(object):
    """``run`` it: (the row at that batch, BatchTried, evidence); None where none fits, and that is told."""

    def __init__(self, bench, row):
        self._bench = bench
        self._row = row
        self._search = BatchSearch(row["batch"], bench.machinery.free_mib(row))

    def run(self):
        search, reason = self._search, ""
        following = search.next()
        while following is not None and not self._bench.stopped:
            batch, predicted = following
            one = self._try(batch)
            search.tried(batch, predicted, _outcome(one), self._memory(one))
            reason = reason or one.reason
            outcome = one.outcome
            following = search.next()
        name = self._row["name"]
        self._bench.left.done(name, "batch")
        evidence = {"largest_by": search.by, "largest_is_bound": search.is_bound}
        if self._bench.stopped:
            self._bench.without(self._row, "interrupted", "stopped by its user", tried=search.told)
        elif not search.largest:
            self._bench.without(self._row, outcome, reason, tried=search.told)
        else:
            return dict(self._row, batch=search.largest), search.told, evidence
        return None

    def _try(self, batch):
        """The RowAtWork of a few steps, over; its memory is told."""
        bench = self._bench
        one = bench.machinery.row(dict(self._row, batch=batch, largest=False))
        one.open()
        if not one.is_over:
            bench.open.append(one)
        bench.tell(one, "batch", len(self._search.told) + 1)
        for limit, words in (
            (BUILD, {"build": True}),
            (BUILD, {"warm": 1}),
            (BUILD, {"warm": _STEPS - 1}),
            (ENDING, {"memory": True}),
        ):
            if bench.settle(one):
                one.order(limit, **words)
        if bench.settle(one):
            bench.machinery.look_at_memory(one, bench.until)
            one.end("ok", "")
            bench.until(lambda: one.is_over)
        bench.machinery.sweep()
        return one

    def _memory(self, one):
        """What it took of its GPU, MiB: the driver's count, else its pool's and what a process has beside."""
        if one.process_mib is not None:
            return one.process_mib
        return None if one.pool_mib is None else one.pool_mib + CONTEXT


def _outcome(one):
    """A BatchTried's."""
    known = ("ok", "out-of-memory", "timeout", "crashed")
    return one.outcome if one.outcome in known else "error"
