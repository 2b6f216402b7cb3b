"""What each process of a row that runs on several GPUs finds in its environment."""

from ...systems.shared.distributed import loopback
from ...systems.shared.distributed.horovod import gloo_environ

BY_RANKS = ("ddp", "horovod")
_MOST = 64
_WAIT = 120.0  # seconds that Horovod's ranks wait for each other while models are built


def ranks_of(row):
    """How many processes a row has."""
    if row["together"] not in BY_RANKS:
        return 1
    return max(1, min(_MOST, len(row["gpus"]) or row.get("ranks", 0)))


def environ(together, rank, ranks, port):
    """The variables of a rank, as torchrun and horovodrun set them. port: where they find each other."""
    if together == "horovod":
        return gloo_environ(rank, ranks, port, _WAIT)
    if together == "ddp":
        return {
            "RANK": str(rank),
            "WORLD_SIZE": str(ranks),
            "LOCAL_RANK": "0",  # it sees one GPU alone
            "LOCAL_WORLD_SIZE": str(ranks),
            "MASTER_ADDR": loopback.HOST,
            "MASTER_PORT": str(port),
        }
    return {}
