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

    device: "gpu" or "cpu". gpus: the PCI addresses that the process sees, as CUDA's 0, 1, …
    rank, ranks: of a job of several processes ("ddp", "horovod"): each sees its own GPU alone, as CUDA's 0,
    and finds RANK, WORLD_SIZE, LOCAL_RANK (0), MASTER_ADDR and MASTER_PORT, or HOROVOD_*, in its environment.
    "mirrored" is one process that sees all GPUs. folder: of images to read, "" for none.
    """

    def __init__(self, device="cpu", gpus=(), rank=0, ranks=1, folder=""):
        self.device = device
        self.gpus = list(gpus)
        self.rank = rank
        self.ranks = ranks
        self.folder = folder
