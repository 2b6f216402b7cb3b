"""The check on a driver in an image: what an engine brought in is none, nor is a system container's."""

from __future__ import annotations

from typing import Any

from build import area_checks, document, snapshot
from judged import commands

from envcheck.checks.engine import diagnose
from envcheck.facts.gpu import Nvml
from envcheck.facts.host import Host
from envcheck.facts.kernel import DriverFile, DriverPackage, Kernel
from envcheck.facts.snapshot import Snapshot
from envcheck.facts.target import Environment
from envcheck.findings.model import CheckResult, Finding

CHECKS = [check for check in area_checks("container") if check.code == "CTR-012"]
MODULE = "535.183.01"
OTHER = "510.47.03"
LIBRARIES = "/usr/lib/x86_64-linux-gnu"


def library(version: str, mounted: bool | None, folder: str = LIBRARIES) -> DriverFile:
    path = f"{folder}/libcuda.so.{version}"
    known = {} if mounted is None else {"mounted": mounted}
    return DriverFile(path=path, library="libcuda", version=version, real_path=path, **known)


def seen(*files: DriverFile, kind: str = "docker", code: int = 0, **more: Any) -> Snapshot:
    path = more.pop("library_path", "")
    kernel = Kernel(driver_version=MODULE, driver_files=list(files), **more)
    target = document("path:/venv", environment=Environment(variables={"LD_LIBRARY_PATH": path}))
    return snapshot(target, host=Host(container=kind), kernel=kernel, nvml=Nvml(init_code=code))


def result(snap: Snapshot) -> CheckResult:
    (found,) = diagnose(snap, checks=CHECKS).results
    return found


def only(snap: Snapshot) -> Finding:
    (finding,) = result(snap).findings
    return finding


def test_what_is_well() -> None:
    assert result(seen()).outcome == "pass"


def test_the_image_s_libraries_are_used() -> None:
    finding = only(seen(library(OTHER, False), library(MODULE, True), code=18))
    assert finding.level == "fail" and OTHER in finding.message and MODULE in finding.message
    assert finding.subjects[0].text == f"{LIBRARIES}/libcuda.so.{OTHER}"
    assert f"# in its Dockerfile: RUN rm -f {LIBRARIES}/libcuda.so.{OTHER}" in commands(finding)
    assert MODULE not in commands(finding)


def test_the_image_s_libraries_wait() -> None:
    finding = only(seen(library(OTHER, False), library(MODULE, True)))
    assert finding.level == "warn" and "another order" in finding.message


def test_apptainer_s_libraries_bear_no_version() -> None:
    snap = seen(
        library(OTHER, False, "/opt/driver"),
        kind="apptainer",
        code=18,
        library_path="/opt/driver:/.singularity.d/libs",
    )
    command_lines = commands(only(snap))
    assert "export LD_LIBRARY_PATH=/.singularity.d/libs:" in command_lines
    assert "%post: rm -f" in command_lines and "Dockerfile" not in command_lines


def test_a_driver_that_was_installed_in_the_image() -> None:
    package = DriverPackage(
        manager="dpkg", name="libnvidia-compute-510", version=f"{OTHER}-0ubuntu1"
    )
    command_lines = commands(only(seen(library(OTHER, False), code=18, driver_packages=[package])))
    assert "apt-get purge -y libnvidia-compute-510" in command_lines
    assert "on the host" not in command_lines
