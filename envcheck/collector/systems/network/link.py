"""This machine's end of a group of ranks. by_torch.py and by_horovod.py have one for their framework, with

numbers(size, first)    whole numbers, whose sums over all ranks are exact: so many bytes of them
ready(numbers)          what send and collective take, where it is to be timed
send, receive(size)     to and from the other of two; receive's is a function that returns what came
collective(name, …)     of all ranks; a function that returns what it came to
word(number, rank)      a single number of that rank, on all
gather()                wait until all are here
"""

import time


class Link(object):
    """rank, size: of the group. seconds: for all that it does. gpu: its CUDA ordinal, None for the CPU."""

    def __init__(self, rank, size, seconds, gpu, tell):
        self.rank, self.size, self.seconds = rank, size, seconds
        self.gpu, self.tell = gpu, tell
        self.began = time.monotonic()

    def now(self):
        """Seconds, once all that was given to the GPU is done."""
        return time.monotonic()

    def say(self, number):
        """To the other of two, which hears it."""
        self.word(number, self.rank)

    def hear(self):
        return self.word(0, 1 - self.rank)

    def fits(self, seconds, until):
        """Whether so long a step ends before that share of the time is over."""
        return self.now() - self.began + seconds < self.seconds * until

    def differ(self, found, expected):
        """How many numbers are not as expected."""
        return int((found() != expected).sum())

    def close(self):
        """Leave the group, once nothing is asked of it any more."""
