"""Where a row runs: which device, which part of a job on several GPUs, and where its images lie."""


class Place(object):
    """device: "gpu" or "cpu". gpus: the PCI addresses that the process sees, as CUDA's 0, 1, …

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
