"""The check on DALI's TensorFlow plugin, which is a package of its own."""

from __future__ import annotations

import re

from ..declared import declared_causes
from ..reading import Distribution, Skip, SnapshotView, facts_of, need
from ..target import PLACE, installed, named, owner_of, pip_restore
from ..verdicts import Passed, Remedy, Verdicts, about, check

CAUSE = declared_causes(__name__)

_DALI = re.compile(r"nvidia-dali(?:-nightly|-weekly)?(-cuda\d{2,3})?\Z")
_OTHERS = ("torch", "mxnet", "jax", "paddlepaddle-gpu", "cupy")
_AGAIN = (
    "Install the plugin again, after TensorFlow: it is compiled for the installed one, which needs a C++"
    " compiler."
)


@check("PKG-020")
def dali_plugin(view: SnapshotView) -> Verdicts:
    distributions = installed(view)
    dali, tensorflow = dali_of(distributions), owner_of(distributions, "tensorflow")
    if dali is None or tensorflow is None:
        raise Skip("DALI and TensorFlow are not both installed in the target")
    linked = need(facts_of(view.target.loader, "the target's libraries").linked, "linked files")
    both = f"{named(dali)} with {named(tensorflow)}"
    others = [name for name in _OTHERS if name in distributions]
    if any("/libdali_tf" in one.path for one in linked) or _plugin_of(dali) in distributions:
        yield Passed(both)
    elif others:
        yield Passed(f"{named(dali)} without its TensorFlow plugin, beside {', '.join(others)}")
    else:
        yield CAUSE["plugin-missing"].found(
            about("package", _plugin_of(dali)),
            [view.evidence(PLACE, both)],
            advice=plugin_again(view, dali),
            dali=named(dali),
        )


def dali_of(distributions: dict[str, Distribution]) -> Distribution | None:
    return next((one for name, one in distributions.items() if _DALI.match(name)), None)


def _plugin_of(dali: Distribution) -> str:
    """The plugin's name, which ends as DALI's does."""
    return f"nvidia-dali-tf-plugin{(_DALI.match(dali.normalized) or [''])[1] or ''}"


def plugin_again(view: SnapshotView, dali: Distribution) -> Remedy:
    again = pip_restore(view, _plugin_of(dali), dali.version)
    return Remedy(_AGAIN, [f"{again} --no-build-isolation --no-cache-dir"])
