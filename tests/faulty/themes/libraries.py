"""Python environments: NVIDIA's libraries, packages that do not go together, frameworks that see nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from world import environments as env
from world.environments import Package
from world.machine import Machine

from ..changes import both, files
from ..model import Collection

FAULTS = Collection("libraries and frameworks")
add = FAULTS.add
Packages = dict[str, Package]
SEES_NONE = "FRM-002|LIB-008|FRM-005"


def _tf(
    change: Callable[[Packages], object] = lambda p: None,
    wheels: dict[str, str] | None = None,
    **variables: str,
) -> Callable[[Machine], None]:
    def apply(m: Machine) -> None:
        packages = env.tensorflow(wheels=wheels)
        change(packages)
        env.install(m, packages)
        m.environment |= variables

    return apply


def _without(*projects: str) -> dict[str, str]:
    return {name: version for name, version in env.CUDA_12_5.items() if name not in projects}


def _more(*packages: Package) -> Callable[[Packages], None]:
    return lambda p: p.update({package.name: package for package in packages})


add(
    "TensorFlow without its CUDA wheels",
    _tf(wheels={}),
    (SEES_NONE, r"", r"CUDA|librar|wheels", r"tensorflow\[and-cuda\]"),
    also=SEES_NONE,
)


CUDA_12_1 = "/usr/local/cuda-12.1/lib64"
CUBLAS = env.cuda_library("cublas", "12.1.3.1")
add(
    "LD_LIBRARY_PATH puts cuBLAS 12.1 before the wheel's 12.5",
    both(
        _tf(LD_LIBRARY_PATH=CUDA_12_1),
        files({f"{CUDA_12_1}/{Path(name).name}": content for name, content in CUBLAS.items()}),
    ),
    ("LIB-00[49]", r"", r"cuda-12\.1|12\.1", r"LD_LIBRARY_PATH"),
)
for value, cause in (
    ("", r"empty|hides|no GPU|\"\"|''"),
    ("9", r"\b9\b"),
    ("GPU-deadbeef-0000-0000-0000-000000000000", r"deadbeef|<uuid"),
):
    add(
        f"CUDA_VISIBLE_DEVICES={value}",
        _tf(CUDA_VISIBLE_DEVICES=value),
        ("ENV-001", r"", cause, r"unset CUDA_VISIBLE_DEVICES|CUDA_VISIBLE_DEVICES="),
        also="FRM-002",
    )


PROTOBUF_6 = {"google/protobuf/__init__.py": "__version__ = '6.30.2'\n"}
add(
    "protobuf 6 under TensorFlow 2.18",
    _tf(_more(Package("protobuf", "6.30.2", files=PROTOBUF_6, tag="py3-none-any"))),
    ("PKG-0(05|09)", r"", r"protobuf.*6\.30\.2|6\.30\.2.*protobuf", r"protobuf"),
)
add(
    "tensorflow-cpu beside tensorflow",
    _tf(_more(Package("tensorflow-cpu", "2.18.0"))),
    ("PKG-003", r"", r"tensorflow-cpu", r"uninstall"),
    base="rtx4090",
)


CUDA_11 = (
    env.cuda_wheel("cudnn", "8.9.6.50", "cu11"),
    env.cuda_wheel("cublas", "11.11.3.6", "cu11"),
)
add(
    "NVIDIA's wheels of two CUDA majors",
    _tf(_more(*CUDA_11)),
    ("PKG-008|LIB-002", r"", r"cu11|11\.11|8\.9\.6", r"uninstall"),
    also="PKG-001|LIB-002",
)
add(
    "tf_keras of another minor version",
    _tf(
        _more(Package("tf_keras", "2.16.0", ("tensorflow<2.17,>=2.16",), tag="py3-none-any")),
        TF_USE_LEGACY_KERAS="1",
    ),
    ("PKG-0\\d\\d|FRM-0(0[89]|1[0-2])", r"", r"tf.keras.*2\.16", r"tf.keras"),
    also="PKG-009",
)


SHIM = "/opt/shim/libcudart.so.12"
(CUDART,) = env.cuda_library("cuda_runtime", "12.1.105").values()
add(
    "LD_PRELOAD replaces the CUDA runtime",
    both(_tf(LD_PRELOAD=SHIM), files({SHIM: CUDART})),
    ("ENV-007", r"", r"/opt/shim", r"unset LD_PRELOAD|LD_PRELOAD"),
)


HOROVOD = {"horovod/__init__.py": "", "horovod/torch/mpi_lib_v2.so": "x"}
add(
    "Horovod was not built for TensorFlow",
    _tf(_more(Package("horovod", "0.28.1", files=HOROVOD))),
    ("PKG-011", r"", r"tensorflow", r"HOROVOD_WITH_TENSORFLOW|horovod"),
    also="LIB-006",
)
add(
    "PyTorch without CUDA",
    lambda m: env.install(m, env.torch("2.6.0", "")),
    ("FRM-005", r"", r"CUDA|CPU", r"torch"),
    base="rtx4090",
    also="FRM-002",
)
