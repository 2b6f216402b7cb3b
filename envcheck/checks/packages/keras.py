"""Checks on Keras: tf_keras beside TensorFlow, and which generation of Keras tf.keras is."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from ...data import table
from ...facts.missing import NotKnown, Skip
from ...facts.target import Distribution
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.subjects import about
from ..registry import check
from ..target import (
    PLACE,
    imports,
    installed,
    named,
    pip_install,
    tensorflows,
    variables,
    version_of,
)

LEGACY = "TF_USE_LEGACY_KERAS"
_FIRST_KERAS_3 = Version("2.16")


@check(
    "PKG-018",
    title="tf_keras is of TensorFlow's version",
    problem="tf_keras does not fit TensorFlow",
    about=(
        "tf_keras is Keras 2, released anew with each minor version of TensorFlow and made for that "
        "one alone: 2.17 uses what TensorFlow 2.16 does not have, and its import fails. A failure "
        "where tf_keras is newer than TensorFlow, a warning where it is older."
    ),
    sources=("metadata of the tf_keras wheels (Requires-Dist)", "keras-team/tf-keras#756"),
    follows=("PKG-003",),
)
def tf_keras(view: SnapshotView) -> Iterator[Verdict]:
    distributions = installed(view)
    keras, found = distributions.get("tf-keras"), _tensorflow(distributions)
    if keras is None or found is None:
        raise Skip("tf_keras and TensorFlow are not both installed in the target")
    has, wants = version_of(keras), version_of(found)
    if has is None or wants is None:
        raise NotKnown(f"whether {named(keras)} fits {named(found)}")
    if has.release[:2] == wants.release[:2]:
        yield Passed(f"{named(keras)} with {named(found)}")
        return
    newer = has > wants
    effect = "importing it fails" if newer else "what this TensorFlow changed since is not in it"
    yield Finding(
        "fail" if newer else "warn",
        f"{named(keras)} was made for TensorFlow {has.major}.{has.minor}, and {named(found)} is "
        f"installed: {effect}.",
        subjects=about("package", keras.name),
        evidence=[view.evidence(PLACE, f"{named(keras)}, {named(found)}")],
        remedy=Remedy(
            "Install the tf_keras of this TensorFlow.",
            [pip_install(view, _tf_keras_for(wants))],
        ),
        headline=f"{named(keras)} does not fit {named(found)}",
    )


@check(
    "PKG-019",
    title="tf.keras is the Keras that is asked for",
    problem="tf.keras is not the Keras that is asked for",
    about=(
        "From TensorFlow 2.16 on tf.keras is Keras 3, which breaks code written for Keras 2. Keras 2 "
        f"lives on as tf_keras, which tf.keras is where {LEGACY}=1 is set. A failure where the variable "
        "is set and tf_keras is not installed: every use of tf.keras ends in an ImportError then. A "
        "warning for a package that is known to need Keras 2 and does not get it."
    ),
    sources=("TensorFlow's release notes, 2.16.1", "amaiya/ktrain#528"),
    follows=("PKG-003",),
)
def keras_generation(view: SnapshotView) -> Iterator[Verdict]:
    distributions = installed(view)
    found = _tensorflow(distributions)
    version = None if found is None else version_of(found)
    if found is None or version is None or version < _FIRST_KERAS_3:
        raise Skip("no TensorFlow 2.16 or later in the target")
    has_legacy = "tf-keras" in distributions
    asked = variables(view).get(LEGACY, "").lower() in ("1", "true")
    if asked and not has_legacy:
        yield Finding(
            "fail",
            f"{LEGACY} asks for Keras 2 and tf_keras is not installed: every use of tf.keras fails.",
            subjects=about("package", "tf_keras"),
            evidence=[
                view.evidence(
                    "target.environment.variables", f"{LEGACY}={variables(view)[LEGACY]}"
                ),
                view.evidence(PLACE, named(found)),
            ],
            remedy=Remedy(
                "Install the tf_keras of this TensorFlow, or unset the variable.",
                [pip_install(view, _tf_keras_for(version)), f"unset {LEGACY}"],
            ),
        )
        return
    users = [distributions[name] for name in _USERS if name in distributions]
    for user in users if not asked else []:
        commands = [] if has_legacy else [pip_install(view, _tf_keras_for(version))]
        yield Finding(
            "warn",
            f"{named(user)} needs Keras 2, and tf.keras of {named(found)} is Keras 3.",
            subjects=about("package", user.name),
            evidence=[view.evidence(PLACE, f"{named(user)}, {named(found)}")],
            remedy=Remedy(
                "Let tf.keras be Keras 2: set the variable before TensorFlow is imported"
                + ("." if has_legacy else ", with tf_keras installed."),
                [*commands, f"export {LEGACY}=1"],
            ),
        )
    if asked:
        yield Passed("tf.keras is Keras 2 (tf_keras)")
    elif not users:
        wanted = _tf_keras_for(version)
        yield Passed(
            f"tf.keras is Keras 3; code for Keras 2 needs {wanted} and {LEGACY}=1"
            if imports(view, "tensorflow")
            else "tf.keras is Keras 3"
        )


_USERS = [row["name"] for row in table("keras2_packages") if row["legacy_keras"] == "yes"]


def _tensorflow(distributions: dict[str, Distribution]) -> Distribution | None:
    return next(iter(tensorflows(distributions)), None)


def _tf_keras_for(tensorflow: Version) -> str:
    return f"tf_keras~={tensorflow.major}.{tensorflow.minor}.0"
