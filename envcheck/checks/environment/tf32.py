"""The check on the arithmetic that frameworks compute in by themselves: TF32 by default."""

from __future__ import annotations

from ...data.tf32_defaults import tf32_default
from ...data.versions import parse_version
from ..reading import Skip, SnapshotView, known
from ..target import framework_facts, installed_if_known, need_gpus, title_of, variables
from ..verdicts import Passed, Verdicts, check
from .common import newest_generation


@check("ENV-015")
def tf32_defaults(view: SnapshotView) -> Verdicts:
    need_gpus(view)
    if newest_generation(view) < 8:
        raise Skip("no visible GPU has TF32")
    imported = (one for one in framework_facts(view) if one.imported)
    versions = [(title_of(one), str(one.name), known(one.version) or "") for one in imported]
    for name, one in installed_if_known(view).items():
        if name in ("tensorrt", "nvidia-tensorrt"):
            versions.append(("TensorRT", "tensorrt", one.version))
    lines = []
    for title, name, text in versions:
        version = parse_version(text)
        row = tf32_default(name, version) if version is not None else None
        if row is not None:
            lines.append(
                f"{title} {text} computes FP32 with {row.default}, by default; {row.switch}"
            )
    if not lines:
        raise Skip("no framework here has a default for TF32 that is on record")
    override = variables(view).get("NVIDIA_TF32_OVERRIDE")
    if override is not None:
        lines.append(f"NVIDIA_TF32_OVERRIDE={override} counts before all of them")
    yield Passed(". ".join(lines) + ".", note=True)
