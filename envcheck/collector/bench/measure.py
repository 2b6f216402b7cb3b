"""When a training is warm, and how many steps a repetition has: pure but for the clock that it is given."""

CHUNK = 0.2  # seconds that the steps between two looks at the rate take, about
ALIKE = 0.03  # the share by which the last rates may differ once it is steady
LOOKS = 4  # so many of them


def warm_up(run, clock, limit):
    """Runs steps until their rate has come to rest: {"steps", "seconds", "steady", "rate"}.

    run(steps): a Training's. limit: seconds. rate: steps per second. The first step, which compiles and
    allocates, counts for no rate.
    """
    began = clock()
    run(1)
    steps, chunk, rates = 1, 1, []
    while True:
        since = clock()
        run(chunk)
        now = clock()
        took = max(now - since, 1e-9)
        steps += chunk
        rates.append(chunk / took)
        last = rates[-LOOKS:]
        steady = len(last) == LOOKS and max(last) <= min(last) * (1 + ALIKE)
        if steady or now - began >= limit:
            told = {"steps": steps, "seconds": now - began, "steady": steady}
            return dict(told, rate=sorted(last)[len(last) // 2])
        chunk = steps_in(CHUNK, rates[-1])


def steps_in(seconds, rate):
    """How many steps a repetition of about so many seconds has, at a rate in steps per second."""
    return max(1, round(seconds * rate))
