"""The checks on container engines: silent on healthy machines and on those without a GPU."""

from __future__ import annotations

from functools import partial
from typing import Any

import judged
import pytest
from build import area_checks, snapshot
from judged import commands
from msgspec.structs import replace

from envcheck.checks.engine import diagnose
from envcheck.facts.base import Unavailable
from envcheck.facts.containers import CdiSpec, Containers, Engine, LoggedError
from envcheck.facts.gpu import Gpu, Nvml
from envcheck.facts.host import Host
from envcheck.facts.kernel import DeviceNode, Kernel
from envcheck.facts.pci import Pci, PciDevice
from envcheck.findings.model import CheckResult

ELSEWHERE = ("CTR-009", "CTR-010", "CTR-012")  # a node of Kubernetes, and what is in a container
CHECKS = [check for check in area_checks("container") if check.code not in ELSEWHERE]
ABSENT = Unavailable(unavailable="absent")
only = partial(judged.only, level="warn")
NO_DAEMON = Unavailable(unavailable="error", detail="Cannot connect to the Docker daemon.")

GPU = PciDevice(address="0000:01:00.0", kind="gpu", device_id="10de:2330", driver="nvidia")
WITH_GPU = Pci(devices=[GPU])
SPEC = CdiSpec(
    path="/var/run/cdi/nvidia.yaml",
    kind="nvidia.com/gpu",
    version="0.5.0",
    devices=["0", "all"],
    missing_paths=[],
)
DOCKER = Engine(
    name="docker",
    path="/usr/bin/docker",
    version="28.3.0",
    server_version="28.3.0",
    rootless=False,
    cgroup_driver="systemd",
    cgroup_version="2",
    runtimes=["nvidia", "runc"],
    remote=False,
    cdi_enabled=True,
)
PODMAN = Engine(
    name="podman",
    path="/usr/bin/podman",
    version="4.3.1",
    server_version="4.3.1",
    rootless=True,
    cgroup_driver="systemd",
    runtimes=["crun"],
    remote=False,
)
APPTAINER = Engine(name="apptainer", path="/usr/bin/apptainer", version="1.3.0")
ENROOT = Engine(name="enroot", path="/usr/bin/enroot", version="3.4.1")
# A machine with NVIDIA's toolkit installed and configured.
READY = Containers(
    engines=[DOCKER, PODMAN, APPTAINER, ENROOT],
    toolkit_path="/usr/bin/nvidia-ctk",
    toolkit_version="1.18.1",
    cli_path="/usr/bin/nvidia-container-cli",
    cli_version="1.18.1",
    hook_path="/usr/bin/nvidia-container-runtime-hook",
    oci_hooks=[],
    toolkit_config="/etc/nvidia-container-runtime/config.toml",
    toolkit_mode="auto",
    toolkit_no_cgroups=ABSENT,
    cdi_specs=[SPEC],
    settings=[],
)
# The same machine before the toolkit came.
BARE = Containers(
    engines=[replace(DOCKER, runtimes=["io.containerd.runc.v2", "runc"]), PODMAN, APPTAINER],
    toolkit_path=ABSENT,
    toolkit_version=ABSENT,
    cli_path=ABSENT,
    cli_version=ABSENT,
    hook_path=ABSENT,
    oci_hooks=[],
    toolkit_config=ABSENT,
    toolkit_mode=ABSENT,
    toolkit_no_cgroups=ABSENT,
    cdi_specs=[],
)


def node(path: str, linked: bool) -> DeviceNode:
    return DeviceNode(
        path=path, mode="0666", owner="root", group="root", usable=True, char_link=linked
    )


LINKED = Kernel(device_nodes=[node("/dev/nvidia0", True), node("/dev/nvidiactl", True)])
UNLINKED = Kernel(device_nodes=[node("/dev/nvidia0", False), node("/dev/nvidiactl", False)])


def results(containers: Containers | None, **machine: Any) -> dict[str, CheckResult]:
    probes: dict[str, Any] = {"pci": WITH_GPU, "kernel": LINKED, **machine}
    if containers is not None:
        probes["containers"] = containers
    present = {name: probe for name, probe in probes.items() if probe is not None}
    return {r.code: r for r in diagnose(snapshot(**present), checks=CHECKS).results}


def judge(code: str, containers: Containers, **machine: Any) -> CheckResult:
    return results(containers, **machine)[code]


def outcomes(containers: Containers | None, **machine: Any) -> set[str]:
    return {result.outcome for result in results(containers, **machine).values()}


def test_a_machine_that_is_ready_has_no_finding() -> None:
    assert outcomes(READY) == {"pass"}
    assert outcomes(READY, kernel=UNLINKED) == {"pass"}  # CDI is the other way


@pytest.mark.parametrize("containers", [READY, BARE, Containers()])
def test_without_a_gpu_everything_is_skipped(containers: Containers) -> None:
    for pci in (Pci(devices=[]), Pci(devices=[replace(GPU, kind="audio")])):
        assert outcomes(containers, pci=pci) == {"skipped"}


