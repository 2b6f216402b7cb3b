"""Builds Snapshots with a target: a machine with two H100s and a TensorFlow that is well on it."""

from __future__ import annotations

from typing import Any

import msgspec
from build import area_checks, document, ok, snapshot

from envcheck.checks.engine import diagnose
from envcheck.facts.base import Probe, Unavailable
from envcheck.facts.gpu import CudaDevice, CudaDriver, Gpu, Nvml
from envcheck.facts.host import Host
from envcheck.facts.pci import Pci, PciDevice
from envcheck.facts.snapshot import Document, Snapshot
from envcheck.facts.target import (
    CompilerTool,
    ConfigFile,
    ConfigSetting,
    Distribution,
    Environment,
    Framework,
    FrameworkGpu,
    Library,
    Loader,
    Packages,
    PackagingConfig,
    TargetInterpreter,
)
from envcheck.findings.model import CheckResult

SITE = "<home-1>/venv/lib/python3.11/site-packages"
PYTHON = "<home-1>/venv/bin/python"
ABSENT = Unavailable(unavailable="absent")

AND_CUDA = {  # tensorflow[and-cuda] 2.19.1
    "nvidia-cublas-cu12": "12.5.3.2",
    "nvidia-cuda-cupti-cu12": "12.5.82",
    "nvidia-cuda-nvcc-cu12": "12.5.82",
    "nvidia-cuda-nvrtc-cu12": "12.5.82",
    "nvidia-cuda-runtime-cu12": "12.5.82",
    "nvidia-cudnn-cu12": "9.3.0.75",
    "nvidia-cufft-cu12": "11.2.3.61",
    "nvidia-curand-cu12": "10.3.6.82",
    "nvidia-cusolver-cu12": "11.6.3.83",
    "nvidia-cusparse-cu12": "12.5.1.3",
    "nvidia-nccl-cu12": "2.23.4",
    "nvidia-nvjitlink-cu12": "12.5.82",
}


def error(words: str, reason: Any = "error") -> Unavailable:
    return Unavailable(unavailable=reason, detail=words)


def gpu(index: int = 0, name: str = "NVIDIA H100 80GB HBM3", capability: str = "9.0") -> Gpu:
    return Gpu(
        index=index,
        name=name,
        pci_address=f"0000:{index + 1:02x}:00.0",
        uuid=f"GPU-<uuid-{index + 1}>",
        compute_capability=capability,
        mig_enabled=False,
    )


def machine(
    *gpus: Gpu, driver: str = "550.54.15", cuda: str = "12.4", **probes: Any
) -> dict[str, Any]:
    """The probes of a machine with these GPUs, all of which CUDA sees."""
    devices = [
        CudaDevice(
            ordinal=position,
            name=one.name,
            pci_address=one.pci_address,
            uuid=one.uuid,
            compute_capability=one.compute_capability,
        )
        for position, one in enumerate(gpus)
    ]
    values: dict[str, Any] = {
        "host": Host(os_id="debian", libc="glibc", glibc="2.35", container=ABSENT, wsl=False),
        "pci": Pci(
            devices=[
                PciDevice(address=str(one.pci_address), kind="gpu", device_id="10de:2330")
                for one in gpus
            ]
        ),
        "nvml": Nvml(
            init_code=0,
            driver_version=driver,
            cuda_version=cuda,
            gpu_count=len(gpus),
            gpus=list(gpus),
        ),
        "cuda": CudaDriver(
            init_code=0, driver_api_version=cuda, device_count=len(gpus), devices=devices
        ),
    }
    return values | probes


def bare_machine() -> dict[str, Any]:
    """A machine without an NVIDIA device, and so without a driver."""
    return {
        "host": Host(os_id="debian", libc="glibc", glibc="2.35", container=ABSENT, wsl=False),
        "pci": Pci(devices=[]),
        "nvml": Nvml(init_code=12, gpu_count=ABSENT, gpus=ABSENT),
        "cuda": CudaDriver(init_code=ABSENT, device_count=ABSENT, devices=ABSENT),
    }


