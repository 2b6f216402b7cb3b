"""What machines are compared by: `envcheck diff`, the outliers of a fleet and its baseline rest on it."""

from __future__ import annotations

import msgspec


class Attribute(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A fact that is equal on machines of the same kind; what a Snapshot does not hold is left out.

    key: stable, for programs: "host.kernel", "gpus.vbios", "packages.tensorflow". words: for people, after
    "the": "VBIOS". device: "GPU 3", "mlx5_0"; "" for the machine or its target.
    """

    key: str
    words: str
    value: str
    device: str = ""


class Measurement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A figure that was measured. Figures with the same key and the same ``under`` can be compared.

    key: "kernels.L0.fp16", "memory.copy", "bench.resnet50.amp". spread: how far apart its own repetitions
    were, as a share of the value; None: not known. under: all that it depends on beside the machine:
    the library and its version, the batch, the size, the clock it was locked to.
    """

    key: str
    words: str
    value: float
    unit: str
    device: str = ""
    spread: float | None = None
    lower_is_better: bool = False
    under: str = ""
