"""Python environments: NVIDIA's libraries, packages that do not go together, frameworks that see nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from world import environments as env
from world.environments import Package
from world.machine import Library, Machine

from ..model import Collection

FAULTS = Collection("libraries and frameworks")
add = FAULTS.add
Packages = dict[str, Package]
SEES_NONE = "FRM-002|LIB-008|PKG-013|FRM-005"


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


def _set(name: str, **values: object) -> Callable[[Packages], None]:
    def change(packages: Packages) -> None:
        packages[name] = replace(packages[name], **values)  # type: ignore[arg-type]

    return change


def _more(*packages: Package) -> Callable[[Packages], None]:
    return lambda p: p.update({package.name: package for package in packages})


add(
    "TensorFlow without its CUDA wheels",
    "h100",
    _tf(wheels={}),
    (SEES_NONE, r"", r"CUDA|librar|wheels", r"tensorflow\[and-cuda\]"),
    also=SEES_NONE,
)
add(
    "cuDNN's wheel is missing",
    "rtx4090",
    _tf(wheels=_without("cudnn")),
    (f"{SEES_NONE}|LIB-005|PKG-0(15|09)", r"", r"cudnn", r"nvidia-cudnn-cu12|and-cuda"),
    also=f"{SEES_NONE}|LIB-005|PKG-0(15|09)",
)
add(
    "cuDNN 8 under a TensorFlow that was built with 9",
    "h100",
    _tf(wheels={**env.CUDA_12_5, "cudnn": "8.9.7.29"}),
    (
        f"{SEES_NONE}|LIB-005|PKG-0(15|09)",
        r"",
        r"8\.9\.7|libcudnn\.so\.9",
        r"nvidia-cudnn-cu12|and-cuda",
    ),
    also=f"{SEES_NONE}|LIB-005|PKG-0(15|09)",
)
add(
    "cuSPARSE's wheel is missing",
    "h100",
    _tf(wheels=_without("cusparse")),
    (f"{SEES_NONE}|PKG-0(15|09)", r"", r"cusparse", r"nvidia-cusparse-cu12|and-cuda"),
    also=f"{SEES_NONE}|PKG-0(15|09)",
)


def _older_cuda_in_path(m: Machine) -> None:
    _tf()(m)
    folder = "/usr/local/cuda-12.1/lib64"
    for name, content in env.cuda_library("cublas", "12.1.3.1").items():
        m.write(f"{folder}/{name.rpartition('/')[2]}", content)
    m.environment["LD_LIBRARY_PATH"] = folder


add(
    "LD_LIBRARY_PATH puts cuBLAS 12.1 before the wheel's 12.5",
    "h100",
    _older_cuda_in_path,
    ("LIB-00[49]", r"", r"cuda-12\.1|12\.1", r"LD_LIBRARY_PATH"),
)


def _second_cudnn(m: Machine) -> None:
    _tf()(m)
    folder = "/usr/local/cudnn/lib"
    for name, content in env.cuda_library("cudnn", "9.1.0.70").items():
        if not name.endswith("libcudnn.so.9"):
            m.write(f"{folder}/{name.rpartition('/')[2]}", content)
    m.write(
        f"{folder}/libcudnn.so.9",
        env.cuda_library("cudnn", "9.1.0.70")["nvidia/cudnn/lib/libcudnn.so.9"],
    )
    m.environment["LD_LIBRARY_PATH"] = folder


add(
    "LD_LIBRARY_PATH puts an older cuDNN before the wheel's",
    "rtx4090",
    _second_cudnn,
    ("LIB-00[2459]|LIB-01[123]", r"", r"9\.1|/usr/local/cudnn", r"LD_LIBRARY_PATH"),
    also="LIB-00[2459]|LIB-01[123]",
)
for value, cause in (
    ("", r"empty|hides|no GPU|\"\"|''"),
    ("9", r"\b9\b"),
    ("GPU-deadbeef-0000-0000-0000-000000000000", r"deadbeef|<uuid"),
):
    add(
        f"CUDA_VISIBLE_DEVICES={value}",
        "h100",
        _tf(CUDA_VISIBLE_DEVICES=value),
        ("ENV-001", r"", cause, r"unset CUDA_VISIBLE_DEVICES|CUDA_VISIBLE_DEVICES="),
        also="FRM-002",
    )
add(
    "numpy 2.2 under a TensorFlow that wants less",
    "h100",
    _tf(_set("numpy", version="2.2.6")),
    ("PKG-0(09|14)", r"", r"numpy.*2\.2\.6|2\.2\.6.*numpy", r"numpy"),
    also="PKG-0(09|14)",
)


add(
    "protobuf 6 under TensorFlow 2.18",
    "h100",
    _tf(
        _set(
            "protobuf",
            version="6.30.2",
            files={"google/protobuf/__init__.py": "__version__ = '6.30.2'\n"},
        )
    ),
    ("PKG-0(05|09)", r"", r"protobuf.*6\.30\.2|6\.30\.2.*protobuf", r"protobuf"),
)
add(
    "tensorflow-cpu beside tensorflow",
    "rtx4090",
    _tf(_more(Package("tensorflow-cpu", "2.18.0"))),
    ("PKG-003", r"", r"tensorflow-cpu", r"uninstall"),
)


def _cpu_build(packages: Packages) -> None:
    made = packages.pop("tensorflow")
    text = made.files["tensorflow/__init__.py"]
    assert isinstance(text, str)
    files = {"tensorflow/__init__.py": text.replace("CPU_ONLY = False", "CPU_ONLY = True")}
    packages["tensorflow-cpu"] = replace(made, name="tensorflow-cpu", files=files)  # type: ignore[arg-type]


add(
    "a TensorFlow that was built without CUDA",
    "h100",
    _tf(_cpu_build, wheels={}),
    ("FRM-005", r"", r"without|built|CPU", r"tensorflow\[and-cuda\]|uninstall"),
    also="FRM-002|PKG-013",
)
add(
    "a file of cuBLAS's wheel is gone",
    "h100",
    _tf(_set("nvidia-cublas-cu12", gone=("nvidia/cublas/lib/libcublas.so.12",))),
    ("PKG-001|LIB-00[68]", r"cublas|", r"libcublas\.so\.12", r"reinstall"),
    also="PKG-001|LIB-00[68]|FRM-002",
)


def _crashing(packages: Packages) -> None:
    crash = Library("versioned", ("CRASH",))
    packages["nvidia-cufft-cu12"].files["nvidia/cufft/lib/libcufft.so.11"] = crash


add(
    "a library that crashes when it is loaded",
    "h100",
    _tf(_crashing),
    (
        "LIB-007|FRM-00[17]",
        r"cufft|",
        r"cufft|signal|crash",
        r"reinstall|nvidia-cufft-cu12|install",
    ),
    also="LIB-00[67]|FRM-00[127]",
)
add(
    "NVIDIA's wheels of two CUDA majors",
    "h100",
    _tf(
        _more(
            env.cuda_wheel("cudnn", "8.9.6.50", "cu11"),
            env.cuda_wheel("cublas", "11.11.3.6", "cu11"),
        )
    ),
    ("PKG-008|LIB-002", r"", r"cu11|11\.11|8\.9\.6", r"uninstall"),
    also="PKG-001|LIB-002",
)
add(
    "the old pynvml package over nvidia-ml-py's module",
    "h100",
    _tf(
        _more(
            Package(
                "pynvml",
                "11.5.3",
                files={"pynvml/__init__.py": "__version__ = '11.5.3'\n"},
                tag="py3-none-any",
            ),
            Package("nvidia-ml-py", "12.575.51", files={"pynvml.py": ""}, tag="py3-none-any"),
        )
    ),
    ("PKG-006", r"", r"pynvml.*11\.5\.3|11\.5\.3", r"uninstall.*pynvml"),
)


def _too_new_for_driver(m: Machine) -> None:
    m.driver, m.cuda = "470.256.02", (11, 4)
    m.packages = {}
    for gpu in m.gpus:
        gpu.change(gsp=None)
    _tf()(m)


add(
    "a driver too old for TensorFlow's CUDA",
    "t4",
    _too_new_for_driver,
    ("FRM-003", r"", r"12\.5.*470|470.*12\.5|11\.4", r"driver|apt|525"),
    also="FRM-002",
)


def _blackwell(m: Machine) -> None:
    for gpu in m.gpus:
        gpu.change(
            name="NVIDIA GeForce RTX 5090",
            device_id=0x2B85,
            architecture=10,
            capability=(12, 0),
            memory_mib=32607,
            pcie_max=(5, 16),
            pcie_max_device=5,
        )
        m.device(gpu.address).files["device"] = "0x2b85"
    _tf()(m)


add(
    "TensorFlow's wheel on Blackwell",
    "rtx4090",
    _blackwell,
    ("FRM-004", r"", r"12\.0|sm_120", r"container|nvcr\.io|ngc"),
)
add(
    "tf_keras of another minor version",
    "h100",
    _tf(
        _more(Package("tf_keras", "2.16.0", ("tensorflow<2.17,>=2.16",), tag="py3-none-any")),
        TF_USE_LEGACY_KERAS="1",
    ),
    ("PKG-0\\d\\d|FRM-0(0[89]|1[0-2])", r"", r"tf.keras.*2\.16", r"tf.keras"),
    also="PKG-009",
)
add(
    "NVIDIA_TF32_OVERRIDE=0",
    "h100",
    _tf(NVIDIA_TF32_OVERRIDE="0"),
    ("ENV-004", "", "NVIDIA_TF32_OVERRIDE", "unset NVIDIA_TF32_OVERRIDE"),
    also="FRM-00[24]",
)


def _preload(m: Machine) -> None:
    _tf()(m)
    m.write(
        "/opt/shim/libcudart.so.12",
        env.cuda_library("cuda_runtime", "12.1.105")["nvidia/cuda_runtime/lib/libcudart.so.12"],
    )
    m.environment["LD_PRELOAD"] = "/opt/shim/libcudart.so.12"


add(
    "LD_PRELOAD replaces the CUDA runtime",
    "h100",
    _preload,
    ("ENV-007", r"", r"/opt/shim", r"unset LD_PRELOAD|LD_PRELOAD"),
)


def _ptxas(packages: Packages) -> None:
    del packages["nvidia-cuda-nvcc-cu12"]


add(
    "no ptxas and no libdevice for XLA",
    "h100",
    _tf(_ptxas),
    (
        "FRM-0(0[89]|1[0-2])|PKG-0(09|15)",
        r"",
        r"ptxas|libdevice|nvcc",
        r"nvidia-cuda-nvcc-cu12|and-cuda",
    ),
)


def _horovod(packages: Packages) -> None:
    packages["horovod"] = Package(
        "horovod", "0.28.1", files={"horovod/__init__.py": "", "horovod/torch/mpi_lib_v2.so": "x"}
    )


add(
    "Horovod was not built for TensorFlow",
    "h100",
    _tf(_horovod),
    ("PKG-011", r"", r"tensorflow", r"HOROVOD_WITH_TENSORFLOW|horovod"),
    also="LIB-006",
)


def _torch(
    version: str, cuda: str, change: Callable[[Machine], object] = lambda m: None
) -> Callable[[Machine], None]:
    def apply(m: Machine) -> None:
        env.install(m, env.torch(version, cuda))
        change(m)

    return apply


add(
    "PyTorch without CUDA",
    "rtx4090",
    _torch("2.6.0", ""),
    ("FRM-005", r"", r"CUDA|CPU", r"torch"),
    also="FRM-002",
)


def _jax(packages: Packages) -> None:
    for name, version in (
        ("jax", "0.4.38"),
        ("jaxlib", "0.4.30"),
        ("jax-cuda12-plugin", "0.4.38"),
        ("jax-cuda12-pjrt", "0.4.38"),
    ):
        packages[name] = Package(
            name, version, ("jaxlib<=0.4.38,>=0.4.38",) if name == "jax" else ()
        )


add(
    "jaxlib older than jax",
    "h100",
    _tf(_jax),
    ("PKG-0\\d\\d|FRM-0(0[189]|1[0-2])", r"", r"jaxlib.*0\.4\.30|0\.4\.30", r"jax"),
    also="FRM-00[12]|PKG-0\\d\\d",
)