def interpreter(**changes: Any) -> TargetInterpreter:
    facts: dict[str, Any] = {
        "executable": PYTHON,
        "version": "3.11.9",
        "implementation": "CPython",
        "kind": "virtualenv",
        "prefix": "<home-1>/venv",
        "base_prefix": "/usr",
        "architecture": "x86_64",
        "libc": "glibc 2.35",
        "user_site": False,
    }
    return TargetInterpreter(**(facts | changes))


def dist(name: str, version: str, **facts: Any) -> Distribution:
    given: dict[str, Any] = {
        "name": name,
        "normalized": name.replace("_", "-").lower(),
        "version": version,
        "location": SITE,
        "files": 10,
        "requires": [],
    }
    return Distribution(**(given | facts))


def packages(*distributions: Distribution, **facts: Any) -> Packages:
    return Packages(distributions=list(distributions), **facts)


def good_packages(**versions: str) -> Packages:
    """tensorflow 2.19.1 with its CUDA wheels; keyword arguments (with _ for -) change a version."""
    wanted = {"tensorflow": "2.19.1", "numpy": "2.1.3", "protobuf": "5.29.1"} | AND_CUDA
    wanted |= {name.replace("_", "-"): version for name, version in versions.items()}
    return packages(*(dist(name, version) for name, version in wanted.items() if version))


def wheel_library(
    name: str, soname: str, version: str, package: str, package_version: str, **facts: Any
) -> Library:
    part = package.removeprefix("nvidia-").rpartition("-")[0].replace("-", "_")
    given: dict[str, Any] = {
        "name": name,
        "how": "wheel",
        "soname": soname,
        "path": f"{SITE}/nvidia/{part}/lib/{soname}",
        "version": version,
        "version_from": "GetVersion",
        "origin": "wheel",
        "distribution": package,
        "distribution_version": package_version,
    }
    return Library(**(given | facts))


def good_libraries(how: str = "wheel") -> list[Library]:
    """The libraries of AND_CUDA's wheels, as loaded by path or by a framework."""
    rows = [
        ("libcudart", "libcudart.so.12", "12.5", "nvidia-cuda-runtime-cu12", "12.5.82"),
        ("libcublas", "libcublas.so.12", "12.5.3", "nvidia-cublas-cu12", "12.5.3.2"),
        ("libcublasLt", "libcublasLt.so.12", "12.5.3", "nvidia-cublas-cu12", "12.5.3.2"),
        ("libcufft", "libcufft.so.11", "11.2.3", "nvidia-cufft-cu12", "11.2.3.61"),
        ("libcurand", "libcurand.so.10", "10.3.6", "nvidia-curand-cu12", "10.3.6.82"),
        ("libcusolver", "libcusolver.so.11", "11.6.3", "nvidia-cusolver-cu12", "11.6.3.83"),
        ("libcusparse", "libcusparse.so.12", "12.5.1", "nvidia-cusparse-cu12", "12.5.1.3"),
        ("libnvJitLink", "libnvJitLink.so.12", "12.5", "nvidia-nvjitlink-cu12", "12.5.82"),
        ("libcudnn", "libcudnn.so.9", "9.3.0", "nvidia-cudnn-cu12", "9.3.0.75"),
        ("libcudnn_ops", "libcudnn_ops.so.9", "9.3.0", "nvidia-cudnn-cu12", "9.3.0.75"),
    ]
    return [wheel_library(*row, how=how) for row in rows]


def system_library(name: str, soname: str, version: str = "", **facts: Any) -> Library:
    given: dict[str, Any] = {
        "name": name,
        "how": "dlopen",
        "soname": soname,
        "path": f"/usr/lib/x86_64-linux-gnu/{soname}",
        "version": version or ABSENT,
        "origin": "system",
    }
    return Library(**(given | facts))


def compiler_tool(kind: Any, place: Any, root: str, version: str = "") -> CompilerTool:
    name = {"ptxas": "bin/ptxas", "libdevice": "nvvm/libdevice/libdevice.10.bc"}[kind]
    path = f"{root}/ptxas" if place == "PATH" else f"{root}/{name}"
    values = {"version": version} if version else {}
    return CompilerTool(kind=kind, place=place, path=path, root=root, **values)  # type: ignore[arg-type]


