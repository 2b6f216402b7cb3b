"""Which engine is taken, how GPUs get into it, how it starts an image, and the way into a container."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from build import snapshot
from msgspec.structs import replace
from targets import bare_machine, gpu, machine
from test_container_checks import DOCKER, GPU, LINKED, NO_DAEMON, PODMAN, READY, SPEC, UNLINKED
from whole import ABSENT

from envcheck.exit_codes import Cannot, CouldNotLook, UsageError
from envcheck.facts.base import Unavailable
from envcheck.facts.containers import Containers, Engine
from envcheck.facts.gpu import Gpu, Nvml
from envcheck.facts.host import Host
from envcheck.facts.pci import Pci
from envcheck.facts.snapshot import Snapshot
from envcheck.install.engine import Start
from envcheck.install.engines import engine_storage, inside, skopeo, starting, wiring
from envcheck.install.engines.choose import EngineChoice, choose

TWO = Nvml(gpus=[Gpu(pci_address=f"0000:0{n}:00.0") for n in (1, 2)], gpu_count=2)
HOST = Host(
    os_id="debian", memory_total_mib=64000, wsl=False, selinux=ABSENT, memlock_hard_kib=8192
)


def taken(containers: Containers, name: str = "", needed: int = 0, **machine: Any) -> EngineChoice:
    probes: dict[str, Any] = {
        "pci": Pci(devices=[GPU]),
        "kernel": LINKED,
        "nvml": TWO,
        "host": HOST,
        "containers": containers,
        **machine,
    }
    return choose(name, snapshot(**{k: v for k, v in probes.items() if v is not None}), needed)


def refused(containers: Containers, name: str = "", needed: int = 0, **machine: Any) -> Cannot:
    with pytest.raises(Cannot) as caught:
        taken(containers, name, needed, **machine)
    assert "\n" not in str(caught.value)
    return caught.value


def only(*engines: Engine, **changes: Any) -> Containers:
    return replace(READY, engines=list(engines), **changes)


def test_podman_comes_first_and_gets_its_gpus_by_cdi() -> None:
    choice = taken(READY)
    assert (choice.name, choice.program, choice.gpus) == ("podman", "/usr/bin/podman", 2)
    assert choice.wiring.arguments == ["--device", "nvidia.com/gpu=all"]
    assert choice.wiring.sentence == "by CDI (/var/run/cdi/nvidia.yaml)"
    assert not choice.remarks


def test_an_engine_without_a_way_to_the_gpus_stands_back() -> None:
    choice = taken(replace(READY, cdi_specs=[], engines=[PODMAN, DOCKER]))
    assert (choice.name, choice.wiring.kind) == ("docker", "runtime")
    (remark,) = choice.remarks
    assert remark.startswith("podman is skipped: There is no CDI specification")


def test_the_one_that_is_named_is_taken_or_refused_with_its_commands() -> None:
    assert taken(READY, "docker").name == "docker"
    no = refused(replace(READY, cdi_specs=[]), "podman")
    assert "There is no CDI specification of the GPUs" in str(no)
    assert "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml" in no.hint
    assert taken(replace(READY, cdi_specs=[]), "docker").wiring.kind == "runtime"


@pytest.mark.parametrize("with_gpu", [True, False])
def test_an_engine_that_does_not_answer(with_gpu: bool) -> None:
    silent = replace(DOCKER, server_version=NO_DAEMON, rootless=ABSENT, remote=ABSENT)
    changes: dict[str, Any] = {} if with_gpu else {"pci": Pci(devices=[]), "nvml": Nvml(gpus=[])}
    no = refused(only(silent), **changes)
    assert str(no).startswith("docker is installed and does not answer (Cannot connect to")
    assert "sudo systemctl enable --now docker" in no.hint
    choice = taken(only(silent, PODMAN), **changes)
    assert choice.name == "podman" and not choice.remarks  # docker was not asked any more


def test_storage_without_room_names_path_and_both_sizes() -> None:
    full = replace(PODMAN, storage_path="/var/lib/containers/storage", storage_free_mib=2048)
    no = refused(only(full), needed=20480)
    assert "/var/lib/containers/storage has 2.0 GiB free, and the image needs 20.0 GiB" in str(no)
    assert taken(only(full, DOCKER), needed=20480).name == "docker"
    assert taken(only(full), needed=2048).name == "podman"


def test_a_specification_that_podman_does_not_read_is_said_before_the_start() -> None:
    newer = replace(SPEC, version="0.7.0")
    no = refused(only(PODMAN, cdi_specs=[newer]))
    assert "CDI version 0.7.0" in str(no) and "podman 4.3.1 reads none from 0.6.0 on" in str(no)
    assert "nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml" in no.hint
    new = replace(PODMAN, version="5.7.0", server_version="5.7.0")
    assert taken(only(new, cdi_specs=[newer])).wiring.kind == "cdi"


@pytest.mark.parametrize(
    ("changes", "specs", "kind"),
    [
        ({}, [SPEC], "cdi"),
        ({"server_version": "28.2.0", "cdi_enabled": ABSENT}, [SPEC], "cdi"),
        ({"server_version": "27.0.1", "cdi_enabled": False}, [SPEC], "runtime"),
        ({"server_version": "27.0.1", "cdi_enabled": False, "runtimes": ["runc"]}, [SPEC], "gpus"),
        ({"server_version": "29.2.0", "runtimes": ["runc"]}, [], None),
    ],
)
def test_dockers_ways(changes: dict[str, Any], specs: list[Any], kind: str | None) -> None:
    found = wiring.find(replace(DOCKER, **changes), replace(READY, cdi_specs=specs))
    assert (found.kind if found else None) == kind


def test_the_cgroup_trap_is_told_with_its_repair() -> None:
    choice = taken(only(DOCKER, cdi_specs=[]), kernel=UNLINKED)
    (remark,) = choice.remarks
    assert "lose their GPUs at the next `systemctl daemon-reload`" in remark and "; " in remark
    assert not taken(only(DOCKER), kernel=UNLINKED).remarks  # by CDI there is no trap


def test_a_server_elsewhere_has_not_this_machines_gpus() -> None:
    no = refused(only(replace(DOCKER, remote=True)))
    assert "do not get this machine's GPUs" in str(no) and "docker context use default" in no.hint
    assert taken(only(replace(PODMAN, remote=True), DOCKER)).name == "docker"


# How the image is started


def begun(choice: EngineChoice, entrypoint: Sequence[str] = (), **host: Any) -> Start:
    probes = {"host": replace(HOST, **host)}
    reference = "nvcr.io/nvidia/tensorflow:23.03-tf1-py3"
    return starting.start(
        choice, "sha256:1f", reference, entrypoint, snapshot(**probes), {"A": "1"}
    )


def test_where_all_may_be_set_there_is_nothing_to_remark() -> None:
    whole = replace(
        PODMAN, rootless=False, raises_limits=True, init_path="/usr/libexec/podman/catatonit"
    )
    start = begun(taken(only(whole)))
    assert start.remarks == []
    assert start.ulimits == {"memlock": "-1", "stack": "67108864"}
    assert (start.shm_mib, start.init, start.gpus) == (32000, True, 2)
    assert (start.image, start.environment) == ("sha256:1f", {"A": "1"})
    assert not (start.keep_id or start.root_is_caller or start.unlabelled)


@pytest.mark.parametrize(
    "program", ["python3", "/usr/bin/python3.11", "tritonserver", "jupyter-lab"]
)
def test_an_entrypoint_that_takes_a_command_for_its_own_is_left_out(program: str) -> None:
    start = begun(taken(only(PODMAN)), [program])
    assert start.entrypoint == "" and "would take a command" in start.remarks[0]


def test_rdma_devices_are_those_of_the_moment_of_the_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rdma = tmp_path / "infiniband"
    monkeypatch.setattr(starting, "_RDMA", str(rdma))
    start = begun(taken(only(PODMAN)))
    assert starting.with_devices(start).devices == []
    rdma.mkdir()
    assert start.devices == [] and starting.with_devices(start).devices == [str(rdma)]
    assert f"--device {rdma}" in " ".join(inside.of_start(start).argv)


def test_shared_memory_is_half_of_what_there_is() -> None:
    choice = taken(only(PODMAN))
    assert begun(choice, cgroup_memory_limit_mib=16000).shm_mib == 8000
    assert begun(choice, memory_total_mib=1500).shm_mib == 1024
    assert begun(choice, memory_total_mib=512).shm_mib == 512
    unknown = begun(choice, memory_total_mib=Unavailable(unavailable="error"))
    assert unknown.shm_mib == 1024


def test_without_skopeo_its_installation_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(Cannot, match="skopeo") as caught:
        skopeo.program(snapshot(host=HOST))
    assert caught.value.hint == "sudo apt install skopeo"


REF = "registry.test/tf:1"
SILENT = replace(DOCKER, server_version=NO_DAEMON)


@pytest.fixture(autouse=True)
def stored(monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, str]]:
    """(engine, image) that are there."""
    held: set[tuple[str, str]] = {("podman", REF)}

    def find(program: str, name: str) -> engine_storage.Stored | None:
        engine = program.rpartition("/")[2]
        return engine_storage.Stored(id="sha256:1") if (engine, name) in held else None

    monkeypatch.setattr(engine_storage, "find", find)
    return held


def here(*engines: Engine, gpus: bool = False) -> Snapshot:
    probes: dict[str, Any] = machine(gpu()) if gpus else bare_machine()
    facts = Containers(engines=list(engines), cdi_specs=[], oci_hooks=[], hook_path=ABSENT)
    return snapshot(containers=facts, **probes)


def test_a_fresh_container_with_standard_input_without_network_and_a_name_to_remove_it_by() -> None:
    result = inside.of_image(REF, here(PODMAN))
    assert result.location == f"image:{REF}"
    assert result.argv[0] == "/usr/bin/podman" and result.argv[-1] == REF, (
        "the collector appends its shell"
    )
    assert {"run", "--rm", "--pull=never", "--interactive", "--network=none"} <= set(result.argv)
    (name,) = (word.partition("=")[2] for word in result.argv if word.startswith("--name="))
    assert result.ending == ["/usr/bin/podman", "rm", "--force", "--time", "0", name]
    assert name != inside.of_image(REF, here(PODMAN)).ending[-1]


def test_the_engine_that_has_the_image_is_taken(stored: set[tuple[str, str]]) -> None:
    stored.clear()
    stored.add(("docker", REF))
    assert inside.of_image(REF, here(PODMAN, DOCKER)).argv[0] == "/usr/bin/docker"
    with pytest.raises(UsageError, match="no such image in podman") as caught:
        inside.of_image(REF, here(PODMAN, DOCKER), "podman")
    assert caught.value.hint == f"podman pull {REF}"


def test_what_nobody_has_is_not_pulled_and_its_command_is_safe_to_paste() -> None:
    with pytest.raises(UsageError, match="no such image in podman or docker") as caught:
        inside.of_image("x;reboot", here(PODMAN, DOCKER))
    assert caught.value.hint == "podman pull 'x;reboot'; or: docker pull 'x;reboot'"


@pytest.mark.parametrize(
    ("engines", "asked", "words"),
    [
        ([], "", "no container engine"),
        ([], "docker", "docker is not installed"),
        ([SILENT], "", "docker"),
    ],
)
def test_without_an_engine_that_works_nothing_can_be_looked_at(
    engines: list[Engine], asked: str, words: str
) -> None:
    with pytest.raises(CouldNotLook, match=words) as caught:
        inside.of_image(REF, here(*engines), asked)
    assert caught.value.hint


@pytest.mark.parametrize("name", ["", "--privileged"])
def test_a_name_that_is_none(name: str) -> None:
    with pytest.raises(UsageError, match="not an image's name"):
        inside.of_image(name, here(PODMAN))
    with pytest.raises(UsageError, match="not a container's name"):
        inside.of_container(name)
