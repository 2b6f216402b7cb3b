"""The way into a container: which engine, and with what command."""

from __future__ import annotations

from typing import Any

import pytest
from build import snapshot
from msgspec.structs import replace
from targets import ABSENT, bare_machine, gpu, machine

from envcheck.exit_codes import CouldNotLook, UsageError
from envcheck.facts.base import Unavailable
from envcheck.facts.containers import Containers, Engine
from envcheck.facts.snapshot import Snapshot
from envcheck.install.engines import engine_storage, inside

REF = "registry.test/tf:1"
PODMAN = Engine(
    name="podman", path="/usr/bin/podman", version="4.3.1", server_version="4.3.1", remote=False
)
DOCKER = replace(PODMAN, name="docker", path="/usr/bin/docker")
SILENT = replace(
    DOCKER, server_version=Unavailable(unavailable="error", detail="Cannot connect to the daemon")
)


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
