"""Packages that are released apart and have to fit: JAX's parts, tf_keras, Keras 3, DALI's plugin."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from targets import ABSENT, dist, good_snapshot, judge, packages

from envcheck.collector.packaging import dali, distributions
from envcheck.collector.probes import packages as probe
from envcheck.data.packages import TENSORFLOWS
from envcheck.facts.target import DaliLibrary, Environment, Packages
from envcheck.findings.model import CheckResult


def on(
    code: str, *found: Any, variables: dict[str, str] | None = None, **facts: Any
) -> CheckResult:
    changes = {} if variables is None else {"environment": Environment(variables=variables)}
    return judge(good_snapshot(packages=packages(*found, **facts), **changes), code, "packages")


def commands(result: CheckResult) -> str:
    (finding,) = result.findings
    assert finding.remedy is not None
    return "\n".join(finding.remedy.commands)


# PKG-017

JAX = [
    "jaxlib<=0.6.2,>=0.6.2",
    'jaxlib==0.6.1; extra == "ci"',
    'jaxlib<=0.6.2,>=0.6.2; extra == "cuda12"',
    'jax-cuda12-plugin[with-cuda]<=0.6.2,>=0.6.2; extra == "cuda12"',
]


def jax(version: str, *parts: tuple[str, str], requires: Any = JAX) -> CheckResult:
    return on("PKG-017", dist("jax", version, requires=requires), *(dist(*one) for one in parts))


@pytest.mark.parametrize(
    "parts",
    [
        [("jaxlib", "0.6.2")],
        [("jaxlib", "0.6.2"), ("jax-cuda12-plugin", "0.6.2"), ("jax-cuda12-pjrt", "0.6.2")],
    ],
)
def test_jax_with_parts_of_its_release(parts: list[tuple[str, str]]) -> None:
    assert jax("0.6.2", *parts).outcome == "pass"


@pytest.mark.parametrize(
    ("parts", "wrong"),
    [
        ([("jaxlib", "0.6.1")], "jaxlib 0.6.1 does not go with jax 0.6.2"),
        ([("jaxlib", "0.6.2"), ("jax-cuda12-plugin", "0.5.0")], "jax-cuda12-plugin 0.5.0 does"),
        (
            [("jaxlib", "0.6.2"), ("jax-cuda12-plugin", "0.6.2"), ("jax-cuda12-pjrt", "0.6.0")],
            "jax-cuda12-pjrt 0.6.0 does",
        ),
    ],
)
def test_a_part_of_another_release(parts: list[tuple[str, str]], wrong: str) -> None:
    result = jax("0.6.2", *parts)
    assert result.outcome == "fail" and wrong in result.findings[0].message
    assert "jax" in commands(result) and "==0.6.2" in commands(result)


# PKG-018, PKG-019


@pytest.mark.parametrize(
    ("keras", "tensorflow", "outcome"),
    [
        ("2.16.0", "2.16.1", "pass"),
        ("2.17.0", "2.16.1", "fail"),
        ("2.16.0", "2.19.1", "warn"),
        ("odd", "2.19.1", "skipped"),
    ],
)
def test_tf_keras(keras: str, tensorflow: str, outcome: str) -> None:
    result = on("PKG-018", dist("tf_keras", keras), dist("tensorflow", tensorflow))
    assert result.outcome == outcome
    if outcome in ("fail", "warn"):
        assert f"tf_keras~={tensorflow[:4]}.0" in commands(result)


def test_keras_2_is_asked_for_and_not_there() -> None:
    result = on("PKG-019", dist("tensorflow", "2.16.1"), variables={"TF_USE_LEGACY_KERAS": "1"})
    assert result.outcome == "fail" and "tf_keras~=2.16.0" in commands(result)


@pytest.mark.parametrize("word", ["tf_keras", "keras.engine"])
def test_a_package_for_keras_2(word: str) -> None:
    found = [dist("tensorflow", "2.16.1"), dist("ktrain", "0.41.3", keras_2=word)]
    result = on("PKG-019", *found)
    assert result.outcome == "fail" and "export TF_USE_LEGACY_KERAS=1" in commands(result)
    found.append(dist("tf_keras", "2.16.0"))
    beside = on("PKG-019", *found)
    assert beside.outcome == ("pass" if word == "tf_keras" else "fail"), "it takes tf_keras itself"
    assert word == "tf_keras" or "pip install" not in commands(beside), "it is installed"
    answer = on("PKG-019", *found, variables={"TF_USE_LEGACY_KERAS": "1"})
    assert answer.outcome == "pass"
    found[0] = dist("tensorflow-cpu", "2.16.1")
    assert "--no-deps" in commands(on("PKG-019", *found[:2])), "or pip brings a second TensorFlow"


# PKG-020

DALI = dist("nvidia-dali-cuda120", "1.40.0")
TENSORFLOW = dist("tensorflow", "2.15.1")
SINCE = "2026-01-02T00:00:00Z"


def plugin(*libraries: tuple[str, Any], since: Any = SINCE, more: Any = ()) -> CheckResult:
    made = [DaliLibrary(name=name, made_at=at) for name, at in libraries]
    return on("PKG-020", DALI, TENSORFLOW, *more, dali_libraries=made, tensorflow_since=since)


def test_a_plugin_that_fits() -> None:
    assert plugin(("libdali_tf_current.so", "2026-01-03T00:00:00Z")).outcome == "pass"
    assert plugin(("libdali_tf_2_15.so", ABSENT), ("libdali_tf_1_15.so", ABSENT)).outcome == "pass"
    assert plugin(("libdali_tf_current.so", "2026-01-01T00:00:00Z"), since=ABSENT).outcome == "pass"


@pytest.mark.parametrize(
    ("libraries", "says"),
    [
        ([], "has no plugin for TensorFlow"),
        ([("libdali_tf_current.so", "2026-01-01T00:00:00Z")], "compiled before tensorflow 2.15.1"),
        ([("libdali_tf_1_8.so", ABSENT)], "made for another TensorFlow"),
    ],
)
def test_a_plugin_that_does_not_fit(libraries: list[tuple[str, Any]], says: str) -> None:
    result = plugin(*libraries)
    assert result.outcome == "warn" and says in result.findings[0].message
    assert "nvidia-dali-tf-plugin-cuda120==1.40.0" in commands(result)


def test_the_libraries_of_the_plugin_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "nvidia" / "dali_tf_plugin"
    folder.mkdir(parents=True)
    (folder / "libdali_tf_current.so").write_bytes(b"")
    (folder / "other.so").write_bytes(b"")
    for name in ("nvidia_dali_cuda120-1.40.0", "tensorflow-2.15.1"):
        (tmp_path / f"{name}.dist-info").mkdir()
        (tmp_path / f"{name}.dist-info" / "METADATA").write_text("Name: x\n")
    os.utime(folder / "libdali_tf_current.so", (0, 0))
    found = distributions.find([str(tmp_path)])
    assert dali.libraries(found) == [
        {"name": "libdali_tf_current.so", "made_at": "1970-01-01T00:00:00Z"}
    ]
    since = probe.tensorflow_since(found)
    assert msgspec.convert({"tensorflow_since": since}, Packages).tensorflow_since == since
    assert "unavailable" in dali.libraries([])


def test_the_collector_knows_the_same_tensorflows() -> None:
    assert set(distributions.TENSORFLOWS) == TENSORFLOWS
