"""A group of ranks by torch.distributed: NCCL on GPUs, Gloo on CPUs. Numbers are int32 tensors."""

import datetime
import time

from ... import framework
from ..running.records import CouldNotRun
from . import link

_ITEM = 4  # bytes


def load():
    """(torch, {"torch": its version})."""
    torch, problem = framework.load("torch")
    if torch is None:
        raise CouldNotRun("import torch: %s" % problem)
    if not torch.distributed.is_available():
        raise CouldNotRun("its torch is built without torch.distributed")
    return torch, {"torch": str(torch.__version__)}


class TorchLink(link.Link):
    def __init__(self, torch, rank, size, place, seconds, gpu, tell):
        """place: (address, port) of the first rank's store."""
        super(TorchLink, self).__init__(rank, size, seconds, gpu, tell)
        self._torch, self._dist = torch, torch.distributed
        self._device = torch.device("cpu" if gpu is None else "cuda:%d" % gpu)
        limit = datetime.timedelta(seconds=seconds)
        torch.set_num_threads(1)
        tell.stage("connect", "step")
        store = self._dist.TCPStore(place[0], place[1], size, rank == 0, limit)
        tell.stage("group", "step")
        if gpu is not None:
            torch.cuda.set_device(gpu)
        backend = "gloo" if gpu is None else "nccl"
        self._dist.init_process_group(
            backend, store=store, rank=rank, world_size=size, timeout=limit
        )

    def now(self):
        if self.gpu is not None:
            self._torch.cuda.synchronize()
        return time.monotonic()

    def numbers(self, size, first=0):
        torch = self._torch
        return torch.arange(size // _ITEM, dtype=torch.int32, device=self._device) % 65521 + first

    def joined(self, parts):
        return self._torch.cat(parts)

    def ready(self, data):
        return data

    def _empty(self, count):
        return self._torch.empty(count, dtype=self._torch.int32, device=self._device)

    def word(self, value, root):
        word = self._torch.tensor([value], dtype=self._torch.int64, device=self._device)
        self._dist.broadcast(word, root)
        return word.item()

    def gather(self):
        self._dist.barrier()

    def send(self, data):
        self._dist.send(data, 1 - self.rank)

    def receive(self, size):
        data = self._empty(size // _ITEM)
        self._dist.recv(data, 1 - self.rank)
        return lambda: data

    def collective(self, name, data):
        count, dist = len(data), self._dist
        if name == "all-reduce":
            dist.all_reduce(data)
            return lambda: data
        if name == "all-gather":
            parts = [self._empty(count) for _ in range(self.size)]
            dist.all_gather(parts, data)
            return lambda: self._torch.cat(parts)
        result = self._empty(count if name == "all-to-all" else count // self.size)
        if name == "all-to-all":
            dist.all_to_all_single(result, data)
        else:
            dist.reduce_scatter(result, list(data.chunk(self.size)))
        return lambda: result
