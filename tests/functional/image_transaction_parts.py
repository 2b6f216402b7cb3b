"""A container transaction without an engine: a directory stands for the engine's storage."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transaction_parts import Judge

from envcheck.exit_codes import CouldNotLook
from envcheck.install import durable
from envcheck.install.engine import EngineImage, Start, Wiring
from envcheck.install.engines import engine_storage
from envcheck.install.plan.models import Plan
from envcheck.install.request import Request
from envcheck.install.transaction import engine_images, layout
from envcheck.install.transaction.execute import execute
from envcheck.install.transaction.interfaces import Artifact, Stage
from envcheck.install.transaction.layout import Root, Version
from envcheck.install.transaction.record import Built, Installed

SIZE = 5_000_000  # bytes that the stand-in says of every image


def fake_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    """The engine that a transaction asks; for a fixture."""
    made = FakeEngine(tmp_path / "engine")
    for name in ("has", "release"):
        monkeypatch.setattr(engine_storage, name, getattr(made, name))
    return made


class FakeEngine:
    """Images by id, each a file with its names: the store and its program. It stands in for podman."""

    def __init__(self, storage: Path) -> None:
        self.storage = storage
        self.answers = True
        storage.mkdir(exist_ok=True)

    def pull(self, held: EngineImage, at: Callable[[str], None]) -> None:
        at("layer")
        self._write(held.image_id, {*self.names(held.image_id), held.reference})
        at("pulled")
        self._write(held.image_id, {*self.names(held.image_id), held.tag})

    def add(self, release: str, name: str) -> None:
        """The user has the image already, by a name of theirs."""
        self._write(image_id(release), {name})

    def has(self, held: EngineImage) -> bool:
        if not self.answers:
            raise CouldNotLook("podman does not answer")
        return held.tag in self.names(held.image_id)

    def release(self, held: EngineImage) -> bool:
        if not self.answers:
            raise CouldNotLook("podman does not answer")
        if not self._file(held.image_id).exists():
            return False
        names = self.names(held.image_id) - {held.tag}
        if held.before or names - {held.reference}:
            self._write(held.image_id, names)
            return False
        self._file(held.image_id).unlink()
        return True

    def names(self, image: str) -> set[str]:
        try:
            return set(json.loads(self._file(image).read_text()))
        except FileNotFoundError:
            return set()

    def images(self) -> dict[str, set[str]]:
        """Every image's names but the one that a pull gives, by the release that it is of: whole ones."""
        files = [path for path in self.storage.iterdir() if not path.name.startswith(".")]
        found = {path.name: set(json.loads(path.read_text())) for path in files}
        pulled = {reference(name) for name in found}
        return {name: names - pulled for name, names in found.items()}

    def _file(self, image: str) -> Path:
        return self.storage / image.removeprefix("sha256:").lstrip("0")

    def _write(self, image: str, names: set[str]) -> None:
        durable.write(self._file(image), json.dumps(sorted(names)).encode())


def digest(release: str) -> str:
    return release.rjust(64, "0")


def image_id(release: str) -> str:
    return f"sha256:{digest(release)}"


def reference(release: str) -> str:
    return f"x.test/tiny@sha256:{digest(release)}"


def tiny_image(release: str) -> Artifact:
    text = json.dumps({"digest": f"sha256:{digest(release)}"})
    return Artifact(file_name="image.json", text=text, digest=digest(release))


class ImageBuilder:
    """``at`` is called in the middle of each step, with its name."""

    def __init__(
        self, release: str, engine: FakeEngine, at: Callable[[str], None] = lambda step: None
    ) -> None:
        self._release = release
        self._engine = engine
        self._at = at
        self.done: list[str] = []

    def stages(self) -> list[Stage]:
        return [("held", self._hold), ("pulled", self._pull), ("configured", self._configure)]

    def result(self) -> Built:
        return Built(
            engine="podman",
            image=f"x.test/tiny:{self._release}",
            image_digest=f"sha256:{digest(self._release)}",
            image_bytes=SIZE,
            wiring="by CDI",
            notes=["memlock cannot be set here"],
        )

    def _hold(self, version: Version) -> None:
        self._pass("hold")
        names = self._engine.names(image_id(self._release))
        before = bool(names) and not any(name.startswith(engine_images.PREFIX) for name in names)
        engine_images.hold(version, held(version, self._release, before))
        self._pass("was held")

    def _pull(self, version: Version) -> None:
        written = engine_images.of(version)
        assert written is not None
        self._engine.pull(written, self._pass)

    def _configure(self, version: Version) -> None:
        self._pass("configure")
        start = Start(
            engine="podman",
            program="/usr/bin/podman",
            image=image_id(self._release),
            reference=f"x.test/tiny:{self._release}",
            wiring=Wiring(kind="cdi", arguments=["--device", "nvidia.com/gpu=all"]),
            gpus=1,
        )
        durable.write(version.start, json.dumps({"image": start.image}).encode())

    def _pass(self, step: str) -> None:
        self.done.append(step)
        self._at(step)


def held(version: Version, release: str, before: bool = False) -> EngineImage:
    return EngineImage(
        engine="podman",
        program="/usr/bin/podman",
        image_id=image_id(release),
        tag=f"localhost/envcheck/tiny:{version.id}",
        reference=reference(release),
        before=before,
    )


class ImageJudge(Judge):
    """A verifier that finds the image where it should be, and has nothing against it."""

    def look(self, directory: Path) -> None:
        assert engine_images.trouble(Version(directory)) == ""


def planned(root: Path, release: str) -> Plan:
    return Plan(
        stack="tiny",
        release=release,
        title="Tiny",
        reasons=[],
        notes=[],
        directory=str(root),
        version=layout.version_id(release, "tf1", digest(release)),
        steps=[],
        disk_needs=[],
        download_bytes=0,
        in_store_bytes=0,
    )


def image_request(root: Path, release: str = "") -> Request:
    return Request(mode="container", release=release, path=str(root))


def install_image(
    root: Path, release: str, engine: FakeEngine | None = None, **options: Any
) -> Installed:
    """One installation; builder, verifier and request may be given."""
    builder = options.pop("builder", None)
    if builder is None:
        assert engine is not None
        builder = ImageBuilder(release, engine)
    verify = options.pop("verify", None) or ImageJudge()
    asked = options.pop("request", None) or image_request(root, release)
    plan, image = planned(root, release), tiny_image(release)
    return execute(plan, image, asked, builder, verify, **options)


def image_in_use(root: Path, engine: FakeEngine) -> str:
    """The release that would be started: its image is in the engine."""
    version = Root(root).version(Root(root).current_id() or "nothing")
    assert engine_images.trouble(version) == "" and version.start.is_file()
    return json.loads(version.start.read_text())["image"].removeprefix("sha256:").lstrip("0")


def nothing_is_held_that_nobody_tells_of(root: Path, engine: FakeEngine) -> None:
    """What the engine has by envcheck's names is in some version's ``held.json``."""
    found = {one.tag for version in Root(root).versions() if (one := engine_images.of(version))}
    there = {name for names in engine.images().values() for name in names}
    assert {name for name in there if name.startswith("localhost/envcheck/")} <= found


def holds_exactly(root: Path, engine: FakeEngine, releases: set[str]) -> None:
    """The engine has these releases' images, each by the tags of the versions that there are."""
    tags = {
        f"localhost/envcheck/tiny:{version.id}": version.id for version in Root(root).versions()
    }
    assert set(engine.images()) == releases
    assert {name for names in engine.images().values() for name in names} == set(tags)
