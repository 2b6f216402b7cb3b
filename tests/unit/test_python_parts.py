"""Packages that are released apart and have to fit: JAX's parts, Keras 3, DALI's plugin."""

from __future__ import annotations

from typing import Any

import pytest
from targets import dist, good_snapshot, judge, packages

from envcheck.facts.target import Environment, LinkedFile, Loader
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


def test_a_jaxlib_without_cuda_is_of_the_same_release() -> None:
    requires = ['jaxlib (==0.3.25+cuda11.cudnn82) ; extra == "cuda11_cudnn82"']
    assert jax("0.3.25", ("jaxlib", "0.3.25"), requires=requires).outcome == "pass"
    assert jax("0.3.25", ("jaxlib", "0.3.22"), requires=requires).outcome == "fail"


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


# PKG-019


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


@pytest.mark.parametrize("there", [False, True])
def test_the_tensorflow_part_of_a_package_takes_tf_keras_by_name(there: bool) -> None:
    requires = ["numpy>=1.17", "tensorflow <2.16 ; extra == 'tf'"]
    part = dist("transformers", "4.38.2", keras_2="tf_keras", requires=requires)
    beside = [dist("tf_keras", "2.17.0")] if there else []
    result = on("PKG-019", dist("tensorflow", "2.17.1"), part, *beside)
    assert result.outcome == ("pass" if there else "warn")
    assert there or ("tf_keras~=2.17.0" in commands(result) and "export" not in commands(result))


# PKG-020

DALI = dist("nvidia-dali-cuda120", "1.40.0")
TENSORFLOW = dist("tensorflow", "2.15.1")


@pytest.mark.parametrize(
    ("files", "more", "outcome"),
    [
        ([], [], "warn"),
        ([], [dist("torch", "2.5.1")], "pass"),
        ([], [dist("nvidia-dali-tf-plugin-cuda120", "1.40.0")], "pass"),
        (["nvidia/dali/plugin/libdali_tf_1_8.so"], [], "pass"),
    ],
)
def test_dali_has_its_plugin(files: list[str], more: list[Any], outcome: str) -> None:
    loader = Loader(linked=[LinkedFile(path=f"/site-packages/{one}") for one in files])
    snapshot = good_snapshot(packages=packages(DALI, TENSORFLOW, *more), loader=loader)
    result = judge(snapshot, "PKG-020", "packages")
    assert result.outcome == outcome
    if outcome == "warn":
        assert "nvidia-dali-tf-plugin-cuda120==1.40.0" in commands(result)
