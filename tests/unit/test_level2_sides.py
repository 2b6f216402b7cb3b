"""L2's sides of PyTorch, TensorFlow and JAX, on stand-ins for these."""

from __future__ import annotations

import re
from typing import Any

import fake_frameworks as fake
import pytest

from envcheck.collector.kernels import framework_jax, framework_tensorflow, framework_torch
from envcheck.collector.kernels.failures import NotSupported

# -- no GPU


@pytest.mark.parametrize(
    ("adapter", "words"),
    [
        (framework_torch.adapter(fake.torch(cuda=None)), "PyTorch .*: it was built without CUDA"),
        (
            framework_torch.adapter(fake.torch(seen=False)),
            r"PyTorch .*: torch.cuda.is_available\(\) is False "
            r"\(Found no NVIDIA driver on your system\)",
        ),
        (framework_tensorflow.adapter(fake.tensorflow(gpus=0, cuda=False)),
         "TensorFlow .*: it was built without CUDA"),
        (framework_tensorflow.adapter(fake.tensorflow(gpus=0)),
         r"TensorFlow .*: tf.config.list_physical_devices\('GPU'\) is empty"),
        (framework_jax.adapter(fake.jax(RuntimeError("Unknown backend: 'gpu'\nrequested"))),
         r"JAX .*: jax.devices\('gpu'\): Unknown backend: 'gpu' requested"),
        (framework_jax.adapter(fake.jax(found=0)), r"JAX .*: jax.devices\('gpu'\) is empty"),
    ],
)  # fmt: skip
def test_no_gpu_is_said_in_one_line(adapter: Any, words: str) -> None:
    result = adapter.absent()
    assert "sees no GPU here" in result and "\n" not in result
    assert re.fullmatch(words, result)


# -- PyTorch


def test_torchs_switch_and_its_older_and_newer_ways() -> None:
    torch = fake.torch()
    adapter = framework_torch.adapter(torch)
    adapter.switch("switch-on")
    assert torch.backends.cuda.matmul.allow_tf32 is True
    adapter.switch("half")
    assert torch.backends.cuda.matmul.allow_tf32 is False

    precision = ["highest"]
    torch = fake.torch(
        get_float32_matmul_precision=lambda: precision[-1],
        set_float32_matmul_precision=precision.append,
    )
    del torch.backends.cuda.matmul
    adapter = framework_torch.adapter(torch)
    adapter.switch("switch-on")
    adapter.switch("switch-off")
    assert precision == ["highest", "high", "highest"]

    torch = fake.torch(cuda="10.1")
    del torch.backends.cuda.matmul
    adapter = framework_torch.adapter(torch)
    adapter.switch("switch-off")
    assert adapter.call("switch-off") == "torch.matmul"
    with pytest.raises(NotSupported, match=r"PyTorch 2\.4\.0 has no switch"):
        adapter.switch("switch-on")


# -- TensorFlow


# -- JAX
