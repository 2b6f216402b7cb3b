"""What nvidia-tensorflow of a month asks for, and in which versions: from envcheck's tables.

Where no source is known for a library's version, the stand-in has one of its own (``OWN``): the recipe's
names and the form of its requirements are the months', the numbers of these are not.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from packaging.requirements import Requirement
from packaging.version import Version

from envcheck.data import table
from envcheck.data.releases import Dependency, by_month, dependencies, month_key

MONTHS = ("20.06", "20.12", "22.05", "22.12", "23.03")

# Each with another form of dependency names: unsuffixed, unsuffixed, -cu116 >=, -cu11 ~=, -cu12 ~=.
OWN = {
    "20.12": {"nvidia-horovod": "0.20.2+nv20.12", "nvidia-cuda-nvrtc": "11.1.105"},
    "22.05": {
        "cuda-runtime": "11.6.55", "cuda-cupti": "11.6.124", "cuda-nvcc": "11.6.124",
        "cublas": "11.9.3.115", "cufft": "10.7.2.124", "curand": "10.2.9.124",
        "cusolver": "11.3.4.124", "cusparse": "11.7.2.124", "cudnn": "8.4.0.27", "nccl": "2.12.10",
        "tensorrt": "8.2.5.1", "dali": "1.13.0", "horovod": "0.24.3",
    },
    "22.12": {"tensorrt": "8.5.1.7", "dali": "1.20.0", "horovod": "0.26.1"},
    "23.03": {
        "cuda-runtime": "12.1.105", "cuda-cupti": "12.0.90", "cuda-nvcc": "12.0.140",
        "cublas": "12.1.3.1", "cufft": "11.0.2.54", "curand": "10.3.2.106", "cusolver": "11.4.5.107",
        "cusparse": "12.0.2.55", "cudnn": "8.8.1.3", "nccl": "2.17.1", "tensorrt": "8.5.3.1",
        "dali": "1.23.0", "horovod": "0.27.0",
    },
}  # fmt: skip

# Requirements of TensorFlow 1.15 itself that the tables have no rows for.
UPSTREAM = ("absl-py>=0.9.0", "google-pasta>=0.1.8", "grpcio>=1.8.6", "keras-applications>=1.0.8",
            "keras-preprocessing>=1.0.5", "opt-einsum>=2.3.2", "six>=1.10.0", "termcolor>=1.1.0",
            "wheel>=0.26", "wrapt>=1.11.1")  # fmt: skip


@dataclass
class Month:
    """One release, as its wheel says it."""

    month: str
    version: str  # as in the file name: "1.15.5+nv23.03"
    python: str
    build: str  # the build number in the file name, or ""
    requires: list[str] = field(default_factory=list)
    horovod: list[str] = field(default_factory=list)  # the extra's requirements
    libraries: dict[str, list[str]] = field(default_factory=dict)  # NVIDIA's, with their versions

    def require(self, name: str, specifier: str, versions: list[str], extra: str = "") -> None:
        (self.horovod if extra else self.requires).append(f"{name}{specifier}")
        self.libraries.setdefault(name, []).extend(versions)


def month(name: str) -> Month:
    release = by_month(name)
    assert release is not None and release.wheel is not None
    (row,) = (row for row in table("releases") if row["release"] == name)
    python = "3.6" if month_key(name) <= (20, 11) else "3.8"
    told = Month(name, row["wheel_version"], python, row["wheel_build"])
    for dependency in dependencies(name):
        if dependency.kind == "setup.py":
            value = dependency.value.partition("(")[0].strip()
            told.requires.append(str(Requirement(f"{dependency.name}{value}")))
    told.requires += UPSTREAM
    rules = [row for row in dependencies(name) if row.kind == "rule" and row.value]
    if rules:
        _by_rules(told, rules, row["readme_build_cuda"])
    else:
        _as_seen(told)
    return told


def _as_seen(told: Month) -> None:
    """Up to 21.12: unsuffixed names, in the versions that were installed or documented."""
    for row in dependencies(told.month):
        name = row.name
        if row.kind not in ("installed", "doc") or not name.startswith("nvidia-"):
            continue
        if name in ("nvidia-tensorflow", "nvidia-pyindex"):
            continue
        version = OWN.get(told.month, {}).get(name, row.value)
        extra = "horovod" if name == "nvidia-horovod" else row.extra
        told.require(name, f"=={row.value}", [version], extra)
    if not told.horovod:
        version = OWN[told.month]["nvidia-horovod"]
        told.require("nvidia-horovod", f"=={version}", [version], "horovod")


def _by_rules(told: Month, rules: list[Dependency], cuda: str) -> None:
    """From 22.01 on: names with a CUDA suffix, floating from the version that it was built with."""
    major, minor = cuda.split(".")[:2]
    own = OWN[told.month]
    seen = {row.name: row.value for row in dependencies(told.month) if row.kind == "installed"}
    for row in rules:
        name = row.name.partition(" ")[0].replace("<CUDA_MAJMIN>", major + minor)
        part = name.removeprefix("nvidia-").partition("-cu")[0]
        if not part or name.startswith("nvidia-cuda-"):
            part = "-".join(name.split("-")[1:3])
        if row.value.startswith("=="):
            version = f"{own[part.partition('-')[0]]}+nv{told.month}"
            told.require(name, f"=={version}", [version], row.extra)
            continue
        built = own.get(part) or seen[name]
        version = Version(built)
        operator = row.value.split()[0]
        later = [seen[name]] if seen.get(name, built) != built else []
        told.require(name, f"{operator}{version.major}.{version.minor}", [built, *later], row.extra)
