"""Two frameworks in one environment: which releases are put together, and why others are not."""

from __future__ import annotations

import msgspec
import pytest

from envcheck.exit_codes import Cannot, UsageError
from envcheck.install.catalogue import load, pairs
from envcheck.install.catalogue.model import Stack
from envcheck.install.catalogue.schema import read
from envcheck.install.export.bundle_parts import stack_text
from envcheck.install.fit.models import Choice, JudgedRelease


def test_each_release_gets_the_newest_of_the_same_cuda() -> None:
    both = load.load("tensorflow-with-torch")
    release = load.find(both, "2.20.0")
    assert release.release == "2.20.0+torch2.10.0"
    assert release.extra_requirements == ["torch==2.10.0"]
    assert (release.cuda, release.glibc) == ("12.8", "2.28")
    assert release.python == ["3.10", "3.11", "3.12", "3.13"]
    assert "nvidia-cudnn-cu12<9.11" in release.constraints
    assert {"FRM-001", "FRM-002"} <= set(both.must_pass) and both.gpu


def test_both_have_code_for_the_gpus_that_are_named() -> None:
    release = load.find(load.load("tensorflow-with-torch"), "2.20.0")
    # 6.0 is TensorFlow's alone; TensorFlow's compute_90 runs on newer GPUs, and torch has their code
    assert "sm_60" not in release.compute_capabilities
    assert {"sm_70", "sm_80", "sm_90", "sm_100", "sm_120"} <= set(release.compute_capabilities)
    assert not any(one.startswith("compute") for one in release.compute_capabilities)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("tensorflow-with-jax", "libraries of CUDA 12.5.1, and jax 0.12.0.1 those of CUDA 13.0"),
        ("nvidia-tf1-with-torch", "nvidia-tf1 23.03 is for Python 3.8, and torch 2.14.1 for 3.10"),
        ("tensorflow-with-tensorflow-cpu", "are the same framework"),
        ("jax-with-jax-cuda12", "are the same framework"),
    ],
)
def test_what_cannot_be_in_one_environment_says_why(name: str, why: str) -> None:
    with pytest.raises(Cannot, match=why):
        load.load(name)


def test_the_other_stack_that_may_go_with_it_is_named() -> None:
    with pytest.raises(Cannot) as caught:
        load.load("tensorflow-with-jax")
    assert "--with jax-cuda12" in caught.value.hint


@pytest.mark.parametrize("name", ["tensorflow-with-nothing", "mine-with-torch", "-with-", "with"])
def test_half_a_pair_is_no_stack(name: str) -> None:
    assert not load.is_known(name)
    with pytest.raises(UsageError, match="there is no stack"):
        load.load(name)


def test_a_build_without_cuda_goes_with_any() -> None:
    both = load.load("tensorflow-cpu-with-jax-cpu")
    assert not both.gpu and both.must_pass == ["FRM-001"]
    assert load.load("torch-with-jax").releases[0].release == "2.14.1+jax0.12.0.1"
    assert load.load("tensorflow-cpu-with-torch").gpu


def test_a_pair_goes_into_a_bundle_and_comes_out_as_it_was() -> None:
    both = load.load("tensorflow-with-torch")
    chosen = load.find(both, "2.20.0")
    text = stack_text([Choice(stack=both, candidate=JudgedRelease(release=chosen))])
    assert read(text, "stack.toml") == msgspec.structs.replace(both, releases=[chosen])


def test_older_releases_are_named_where_the_resolver_says_no() -> None:
    both = load.load("tensorflow-with-torch")
    newest, older = both.releases[0].release, both.releases[1].release
    assert pairs.older(both, newest).endswith(f"--release {older}")
    assert pairs.older(both, both.releases[-1].release) == ""
    single: Stack = load.load("torch")
    assert pairs.older(single, single.releases[0].release) == ""
