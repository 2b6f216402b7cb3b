"""What the user asks `envcheck bench` for."""

from __future__ import annotations

import msgspec

# What there is to ask for, and what each shows: as the command line names it.
WHAT = {
    "resnet50": "ResNet-50 v1.5 trained in FP32, TF32, AMP and AMP with XLA",
    "mlp": "a feed-forward network with and without AMP",
}


class BenchRequest(msgspec.Struct, frozen=True, kw_only=True):
    what: list[str] = []  # of WHAT; none: what tells most in five minutes
    batch: int | None = None
    inference: bool = False
    folder: str = ""  # of images to read
    repetitions: int = 5
    gpus: list[int] = []  # nvidia-smi's indices; none: all
    together: bool = True  # several GPUs as one job, too
