"""What the user asks `envcheck bench` for."""

from __future__ import annotations

import msgspec

from ..exit_codes import UsageError
from ..suggestions import did_you_mean

# What there is to ask for, and what each shows: as the command line names it.
WHAT = {
    "resnet50": "ResNet-50 v1.5 in FP32, TF32, AMP and AMP compiled, by batch",
    "mnist": "a small network in each mode: time for an epoch",
    "bert": "a pretraining step of BERT-base with 128 and 512 tokens, with and without AMP",
    "unet": "UNet with and without AMP",
    "mlp": "a feed-forward network with and without AMP",
}
MOST_REPETITIONS = 100


class BenchRequest(msgspec.Struct, frozen=True, kw_only=True):
    what: list[str] = []  # of WHAT; none: what tells most in five minutes
    batch: int | None = None
    repetitions: int = 5
    gpus: list[int] = []  # nvidia-smi's indices; none: all


def checked(request: BenchRequest) -> BenchRequest:
    """The request, each WHAT once; raises UsageError for what cannot be meant."""
    for word in request.what:
        if word not in WHAT:
            hint = did_you_mean(word, WHAT)
            raise UsageError(
                f"there is no row {word!r}{hint}", hint=f"there are: {', '.join(WHAT)}"
            )
    if request.batch is not None and request.batch < 1:
        raise UsageError(f"--batch {request.batch}: a batch has at least one sample")
    if not 1 <= request.repetitions <= MOST_REPETITIONS:
        raise UsageError(f"--rounds {request.repetitions}: from 1 to {MOST_REPETITIONS} can be had")
    return msgspec.structs.replace(request, what=list(dict.fromkeys(request.what)))
