"""NCCL: a process for each GPU, an all-reduce whose sum is exact, how fast it is, and by which way it went.

Control: the same all-reduce in a communicator of one rank, which gives each GPU's own numbers back. Where
the GPUs fail together, the likely causes are taken away one at a time: multicast, then direct transfers.
"""

import os

from .running import records
from .shared.nccl.attempt import NcclAttempt
from .shared.nccl.rank import work

SYSTEM = "nccl"
GPUS = 2
ALONE = True
LIBRARIES = ("libnccl",)
DEADLINE = 85.0

NVLS_OFF, P2P_OFF = "NCCL_NVLS_ENABLE=0", "NCCL_P2P_DISABLE=1"
_FIRST, _AGAIN = 0.36, 0.24  # of the whole time, for all ranks of a trial

_DIRECT = ("P2P", "p2p", "IPC", "Ipc", "CUMEM", "peer access")
_MULTICAST = ("NVLS", "nvls", "ulticast")


def run(_framework, params, tell):
    paths = (params.get("libraries") or {}).get("libnccl")
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    if not paths:
        raise records.NotApplicable("the target has no libnccl")
    if "MIG-" in visible:
        raise records.NotApplicable("MIG instances: NCCL joins whole GPUs")
    number = len(visible.split(","))
    if number < 2:
        raise records.NotApplicable("one GPU")
    params = dict(params, library=paths[0])
    first = NcclAttempt(params, number, params["seconds"] * _FIRST, {})
    again = params["seconds"] * _AGAIN
    with tell.trial("all-reduce") as trial:
        trial["library"] = paths[0]
        if len(paths) > 1:
            trial["others"] = paths[1:]
        first.go(trial)
    with tell.trial("one rank", control=True) as trial:
        first.alone(trial)
    if first.needs(_MULTICAST) or (first.right and first.log.get("nvls")):
        second = NcclAttempt(dict(params, sweep=False), number, again, {"NCCL_NVLS_ENABLE": "0"})
        with tell.trial(NVLS_OFF) as trial:
            second.go(trial)
        if second.right:
            return
    if (first.needs(_DIRECT) or first.hung or first.wrong) and not first.has("NCCL_P2P_DISABLE"):
        with tell.trial(P2P_OFF) as trial:
            third = {"NCCL_P2P_DISABLE": "1"}
            NcclAttempt(dict(params, rates=False, sweep=False), number, again, third).go(trial)


def rank(_framework, params, tell):
    return work(params)
