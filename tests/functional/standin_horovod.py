"""A stand-in for Horovod, for what no machine of ours can build: in PyTorch, and with MPI alone.

It sums by torch.distributed; who its ranks are it takes from the variables that Horovod takes it from.
"""

from __future__ import annotations

from pathlib import Path

_MISSING = """
raise ImportError(
    "Extension horovod.tensorflow has not been built: /x/mpi_lib.cpython-312-x86_64-linux-gnu.so not found\\n"
    "If this is not expected, reinstall Horovod with HOROVOD_WITH_TENSORFLOW=1 to debug the build error."
)
"""
_TORCH = """
import os, torch, torch.distributed as dist

Sum = "sum"
OPERATION = {operation!r}

def gloo_built(): return {gloo!r}
def mpi_built(): return not {gloo!r}
def nccl_built(): return 0
def cuda_built(): return False

def _told(name, other, default):
    return int(os.environ.get(other) or os.environ.get("HOROVOD_" + name) or default)

def init():
    global _rank, _size
    _rank = _told("RANK", "OMPI_COMM_WORLD_RANK", 0)
    _size = _told("SIZE", "OMPI_COMM_WORLD_SIZE", 1)
    if _size > 1:
        meeting = os.path.join(os.path.dirname(os.environ["HOROVOD_TIMELINE"]), "meeting-" + OPERATION)
        dist.init_process_group("gloo", init_method="file://" + meeting, rank=_rank, world_size=_size)

def shutdown():
    if _size > 1:
        dist.barrier()
        dist.destroy_process_group()
    if _rank == 0 and "HOROVOD_TIMELINE" in os.environ:
        with open(os.environ["HOROVOD_TIMELINE"], "w") as timeline:
            timeline.write('[{{"name": "%s"}}' % OPERATION)

def rank(): return _rank
def local_rank(): return _rank
def size(): return _size

def allreduce(tensor, op=None):
    tensor = tensor.clone()
    if _size > 1:
        dist.all_reduce(tensor)
    return tensor if op == Sum else tensor / _size

def broadcast_parameters(named, root_rank):
    for tensor in named.values():
        if _size > 1:
            dist.broadcast(tensor, root_rank)

class DistributedOptimizer(object):
    def __init__(self, optimizer, named_parameters):
        self._optimizer, self._named = optimizer, named_parameters

    def step(self):
        for _name, parameter in self._named:
            parameter.grad = allreduce(parameter.grad)
        self._optimizer.step()
"""


def make(folder: Path, gloo: bool = True, operation: str = "GLOO_ALLREDUCE") -> Path:
    """A folder for PYTHONPATH."""
    home = folder / "horovod"
    home.mkdir(parents=True)
    (home / "__init__.py").write_text('__version__ = "0.28.1"\n')
    (home / "tensorflow.py").write_text(_MISSING)
    (home / "torch.py").write_text(_TORCH.format(gloo=gloo, operation=operation))
    return folder
