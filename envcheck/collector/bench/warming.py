"""When a training is warm, and how many steps a piece of it has. Pure."""

CHUNK = 0.2  # seconds that the steps between two looks at the rate take, about
ALIKE = 0.03  # the share by which the medians of the last two windows may differ once it is steady
WOBBLE = 0.25  # the share by which any two of their rates may
WINDOW = 3  # looks
MOST_STEPS = 1000000  # of one piece


class Warming(object):
    """``next`` is how many steps to run before the next look, ``ran`` takes how long they took.

    The first step, which compiles and allocates, counts for no rate and for no limit. A rate that wobbles
    around one value is steady; one that rises, falls, or leaps to and fro is not.
    """

    def __init__(self, limit):
        """limit: seconds after which it is over though the rate is not steady."""
        self._limit = limit
        self._rates = []  # steps per second
        self._spent = 0.0  # seconds without the first step's
        self.steps = 0
        self.seconds = 0.0

    @property
    def rate(self):
        """Steps per second; None before there is one."""
        return _median(self._rates[-WINDOW:]) if self._rates else None

    @property
    def steady(self):
        last, before = self._rates[-WINDOW:], self._rates[-2 * WINDOW : -WINDOW]
        if len(before) < WINDOW:
            return False
        settled = abs(_median(last) - _median(before)) <= ALIKE * _median(before)
        return settled and max(before + last) <= min(before + last) * (1 + WOBBLE)

    def next(self):
        """0 when it is over."""
        if self.steady or self._spent >= self._limit:
            return 0
        return steps_in(CHUNK, self.rate) if self._rates else 1

    def ran(self, steps, seconds):
        first = not self.steps
        self.steps += steps
        self.seconds += seconds
        if not first:
            self._spent += seconds
            self._rates.append(steps / max(seconds, 1e-9))


def steps_in(seconds, rate):
    """How many steps a piece of about so many seconds has, at a rate in steps per second."""
    return int(min(MOST_STEPS, max(1, round(seconds * rate))))


def _median(values):
    return sorted(values)[len(values) // 2]
