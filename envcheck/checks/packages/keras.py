"""The check on the generation of Keras: what tf.keras is, and what the packages here need."""

from __future__ import annotations

import re

from packaging.version import Version

from .. import target
from ..declared import declared_causes
from ..reading import Distribution, Skip, SnapshotView, known
from ..target import installed, named, owner_of, pip_install, version_of
from ..verdicts import Passed, Verdicts, check
from .common import found

CAUSE = declared_causes(__name__)

_KERAS = re.compile(r"(?i)\s*(?:keras|[\w.-]*tensorflow[\w.-]*|tf-nightly[\w-]*)\s*(?![\w.-])")
LEGACY = "TF_USE_LEGACY_KERAS"
_FIRST_KERAS_3 = Version("2.16")


@check("PKG-019")
def keras_generation(view: SnapshotView) -> Verdicts:
    distributions = installed(view)
    tensorflow = owner_of(distributions, "tensorflow")
    version = version_of(tensorflow)
    if tensorflow is None or version is None or version < _FIRST_KERAS_3:
        raise Skip("no TensorFlow 2.16 or later in the target")
    wanted, has_legacy = _tf_keras_for(version), "tf-keras" in distributions
    install = [] if has_legacy else [_install(view, tensorflow, version)]
    value = target.variables(view).get(LEGACY, "")
    if value.lower() in ("1", "true"):
        if has_legacy:
            yield Passed("tf.keras is Keras 2 (tf_keras)")
            return
        evidence = [view.evidence("target.environment.variables", f"{LEGACY}={value}")]
        commands = [*install, f"unset {LEGACY}"]
        yield found(
            view, CAUSE["tf-keras-missing"], tensorflow, evidence=evidence, commands=commands
        )
        return
    # With tf_keras there, what imports it by that name is well.
    users = [
        one
        for one in distributions.values()
        if one.keras_2 and not (has_legacy and one.keras_2 == "tf_keras")
    ]
    for user in users:
        required = {"extra" in text for text in known(user.requires) or [] if _KERAS.match(text)}
        in_part = required == {True}
        commands = [*install, *([] if in_part else [f"export {LEGACY}=1"])]
        shown = view.evidence(target.PLACE, f"{named(user)}: its code names {user.keras_2}")
        cause = CAUSE["tf-keras-for-a-part"] if in_part else CAUSE["keras-3"]
        yield found(view, cause, user, tensorflow, evidence=[shown], commands=commands)
    if not users:
        way = f"; code for Keras 2 needs {wanted} and {LEGACY}=1"
        yield Passed(f"tf.keras is Keras 3{way if target.imports(view, 'tensorflow') else ''}")


def _install(view: SnapshotView, tensorflow: Distribution, version: Version) -> str:
    """tf_keras requires "tensorflow", which would overwrite a TensorFlow of another name."""
    alone = "" if tensorflow.normalized == "tensorflow" else " --no-deps"
    return pip_install(view, _tf_keras_for(version)) + alone


def _tf_keras_for(tensorflow: Version) -> str:
    return f"tf_keras~={tensorflow.major}.{tensorflow.minor}.0"