def test_in_wsl_the_driver_tells_of_the_gpu() -> None:
    nvml = Nvml(gpu_count=1)
    assert judge("CTR-002", BARE, pci=Pci(devices=[]), nvml=nvml).outcome == "warn"


def test_not_knowing_of_a_gpu_is_no_finding() -> None:
    assert outcomes(BARE, pci=None) == {"skipped"}
    assert outcomes(None) == {"skipped"}


def test_an_error_in_a_log_is_explained() -> None:
    text = "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=11.0"
    logged = LoggedError(path="/var/log/syslog", text=text)
    assert "newer CUDA" in only(judge("CTR-016", replace(READY, errors=[logged]))).message


# CTR-001


def silent(reason: str, words: str) -> Containers:
    why = Unavailable(unavailable=reason, detail=words)  # type: ignore[arg-type]
    return replace(READY, engines=[replace(DOCKER, server_version=why, runtimes=ABSENT)])


def test_docker_that_does_not_answer() -> None:
    words = "Cannot connect to the Docker daemon."
    found = results(silent("error", words))
    finding = only(found["CTR-001"])
    assert words in finding.message
    assert "systemctl enable --now docker" in commands(finding)
    assert finding.evidence[0].fact == "machine.containers.engines[0].server_version"
    assert found["CTR-002"].outcome == "skipped"
    assert found["CTR-003"].outcome == "skipped"


@pytest.mark.parametrize(
    ("words", "says", "command"),
    [
        (
            "Cannot connect to the Docker daemon at tcp://10.0.0.5:2375. Is the docker daemon running?",
            "tcp://10.0.0.5:2375, by DOCKER_HOST",
            "unset DOCKER_HOST",
        ),
        (
            'no subuid ranges found for user "ann" in /etc/subuid\nError: cannot re-exec process',
            "Give the user some",
            "--add-subuids",
        ),
    ],
)
def test_an_engine_that_says_why_it_does_not_answer(words: str, says: str, command: str) -> None:
    finding = only(results(silent("error", words))["CTR-001"])
    assert finding.remedy is not None and says in finding.remedy.text
    assert command in commands(finding) and "enable --now docker" not in commands(finding)


def test_a_specification_of_another_driver_than_the_one_that_runs() -> None:
    """Both are on disk: nothing that it names is missing."""
    spec = replace(SPEC, driver_versions=["550.54.15"])
    containers = replace(READY, cdi_specs=[spec])
    runs = replace(LINKED, driver_version="535.183.01")
    answers = Nvml(init_code=0, gpu_count=1)
    finding = only(judge("CTR-004", containers, kernel=runs, nvml=answers))
    assert "550.54.15" in finding.message and "535.183.01" in finding.message
    assert f"--output={SPEC.path}" in commands(finding)
    for kernel, nvml in ((LINKED, answers), (runs, Nvml(init_code=18)), (runs, None)):
        assert judge("CTR-004", containers, kernel=kernel, nvml=nvml).outcome == "pass"
    same = replace(READY, cdi_specs=[replace(spec, driver_versions=["535.183.01"])])
    assert judge("CTR-004", same, kernel=runs, nvml=answers).outcome == "pass"


def test_a_specification_from_before_a_gpu_was_added() -> None:
    gpus = [Gpu(index=0, mig_enabled=False), Gpu(index=1, mig_enabled=ABSENT)]
    finding = only(judge("CTR-004", READY, nvml=Nvml(init_code=0, gpus=gpus)))
    assert (finding.cause.key, "GPU 1 is here too" in finding.message) == ("cdi-without-gpu", True)
    split = [gpus[0], Gpu(index=1, mig_enabled=True)]  # its instances are 1:0, 1:1 ...
    assert judge("CTR-004", READY, nvml=Nvml(init_code=0, gpus=split)).outcome == "pass"
    by_uuid = replace(READY, cdi_specs=[replace(SPEC, devices=["GPU-0", "all"])])
    assert judge("CTR-004", by_uuid, nvml=Nvml(init_code=0, gpus=gpus)).outcome == "pass"


# CTR-002


def test_docker_is_configured_for_a_runtime_that_is_gone() -> None:
    gone = replace(DOCKER, missing_runtimes=["/usr/bin/nvidia-container-runtime"])
    containers = replace(BARE, engines=[gone])
    finding = only(judge("CTR-002", containers, host=Host(os_id="debian")))
    assert "/usr/bin/nvidia-container-runtime, which is missing" in finding.message
    assert "apt install -y nvidia-container-toolkit" in commands(finding)


def test_the_toolkit_hands_out_cdi_devices_alone_and_has_none() -> None:
    by_cdi = replace(READY, engines=[DOCKER], toolkit_mode="cdi")
    assert judge("CTR-002", by_cdi).outcome == "pass"
    finding = only(judge("CTR-002", replace(by_cdi, cdi_specs=[])))
    assert finding.cause.key == "toolkit-mode-without-cdi"
    assert "nvidia-ctk cdi generate" in commands(finding) and "mode=auto" in commands(finding)