def good_tools() -> list[CompilerTool]:
    """What the nvidia-cuda-nvcc-cu12 wheel brings."""
    root = f"{SITE}/nvidia/cuda_nvcc"
    return [
        compiler_tool("ptxas", "wheel", root, "12.5.82"),
        compiler_tool("libdevice", "wheel", root),
    ]


def tensorflow(**changes: Any) -> Framework:
    """A TensorFlow 2.19.1 that sees both GPUs."""
    facts: dict[str, Any] = {
        "name": "tensorflow",
        "imported": True,
        "import_error": ABSENT,
        "import_seconds": 3.21,
        "version": "2.19.1",
        "cuda_build": True,
        "tensorrt_build": False,
        "built_cuda": "12.5.1",
        "built_cudnn": "9",
        "built_capabilities": ["sm_60", "sm_70", "sm_80", "sm_89", "sm_90", "compute_90"],
        "gpus": [FrameworkGpu(name="NVIDIA H100 80GB HBM3")] * 2,
        "libraries": good_libraries("framework"),
        "file": f"{SITE}/tensorflow/__init__.py",
        "compiler_tools": good_tools(),
    }
    return Framework(**(facts | changes))


def not_imported(name: Any = "tensorflow", words: str = "ImportError: no") -> Framework:
    return Framework(name=name, imported=False, import_error=words)


def config(*files: ConfigFile, traces: list[str] | None = None) -> PackagingConfig:
    return PackagingConfig(files=list(files), pyindex_traces=traces or [])


def config_file(
    path: str, level: Any = "user", tool: Any = "pip", mode: str = "0600", **settings: str
) -> ConfigFile:
    """A configuration file; keyword arguments are its [global] settings (with _ for -)."""
    found = [
        ConfigSetting(section="global", key=key.replace("_", "-"), value=value)
        for key, value in settings.items()
    ]
    return ConfigFile(tool=tool, level=level, path=path, mode=mode, settings=found)


def variable(name: str, value: str, credentials: bool = False) -> ConfigFile:
    key = name.partition("_")[2].replace("_", "-").lower()
    setting = ConfigSetting(section="env", key=key, value=value, credentials=credentials)
    tool: Any = name.partition("_")[0].lower()
    return ConfigFile(tool=tool, level="environment", path=name, settings=[setting])


def good_target(**changes: Any) -> Document:
    """A target that is well; keyword arguments replace its probes (None: was not asked for)."""
    probes: dict[str, Any] = {
        "interpreter": interpreter(),
        "environment": Environment(variables={}),
        "packages": good_packages(),
        "packaging_config": config(),
        "loader": Loader(ld_library_path=[], libraries=good_libraries()),
        "tensorflow": tensorflow(),
    }
    probes |= changes
    return document(
        "path:<home-1>/venv", **{name: p for name, p in probes.items() if p is not None}
    )


def failed(outcome: Any = "crashed", reason: str = "the probe exited with status 1") -> Probe[Any]:
    return Probe(outcome=outcome, reason=reason)


def good_snapshot(**changes: Any) -> Snapshot:
    """Two H100s and a target that is well; keyword arguments replace the target's probes."""
    return snapshot(good_target(**changes), **machine(gpu(0), gpu(1)))


def on_bare_machine(**changes: Any) -> Snapshot:
    return snapshot(good_target(**changes), **bare_machine())


def with_variables(**values: str) -> Snapshot:
    return good_snapshot(environment=Environment(variables=values))


def judge(snap: Snapshot, code: str, area: str) -> CheckResult:
    """One check's result, by itself: no other check's failure turns it into a consequence."""
    (chosen,) = [one for one in area_checks(area) if one.code == code]
    (result,) = diagnose(snap, checks=[chosen]).results
    return result


def replace(snap: Snapshot, document_name: str, **probes: Any) -> Snapshot:
    """The Snapshot with some probes of one document replaced."""
    old = getattr(snap, document_name)
    wrapped = {
        name: p if isinstance(p, Probe) or p is None else ok(p) for name, p in probes.items()
    }
    return msgspec.structs.replace(snap, **{document_name: msgspec.structs.replace(old, **wrapped)})
