"""What the framework probes make of a framework's own words; the frameworks here are made up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from envcheck.collector import framework
from envcheck.collector.facts import Facts, is_unavailable
from envcheck.collector.probes import jax as framework_jax
from envcheck.collector.probes import tensorflow as framework_tensorflow
from envcheck.collector.probes import torch as framework_torch

LOG = """\
2024-01-01 10:00:00.000000: I tensorflow/core/platform/cpu_feature_guard.cc:142] Your CPU supports AVX2
WARNING: All log messages before absl::InitializeLog() is called are written to STDERR
2024-01-01 10:00:00.000001: W tensorflow/stream_executor/platform/default/dso_loader.cc:55] Could not load \
dynamic library 'libcudnn.so.7'; dlerror: libcudnn.so.7: cannot open shared object file
2024-01-01 10:00:00.000002: W tensorflow/core/gpu_device.cc:1641] Cannot dlopen some GPU libraries
E0000 00:00:1795200166.912713 6979 cuda_platform.cc:52] failed call to cuInit: UNKNOWN ERROR (303)
/usr/lib/numpy/__init__.py:3: FutureWarning: nothing to see here
UserWarning: The NVIDIA driver on your system is too old (found version 10020).
I tensorflow/compiler/xla/service/service.cc:176] StreamExecutor device (0): Host, Default Version
"""


def test_the_log_keeps_what_is_about_gpus() -> None:
    values: dict[str, Any] = {}
    values["log"] = framework.about_gpus(LOG)
    assert [line.split("] ")[-1][:24] for line in values["log"]] == [
        "Could not load dynamic l",
        "Cannot dlopen some GPU l",
        "failed call to cuInit: U",
        "UserWarning: The NVIDIA ",
    ]


def fake_tensorflow(**info: Any) -> Any:
    def list_physical_devices(kind: str) -> list[Any]:
        assert kind == "GPU"
        return [SimpleNamespace(name=f"/physical_device:GPU:{i}") for i in range(2)]

    def get_device_details(device: Any) -> dict[str, Any]:
        if device.name.endswith("1"):
            raise RuntimeError("CUDA_ERROR_UNKNOWN")
        return {"device_name": "NVIDIA A100", "compute_capability": (8, 0)}

    return SimpleNamespace(
        __version__="2.15.0",
        sysconfig=SimpleNamespace(get_build_info=lambda: info),
        test=SimpleNamespace(is_built_with_cuda=lambda: True),
        config=SimpleNamespace(
            list_physical_devices=list_physical_devices,
            experimental=SimpleNamespace(
                get_device_details=get_device_details,
                tensor_float_32_execution_enabled=lambda: False,
            ),
            optimizer=SimpleNamespace(
                get_experimental_options=lambda: {"auto_mixed_precision": True},
                get_jit=lambda: "autoclustering",
            ),
        ),
    )


def test_tensorflow_2_is_described() -> None:
    facts = Facts()
    framework_tensorflow.describe(
        fake_tensorflow(
            cuda_version="12.2",
            cudnn_version="8",
            is_cuda_build=True,
            is_tensorrt_build=True,
            cuda_compute_capabilities=["sm_50", "compute_90"],
        ),
        facts,
    )
    assert facts.values["built_cuda"] == "12.2"
    assert facts.values["built_cudnn"] == "8"
    assert facts.values["built_capabilities"] == ["sm_50", "sm_90", "compute_90"]
    assert facts.values["tensorrt_build"] is True
    first, second = facts.values["gpus"]
    assert (first["name"], first["compute_capability"]) == ("NVIDIA A100", "8.0")
    assert second["name"] == "/physical_device:GPU:1"
    settings = facts.values["settings"]
    assert (settings["tf32"], settings["amp"], settings["xla"]) == (
        "false",
        "true",
        "autoclustering",
    )


def test_a_framework_that_raises_at_every_question_still_gives_facts() -> None:
    class Hostile:
        def __getattr__(self, name: str) -> Any:
            raise SystemExit(3)

    for describe in (framework_torch.describe, framework_jax.describe):
        facts = Facts()
        describe(Hostile(), facts)
        assert is_unavailable(facts.values["gpus"])
        assert facts.values["settings"].keys() <= {"jaxlib", "cuda_plugin"}
