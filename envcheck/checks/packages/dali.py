"""The check on DALI's TensorFlow plugin, which is a package of its own, compiled for one TensorFlow."""

from __future__ import annotations

import re

from ...facts.target import DaliLibrary
from ..reading import Distribution, Skip, SnapshotView, facts_of, known, need
from ..target import PLACE, installed, named, owner_of, pip_restore, version_of
from ..verdicts import Cause, Passed, Remedy, Verdicts, about, check, warn

_DALI = re.compile(r"nvidia-dali(?:-nightly|-weekly)?(-cuda\d{2,3})?\Z")
_MADE_FOR = re.compile(r"libdali_tf_(\d{1,3})_(\d{1,3})(?:_\d{1,3})?\.so\Z")
_OTHERS = ("torch", "mxnet", "jax", "paddlepaddle-gpu", "cupy")
_AGAIN = (
    "Install the plugin again, after TensorFlow: it is compiled for the installed one, which needs a C++"
    " compiler."
)
_UNFIT = "DALI's TensorFlow plugin does not fit TensorFlow"
_NONE = "{dali} has no plugin for TensorFlow: nvidia.dali.plugin.tf cannot be imported."
_BEFORE = (
    "DALI's TensorFlow plugin was compiled before {tensorflow} was installed ({libraries}; TensorFlow is of"
    " {since})."
)
_ANOTHER = (
    "DALI's TensorFlow plugin was made for another TensorFlow than {tensorflow}: {libraries}."
)
MISSING = warn("plugin-missing", _UNFIT, _NONE, _AGAIN)
OLDER = warn("plugin-older-than-tensorflow", _UNFIT, _BEFORE, _AGAIN)
OTHER_TENSORFLOW = warn("plugin-of-another-tensorflow", _UNFIT, _ANOTHER, _AGAIN)


@check(
    "PKG-020",
    title="DALI's TensorFlow plugin fits TensorFlow",
    causes=[MISSING, OLDER, OTHER_TENSORFLOW],
    about="DALI uses TensorFlow through a separate package, nvidia-dali-tf-plugin. When installed, it"
    " compiles its library for the TensorFlow that is there, or takes one that was built for that"
    " version.",
    sources=(
        "NVIDIA/DALI, dali/python/nvidia/dali/plugin/tf.py and dali_tf_plugin_install_tool.py",
        "NVIDIA/DALI#52, #1065 and #1200",
    ),
)
def dali_plugin(view: SnapshotView) -> Verdicts:
    distributions = installed(view)
    dali, tensorflow = dali_of(distributions), owner_of(distributions, "tensorflow")
    if dali is None or tensorflow is None:
        raise Skip("DALI and TensorFlow are not both installed in the target")
    packages = facts_of(view.target.packages, "the target's packages")
    libraries = need(packages.dali_libraries, "the files of DALI's plugin")
    others = [name for name in _OTHERS if name in distributions]
    since = known(packages.tensorflow_since)
    if not libraries and others:
        yield Passed(f"{named(dali)} without its TensorFlow plugin, beside {', '.join(others)}")
        return
    cause = _misfit(libraries, tensorflow, since) if libraries else MISSING
    both = f"{named(dali)} with {named(tensorflow)}"
    if cause is None:
        yield Passed(both)
        return
    names = ", ".join(f"{one.name} of {known(one.made_at) or 'unknown age'}" for one in libraries)
    shown = names or "no libdali_tf*.so"
    yield cause.found(
        about("package", _plugin_of(dali)),
        [view.evidence(PLACE, both), view.evidence("target.packages.dali_libraries", shown)],
        advice=plugin_again(view, dali),
        dali=named(dali),
        tensorflow=named(tensorflow),
        libraries=names,
        since=since,
    )


def dali_of(distributions: dict[str, Distribution]) -> Distribution | None:
    return next((one for name, one in distributions.items() if _DALI.match(name)), None)


def _plugin_of(dali: Distribution) -> str:
    """The plugin's name, which ends as DALI's does."""
    return f"nvidia-dali-tf-plugin{(_DALI.match(dali.normalized) or [''])[1] or ''}"


def plugin_again(view: SnapshotView, dali: Distribution) -> Remedy:
    again = pip_restore(view, _plugin_of(dali), dali.version)
    return Remedy(_AGAIN, [f"{again} --no-build-isolation --no-cache-dir"])


def _misfit(
    libraries: list[DaliLibrary], tensorflow: Distribution, since: str | None
) -> Cause | None:
    """What is wrong with the plugin's libraries; None if one of them may fit."""
    has = version_of(tensorflow)
    cause = OTHER_TENSORFLOW
    for library in libraries:
        made_for, made_at = _MADE_FOR.match(library.name), known(library.made_at)
        if made_for is None:
            if since is None or made_at is None or made_at >= since:
                return None
            cause = OLDER
        elif has is None or has.release[:2] == (int(made_for[1]), int(made_for[2])):
            return None
    return cause
