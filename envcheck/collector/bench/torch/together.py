"""A row on several GPUs, a process each: DistributedDataParallel, or Horovod.

Their processes find each other by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; Horovod's by its own
variables.
"""

import importlib

from ...kernels.failures import NotSupported


def start(torch, row, place):
    """Meet the other processes: an object that wraps the model and the optimizer."""
    if not row["together"]:
        return TorchAlone()
    return {"ddp": TorchParallel, "horovod": TorchHorovod}[row["together"]](torch, place)


class TorchAlone(object):
    rank = 0

    def model(self, model):
        return model

    def optimizer(self, optimizer, model):
        return optimizer

    def step(self, scaler, optimizer):
        scaler.step(optimizer)

    def finish(self, optimizer):
        """After a backward pass that no step follows."""


class TorchParallel(TorchAlone):
    """torch.distributed: NCCL between GPUs, Gloo between processes on the CPU."""

    def __init__(self, torch, place):
        distributed = torch.distributed
        if not distributed.is_available():
            raise NotSupported("this PyTorch is built without torch.distributed")
        backend = "nccl" if place.device == "gpu" else "gloo"
        if backend == "nccl" and not distributed.is_nccl_available():
            raise NotSupported("this PyTorch is built without NCCL")
        self._torch = torch
        self.rank = place.rank
        self._local = gpu_of(place)
        if self._local is not None:
            torch.cuda.set_device(self._local)
        distributed.init_process_group(backend, rank=place.rank, world_size=place.ranks)

    def model(self, model):
        devices = None if self._local is None else [self._local]
        return self._torch.nn.parallel.DistributedDataParallel(model, device_ids=devices)


class TorchHorovod(TorchAlone):
    def __init__(self, torch, place):
        try:
            self._horovod = importlib.import_module("horovod.torch")
        except ImportError as error:
            raise NotSupported("horovod.torch cannot be imported: %s" % error)
        self._horovod.init()
        if self._horovod.size() != place.ranks:
            raise RuntimeError(
                "Horovod found %d processes instead of %d" % (self._horovod.size(), place.ranks)
            )
        self.rank = self._horovod.rank()
        local = gpu_of(place)
        if local is not None:
            torch.cuda.set_device(local)

    def optimizer(self, optimizer, model):
        horovod = self._horovod
        horovod.broadcast_parameters(model.state_dict(), root_rank=0)
        return horovod.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

    def finish(self, optimizer):
        optimizer.synchronize()

    def step(self, scaler, optimizer):
        """Gradients are summed before the scaler looks at them."""
        optimizer.synchronize()
        scaler.unscale_(optimizer)
        with optimizer.skip_synchronize():
            scaler.step(optimizer)


def gpu_of(place):
    """The number of this process's GPU, None on the CPU. It sees all of the job's, or its own alone."""
    if place.device != "gpu":
        return None
    return place.rank if len(place.gpus) >= place.ranks > 1 else 0