def test_a_note_says_how_podman_gives_gpus_under_selinux() -> None:
    podman = replace(PODMAN, selinux=True)
    assert "label=disable" in judge("CTR-002", replace(READY, engines=[podman])).note
    assert not judge("CTR-002", replace(READY, engines=[PODMAN])).note


# CTR-001


def test_an_engine_whose_storage_is_full() -> None:
    full = replace(DOCKER, storage_free_mib=3, storage_path="/var/lib/docker")
    finding = only(judge("CTR-001", replace(READY, engines=[full, PODMAN])))
    assert "/var/lib/docker, where 3 MiB are free" in finding.message


# CTR-003


def test_no_systemd_trap() -> None:
    containers = replace(READY, engines=[replace(DOCKER, cgroup_driver="cgroupfs")])
    assert judge("CTR-003", containers, kernel=UNLINKED).outcome == "pass"


# CTR-004


def test_device_nodes_that_are_gone() -> None:
    spec = replace(SPEC, missing_paths=["/dev/nvidia-uvm"])
    finding = only(judge("CTR-004", replace(READY, cdi_specs=[spec])))
    assert commands(finding).startswith("sudo nvidia-modprobe")


# CTR-005

ROOTLESS = replace(DOCKER, rootless=True)


@pytest.mark.parametrize(
    ("facts", "outcome"),
    [
        ({"toolkit_no_cgroups": True}, "warn"),
        # newer toolkits need it no longer
        ({"engines": [ROOTLESS], "toolkit_version": "1.17.8"}, "warn"),
        # not known
    ],
)
def test_no_cgroups(facts: dict[str, Any], outcome: str) -> None:
    assert judge("CTR-005", replace(READY, **facts)).outcome == outcome
    # on WSL the hook has a rule to write, too: /dev/dxg
    wsl = {"host": Host(wsl=True), "nvml": Nvml(init_code=0, gpu_count=1)}
    expected = "warn" if facts.get("toolkit_no_cgroups") is True else "skipped"
    assert judge("CTR-005", replace(READY, **facts), **wsl).outcome == expected


# CTR-002, CTR-011: a docker that cannot see what the system has


@pytest.mark.parametrize(
    ("version", "facts", "key"),
    [
        ("20.10.24", {}, "docker-snap-too-old"),
        ("27.2.0", {}, ""),
        ("29.2.1", {}, "docker-snap-beside-toolkit"),
        ("29.2.1", {"toolkit_path": ABSENT}, ""),
    ],
)
def test_docker_as_a_snap(version: str, facts: dict[str, Any], key: str) -> None:
    snap = replace(DOCKER, path="/snap/bin/docker", server_version=version)
    result = judge("CTR-002", replace(READY, engines=[snap], **facts))
    assert [one.cause.key for one in result.findings] == [key] * bool(key)


@pytest.mark.parametrize(
    ("version", "folders", "outcome"),
    [
        ("26.0.0", ["/etc/cdi", "/var/run/cdi"], "warn"),
        ("25.0.5", ["/etc/cdi", "/var/run/cdi"], "warn"),
        ("26.1.6", ["/etc/cdi", "/var/run/cdi"], "pass"),
        ("27.5.0", ["/etc/cdi", "/var/run/cdi"], "pass"),
    ],
)
def test_rootless_docker_and_the_systems_cdi(
    version: str, folders: list[str], outcome: str
) -> None:
    engine = replace(DOCKER, rootless=True, server_version=version, cdi_spec_dirs=folders)
    assert judge("CTR-011", replace(READY, engines=[engine])).outcome == outcome
    assert (
        judge("CTR-011", replace(READY, engines=[replace(engine, rootless=False)])).outcome
        == "pass"
    )


def test_a_rootless_docker_that_does_not_see_the_specification_is_the_one_problem() -> None:
    """It was to give GPUs by CDI; the setting that containers without CDI need is no second one."""
    engine = replace(ROOTLESS, server_version="26.0.0", cdi_spec_dirs=["/etc/cdi"])
    found = results(replace(READY, engines=[engine], toolkit_version="1.14.6"))
    assert found["CTR-011"].outcome == "warn"
    assert found["CTR-005"].consequence_of == "CTR-011"
    as_root = replace(engine, rootless=False, cdi_spec_dirs=["/opt/cdi"])
    found = results(replace(READY, engines=[as_root], toolkit_no_cgroups=True))
    assert found["CTR-011"].outcome == found["CTR-005"].outcome == "warn"


# CTR-006


def test_podman_versions() -> None:
    containers = replace(READY, engines=[replace(PODMAN, version="3.4.4")])
    result = judge("CTR-006", containers)
    assert result.outcome == "warn"
    assert "older than 4.1" in result.detail + result.reason + "".join(
        f.message for f in result.findings
    )
