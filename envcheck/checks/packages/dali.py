"""The check on DALI's TensorFlow plugin, which is a package of its own, compiled for one TensorFlow."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...facts.base import known
from ...facts.missing import Skip
from ...facts.target import DaliLibrary, Distribution
from ...facts.view import SnapshotView, facts_of, need
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.subjects import about
from ..registry import check
from ..target import PLACE, installed, named, pip_install, tensorflows, version_of

_DALI = re.compile(r"nvidia-dali(?:-nightly|-weekly)?(-cuda\d{2,3})?\Z")
_MADE_FOR = re.compile(r"libdali_tf_(\d{1,3})_(\d{1,3})(?:_\d{1,3})?\.so\Z")
_OTHERS = ("torch", "mxnet", "jax", "paddlepaddle-gpu", "cupy")


@check(
    "PKG-020",
    title="DALI's TensorFlow plugin fits TensorFlow",
    problem="DALI's TensorFlow plugin does not fit TensorFlow",
    about=(
        "DALI reaches TensorFlow through nvidia-dali-tf-plugin, a package of its own: it compiles its "
        "library when it is installed, for the TensorFlow that is there, or takes one that was made for "
        'that version. With another TensorFlow it ends with an undefined symbol, or with "No matching '
        'DALI plugin found for installed TensorFlow version". A warning where the plugin was made for '
        "another TensorFlow, or before this one was installed, and where DALI stands beside TensorFlow "
        "alone, without the plugin."
    ),
    sources=(
        "NVIDIA/DALI, dali/python/nvidia/dali/plugin/tf.py and dali_tf_plugin_install_tool.py",
        "NVIDIA/DALI#52, #1065 and #1200",
    ),
)
def dali_plugin(view: SnapshotView) -> Iterator[Verdict]:
    distributions = installed(view)
    dali = dali_of(distributions)
    tensorflow = next(iter(tensorflows(distributions)), None)
    if dali is None or tensorflow is None:
        raise Skip("DALI and TensorFlow are not both installed in the target")
    packages = facts_of(view.target.packages, "the target's packages")
    libraries = need(packages.dali_libraries, "the files of DALI's plugin")
    if not libraries:
        others = [name for name in _OTHERS if name in distributions]
        if others:
            yield Passed(f"{named(dali)} without its TensorFlow plugin, beside {', '.join(others)}")
            return
        says = (
            f"{named(dali)} has no plugin for TensorFlow: nvidia.dali.plugin.tf cannot be imported."
        )
    else:
        says = _misfit(libraries, tensorflow, known(packages.tensorflow_since))
    if not says:
        yield Passed(f"{named(dali)} with {named(tensorflow)}")
        return
    yield Finding(
        "warn",
        says,
        subjects=about("package", _plugin_of(dali)),
        evidence=[
            view.evidence(PLACE, f"{named(dali)}, {named(tensorflow)}"),
            view.evidence(
                "target.packages.dali_libraries",
                ", ".join(one.name for one in libraries) or "no libdali_tf*.so",
            ),
        ],
        remedy=plugin_again(view, dali),
    )


def dali_of(distributions: dict[str, Distribution]) -> Distribution | None:
    return next((one for name, one in distributions.items() if _DALI.match(name)), None)


def _plugin_of(dali: Distribution) -> str:
    """The plugin's name, which ends as DALI's does."""
    return f"nvidia-dali-tf-plugin{(_DALI.match(dali.normalized) or [''])[1] or ''}"


def plugin_again(view: SnapshotView, dali: Distribution) -> Remedy:
    again = pip_install(view, f"{_plugin_of(dali)}=={dali.version}")
    return Remedy(
        "Install the plugin again, after TensorFlow: it is compiled for the one that it finds, and needs a"
        " C++ compiler for that.",
        [f"{again} --force-reinstall --no-deps --no-build-isolation --no-cache-dir"],
    )


def _misfit(libraries: list[DaliLibrary], tensorflow: Distribution, since: str | None) -> str:
    """What is wrong with the plugin's libraries; "" where one of them may fit."""
    has = version_of(tensorflow)
    older = []
    for library in libraries:
        made_for = _MADE_FOR.match(library.name)
        if made_for is not None:
            if has is None or has.release[:2] == (int(made_for[1]), int(made_for[2])):
                return ""
            continue
        made_at = known(library.made_at)
        if since is None or made_at is None or made_at >= since:
            return ""
        older.append(f"{library.name} of {made_at}")
    if older:
        return (
            f"DALI's TensorFlow plugin was compiled before {named(tensorflow)} was installed "
            f"({', '.join(older)}; TensorFlow is of {since})."
        )
    names = ", ".join(one.name for one in libraries)
    return f"DALI's TensorFlow plugin was made for another TensorFlow than {named(tensorflow)}: {names}."
