"""Images come into an engine's storage and leave it again: real podman, real docker, a loopback registry."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from engine_images import ACCESS, held, served
from msgspec.structs import replace
from podman import EITHER

from envcheck.exit_codes import NotPutBack, PutBack
from envcheck.install.engine import EngineImage, EngineName
from envcheck.install.engines import engine_storage
from envcheck.install.registry.image import Image


@dataclass
class Engine:
    """One of the two, and how its storage is asked without envcheck."""

    name: EngineName
    program: str
    run: Callable[..., object]
    images: Callable[[], set[str]]

    def held(self, image: Image, **changes: object) -> EngineImage:
        return held(self.name, self.program, image, **changes)


@pytest.fixture(params=EITHER)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    fixture = {"podman": "podman_world", "docker": "docker_daemon"}[request.param]
    world = request.getfixturevalue(fixture)
    for name, value in world.variables.items():
        monkeypatch.setenv(name, value)
    program = shutil.which(request.param, path=world.variables.get("PATH"))
    assert program
    before = world.images()
    yield Engine(request.param, program, getattr(world, request.param), world.images)
    assert world.images() == before, "a test leaves an image behind"


@pytest.fixture
def at_registry(tmp_path: Path) -> Iterator[Image]:
    with served(tmp_path / "registry") as image:
        yield image


def test_an_image_is_pulled_named_and_let_go(
    engine: Engine, at_registry: Image, tmp_path: Path
) -> None:
    image = at_registry
    wanted = engine.held(image)
    assert not engine_storage.has(wanted)
    ticks: list[int] = []
    got = engine_storage.pull(
        wanted, image, ACCESS, tmp_path / "tmp", lambda lines: ticks.append(1)
    )
    assert got.image_id == image.config.digest and engine_storage.has(got) and ticks
    assert not list((tmp_path / "tmp").iterdir()), "the engine's folder stays behind"
    stored = engine_storage.find(got.program, got.tag)
    assert stored is not None and stored.tags == [got.tag]
    engine_storage.release(got)
    assert not engine_storage.has(got)
    engine_storage.release(got)  # whoever was killed here comes again


def test_an_image_that_was_there_before_stays(
    engine: Engine, at_registry: Image, tmp_path: Path
) -> None:
    image = at_registry
    got = engine_storage.pull(engine.held(image), image, ACCESS, tmp_path)
    engine.run("tag", got.image_id, "localhost/the-users:own")
    engine_storage.release(replace(got, before=True))
    stored = engine_storage.find(got.program, got.image_id)
    assert stored is not None and stored.tags == ["localhost/the-users:own"]
    engine.run("rmi", "--force", got.image_id)


def test_an_image_that_a_container_uses_is_left_with_the_command(
    engine: Engine, at_registry: Image, tmp_path: Path
) -> None:
    image = at_registry
    got = engine_storage.pull(engine.held(image), image, ACCESS, tmp_path)
    engine.run("create", "--network=none", "--name=uses-it", got.image_id, "/hello")
    with pytest.raises(NotPutBack, match=r"image|container") as caught:
        engine_storage.release(got)
    assert f"{engine.name} rm " in caught.value.hint and "rmi" in caught.value.hint
    engine.run("rm", "uses-it")
    engine_storage.release(got)
    assert not engine_storage.has(got)


def test_another_image_than_the_locks_is_taken_back(
    engine: Engine, at_registry: Image, tmp_path: Path
) -> None:
    image = at_registry
    wrong = replace(image, config=replace(image.config, digest="sha256:" + "0" * 64))
    wrong = replace(wrong, manifest=image.manifest)
    with pytest.raises(PutBack, match=f"{image.config.digest}.*{wrong.config.digest}"):
        engine_storage.pull(engine.held(wrong), wrong, ACCESS, tmp_path)
    assert not engine_storage.has(engine.held(image))
