"""The styles by name, each a package beside this file, and where a row runs."""

import importlib

NAMES = ("session", "keras", "torch", "jax")


def load(name):
    """The style's package. Raises ValueError for an unknown name."""
    if name not in NAMES:
        raise ValueError("unknown style %r" % (name,))
    return importlib.import_module(__package__ + "." + name)


class Place(object):
    """Where a row's process runs.

    device: "gpu" or "cpu". gpus: how many the process sees, as CUDA's 0, 1, … rank, ranks: of a job of
    several processes ("ddp"), each of which sees its own GPU alone, and finds RANK, WORLD_SIZE, MASTER_ADDR
    and MASTER_PORT in its environment.
    """

    def __init__(self, device="cpu", gpus=0, rank=0, ranks=1):
        self.device = device
        self.gpus = gpus
        self.rank = rank
        self.ranks = ranks
