"""The way to the largest batch that fits: pure. Memory of small ones predicts it; then it is tried."""

MOST = 6  # tries
FILL = 0.97  # of what is free, by the prediction
MOST_BATCH = 1 << 20
_EIGHT = 16  # from here on batches are multiples of eight
_FINE = 16  # a step of 1/16 of what fits is fine enough


class BatchSearch(object):
    """``next`` is what to try, None at the end; ``tried`` says what became of it; ``largest`` fits."""

    def __init__(self, start, free_mib=None):
        """free_mib: of the device; None: not known, and batches are doubled."""
        self._start = max(1, start)
        self._free = free_mib
        self._fits = {}  # {batch: MiB or None}
        self._too_large = None  # the smallest that did not fit
        self._broken = False
        self._by_prediction = False
        self.told = []  # BatchTried

    @property
    def largest(self):
        """0 where none has fitted."""
        return max(self._fits) if self._fits else 0

    @property
    def by(self):
        return "prediction" if self._by_prediction else "doubling"

    @property
    def is_bound(self):
        """Whether the search ended at its bound: a larger batch may fit, too."""
        return self._too_large is None and not self._was_overstepped()

    def next(self):
        """(batch, whether it is predicted); None at the end."""
        if len(self.told) >= MOST or self._broken:
            return None
        batch, predicted = self._next()
        fresh = batch not in self._fits and batch != self._too_large
        return (batch, predicted) if 0 < batch <= MOST_BATCH and fresh else None

    def tried(self, batch, predicted, outcome, memory_mib=None):
        """outcome: of a BatchTried. memory_mib: what it took of the device, None where nobody tells."""
        told = {"batch": batch, "predicted": predicted, "outcome": outcome}
        if memory_mib is not None:
            told["memory_mib"] = memory_mib
        self.told.append(told)
        self._by_prediction = self._by_prediction or predicted
        if outcome == "ok":
            self._fits[batch] = memory_mib
        elif outcome == "out-of-memory":
            self._too_large = batch if self._too_large is None else min(batch, self._too_large)
        else:  # it says nothing about memory
            self._broken = True

    def _next(self):
        if not self._fits:
            return (self._start if self._too_large is None else self._too_large // 2), False
        if self._too_large is not None:  # the step is halved until it fits
            largest = self.largest
            step = (self._too_large - largest) // 2
            return (even(largest + step) if step * _FINE > largest else largest), False
        if len(self._fits) < 2:
            return 2 * self.largest, False
        predicted = self._predicted()
        if predicted is None:
            return 2 * self.largest, False
        if predicted > self.largest:
            return predicted, True
        return self.largest, False  # as large as it was predicted

    def _predicted(self):
        """By a line through the memory of the smallest and the largest; None where that shows nothing."""
        small, large = min(self._fits), max(self._fits)
        first, last = self._fits[small], self._fits[large]
        if self._free is None or first is None or last is None or last <= first:
            return None
        each = (last - first) / float(large - small)
        return even(int((self._free * FILL - (first - each * small)) / each))

    def _was_overstepped(self):
        """Whether the prediction was reached, and so no larger batch is expected to fit."""
        predicted = self._predicted() if len(self._fits) > 1 else None
        return predicted is not None and predicted <= self.largest


def even(batch):
    """Down to a multiple of eight, as its users choose batches."""
    return batch - batch % 8 if batch > _EIGHT else batch
