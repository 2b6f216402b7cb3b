"""Horovod in PyTorch: a rank a GPU, or two on the CPU."""

from .shared.distributed import horovod

SYSTEM = "horovod"
FRAMEWORKS = ("torch",)
MODULES = ("horovod",)
DEADLINE = horovod.DEADLINE
GPUS = 2
ON_CPU = "few"
BY_RANKS = True


def run(_framework, params, tell):
    horovod.run(params, tell)


def rank(torch, params, tell):
    def work(hvd, local_rank, whole=True):
        if local_rank is not None:
            torch.cuda.set_device(local_rank)
        device = "cpu" if local_rank is None else "cuda"
        number = hvd.rank() + 1.0
        total = hvd.allreduce(torch.full((1024,), number, device=device), op=hvd.Sum)
        least, most = float(total.min()), float(total.max())
        told = {"sum": most if least == most else least, "gpu": local_rank is not None}
        if whole:
            weight = torch.nn.Parameter(torch.full((1,), number, device=device))
            hvd.broadcast_parameters({"weight": weight.data}, root_rank=0)
            told["broadcast"] = float(weight)
            optimizer = hvd.DistributedOptimizer(
                torch.optim.SGD([weight], lr=1.0), named_parameters=[("weight", weight)]
            )
            (weight * number).sum().backward()
            optimizer.step()
            told["weight"] = float(weight)
        return told

    def prepared(hvd, local_rank, numbers, value):
        device = "cpu" if local_rank is None else "cuda"
        tensor = torch.full((numbers,), value, device=device)
        return lambda: float(hvd.allreduce(tensor, op=hvd.Sum)[0])

    return horovod.rank("horovod.torch", params, work, prepared)
