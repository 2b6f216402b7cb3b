"""Checks on the arithmetic that is asked for: mixed precision by a variable, and TF32 by default."""

from __future__ import annotations

import re

from packaging.version import Version

from ...data.tf32_defaults import tf32_default
from ...data.versions import parse_version
from ..reading import Skip, SnapshotView, known
from ..target import (
    framework,
    framework_facts,
    framework_version,
    installed_if_known,
    need_gpus,
    tensorflows,
    title_of,
    variables,
)
from ..verdicts import Passed, Remedy, Verdicts, about, check, warn
from .common import newest_generation, setting_evidence
from .misleading import is_true

_AMP = ("TF_ENABLE_AUTO_MIXED_PRECISION", "TF_ENABLE_AUTO_MIXED_PRECISION_GRAPH_REWRITE")
_FIRST_WITH_AMP = (19, 3)  # NVIDIA's container 19.03
_LAST_SEEN_TF2 = (21, 10)  # NVIDIA's container 21.10 with TensorFlow 2 logs that it has no effect
KERAS_HAS_IT = Version("2.4")
IGNORED = warn(
    "mixed-precision-ignored",
    "TensorFlow ignores the mixed precision asked for",
    "{variable}={value} does nothing in {build}: it computes in 32 bits.",
)


@check(
    "ENV-014",
    title="TensorFlow heeds the mixed precision that is asked for",
    causes=[IGNORED],
    about="Only NVIDIA's builds of TensorFlow read TF_ENABLE_AUTO_MIXED_PRECISION and"
    " TF_ENABLE_AUTO_MIXED_PRECISION_GRAPH_REWRITE: since the container 19.03, and for TensorFlow 2 no"
    " longer from 21.10 on. Other builds ignore them without a message.",
    sources=(
        "NVIDIA/DeepLearningExamples#32",
        "NVIDIA/tensorflow#39",
        "stock TensorFlow 1.15.5, 2.15 and 2.21, observed: the variables' names are not in them",
    ),
    follows=("PCI-001", "FRM-001", "FRM-007"),
)
def amp_is_heeded(view: SnapshotView) -> Verdicts:
    values = variables(view)
    name = next((name for name in _AMP if is_true(values.get(name))), None)
    if name is None:
        yield Passed("neither is set")
        return
    facts = framework(view, "tensorflow")
    if facts is None or not facts.imported:
        raise Skip("no TensorFlow was imported")
    own, version = known(facts.version) or "", framework_version(facts)
    versions = [own, *(one.version for one in tensorflows(installed_if_known(view)))]
    month = re.match(r"(\d\d)\.(\d\d)", values.get("NVIDIA_TENSORFLOW_VERSION", ""))
    if month:
        container = (int(month[1]), int(month[2]))
        is_second = version is not None and version.major >= 2
        heeded = container >= _FIRST_WITH_AMP and not (is_second and container >= _LAST_SEEN_TF2)
        build = f"NVIDIA's {month[0]}, TensorFlow {own},"
    else:
        heeded = any("+nv" in one for one in versions)
        build = f"TensorFlow {own} of the public registry"
    if heeded:
        yield Passed(f"{name}={values[name]}, in NVIDIA's build")
        return
    yield IGNORED.found(
        about("variable", name),
        [setting_evidence(view, name), view.evidence("target.tensorflow.version")],
        advice=_ask_in_program(version, name),
        variable=name,
        value=values[name],
        build=build,
    )


def _ask_in_program(version: Version | None, name: str) -> Remedy:
    """How a program of that TensorFlow asks for mixed precision, if the variable ``name`` does nothing."""
    if version is None or version < Version("1.14"):
        return Remedy(
            "Use NVIDIA's container of 19.03 or later, which has automatic mixed precision.",
            ["docker run --rm -it --gpus all nvcr.io/nvidia/tensorflow:20.06-tf1-py3"],
        )
    way = "tf.train.experimental.enable_mixed_precision_graph_rewrite(optimizer)"
    if version >= KERAS_HAS_IT:
        way = "tf.keras.mixed_precision.set_global_policy('mixed_float16')"
    return Remedy(f"Ask for it in the program: {way}.", [f"unset {name}"])


@check(
    "ENV-015",
    title="What computes in TF32 by itself is known",
    causes=[],
    about="On GPUs from Ampere on, some frameworks compute products of 32-bit numbers in TF32 by default,"
    " and others do not. This check reports which, and which setting changes it; it never fails.",
    sources=(
        "the frameworks' documentation (tf32_defaults.csv)",
        "pytorch#84334, #58434; jax#14022",
    ),
)
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
