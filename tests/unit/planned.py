"""A choice, a lock and a machine to plan with."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from envcheck.install.catalogue.model import Build, Index, Release, Sdist, Stack
from envcheck.install.fit.disk_space import DiskSpace
from envcheck.install.fit.models import Candidate, Choice
from envcheck.install.lockfile import LockedFile, LockedPackage, Lockfile
from envcheck.install.plan.models import WheelPlan
from envcheck.install.plan.wheel_planning import WheelPlanInputs, plan
from envcheck.install.pythons.interpreter import Interpreter

MIB = 1024 * 1024
NVIDIA = "https://pypi.nvidia.com/"
PUBLIC = "https://index.example/simple/"


def sha256(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def package(
    name: str, version: str, size: int | None, index: str = PUBLIC, end: str = "-py3-none-any.whl"
) -> LockedPackage:
    file = f"{name.replace('-', '_')}-{version}{end}"
    return LockedPackage(
        name=name,
        version=version,
        index=index,
        file=LockedFile(name=file, url=f"{index}{file}", sha256=sha256(file), size=size),
    )


def lock(*packages: LockedPackage, **changes: Any) -> Lockfile:
    """Of nvidia-tf1 23.03: 900 MiB from NVIDIA's index, 21 MiB from the public one."""
    standard = [
        package("nvidia-tensorflow", "1.15.5+nv23.3", 400 * MIB, NVIDIA),
        package("nvidia-cudnn-cu12", "8.8.1", 500 * MIB, NVIDIA),
        package("numpy", "1.21.6", 20 * MIB),
        package("pip", "24.0", 1 * MIB),
    ]
    whole = Lockfile(
        stack="nvidia-tf1",
        release="23.03",
        python="3.8",
        architecture="x86_64",
        packages=list(packages) or standard,
        created_at="2026-11-21T17:00:00Z",
    )
    return msgspec.structs.replace(whole, **changes)


GAST = package("gast", "0.2.2", 11 * 1024, end=".tar.gz")
SETUPTOOLS = package("setuptools", "59.6.0", MIB)


def stack(**changes: Any) -> Stack:
    release = Release(
        release="23.03", version="1.15.5+nv23.3", python=["3.8"], source="the wheel's metadata"
    )
    whole = Stack(
        name="nvidia-tf1",
        title="NVIDIA TensorFlow 1",
        distribution="nvidia-tensorflow",
        requirement="nvidia-tensorflow=={version}",
        gpu=True,
        architectures=["x86_64"],
        source="NVIDIA",
        indexes=[
            Index(name="nvidia", urls=[NVIDIA], packages=["nvidia-*", "tensorrt"], source="NVIDIA")
        ],
        sdists=[
            Sdist(
                name="gast",
                version="0.2.2",
                sha256=GAST.file.sha256,
                why="has no wheel",
                source="its index",
                build=Build(requires=["setuptools==59.6.0"]),
            )
        ],
        must_pass=["FRM-001"],
        releases=[release],
    )
    return msgspec.structs.replace(whole, **changes)


def interpreter(version: str = "3.8.18", path: str = "/usr/bin/python3.8") -> Interpreter:
    return Interpreter(path=path, version=version, found_in="PATH")


def choice(of: Stack | None = None, **changes: Any) -> Choice:
    of = of or stack()
    candidate = Candidate(release=of.releases[0], interpreter=interpreter())
    return msgspec.structs.replace(
        Choice(stack=of, candidate=msgspec.structs.replace(candidate, **changes)),
        reasons=["23.03 is the newest release of nvidia-tf1"],
    )


def space(path: str, device: int = 1, free_mib: int | None = 100_000, **changes: Any) -> DiskSpace:
    whole = DiskSpace(
        path=path,
        device=device,
        free_mib=free_mib,
        noexec=False,
        read_only=False,
        writable=True,
    )
    return msgspec.structs.replace(whole, **changes)


def here(**changes: Any) -> WheelPlanInputs:
    whole = WheelPlanInputs(
        directory="/data/envs/nvidia-tf1",
        version="23.03-py3.8-0badcafe",
        installer="uv 0.13.9",
        environment=space("/data/envs/nvidia-tf1"),
        cache=space("/cache/uv"),
    )
    return msgspec.structs.replace(whole, **changes)


def planned(
    of: Choice | None = None, locked: Lockfile | None = None, **surroundings: Any
) -> WheelPlan:
    return plan(of or choice(), locked or lock(), here(**surroundings))


def cached(locked: Lockfile, *names: str) -> frozenset[str]:
    """The files of these packages of a lock, or of all."""
    return frozenset(p.file.sha256 for p in locked.packages if not names or p.name in names)
