"""`envcheck bundle --mode container`: an image from a registry, with envcheck itself, in one archive."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from demo_stack import MINOR, Demo, demo, sentence
from image_registry import Pushed, Registry, layer, serve_registry
from installing import Home
from podman import PodmanWorld
from wheel_maker import stand_ins, wheel

from envcheck.install.export import own_wheel
from envcheck.install.images.archive import ImageArchive

MACHINE = platform.machine()


@dataclass(frozen=True)
class Shop:
    """A registry with one image, and an index with what envcheck itself needs."""

    registry: Registry
    image: Pushed
    index: Demo

    @property
    def reference(self) -> str:
        return f"{self.registry.host}/team/small:1.0"

    def bundle(self, home: Home, output: Path) -> subprocess.CompletedProcess[bytes]:
        image = ["--mode", "container", "--image", self.reference]
        return home.envcheck("bundle", *image, "--index", self.index.index.url, "--output", output)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("shop")
    with serve_registry(folder / "registry") as registry, demo(folder / "demo") as index:
        for name, version in stand_ins(own_wheel.build().requires):
            wheel(index.files, name, version)
        index.index.refresh()
        layers = [layer({"etc/one": b"one"}), layer({"data": os.urandom(300_000)})]
        pushed = registry.push("team/small", "1.0", layers, config={"Cmd": ["/bin/true"]})
        yield Shop(registry, pushed, index)


@pytest.fixture(scope="module")
def bundle(shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundles")
    made = folder / "small image.tar"
    run = shop.bundle(Home(folder / "home"), made)
    assert run.returncode == 0, run.stderr.decode()
    told = run.stdout.decode()
    assert shop.reference in told and "tar -xf 'small image.tar' setup.sh envcheck" in told
    # The layers are in the archive, and nowhere else any more.
    left = (folder / "home/cache/envcheck/downloads").rglob("*")
    assert not {blob.partition(":")[2] for blob in layer_digests(shop)} & {p.name for p in left}
    assert sorted(p.name for p in folder.iterdir()) == ["home", "small image.tar"]
    return made


def layer_digests(shop: Shop) -> list[str]:
    return [one["digest"] for one in json.loads(shop.image.body)["layers"]]


def test_it_is_the_image_and_envcheck(shop: Shop, bundle: Path) -> None:
    read = ImageArchive(str(bundle), MACHINE)
    assert read.image.digest == read.image.manifest.digest == shop.image.digest
    assert read.image.reference == shop.reference
    with tarfile.open(bundle) as tar:
        names = set(tar.getnames())
        told = json.load(tar.extractfile("bundle.json"))  # type: ignore[arg-type]
        assert tar.getmember("setup.sh").mode & 0o111
    assert names == {*told["files"], "bundle.json"}
    assert (told["mode"], told["image"]) == ("container", shop.reference)
    assert told["digest"] == shop.image.digest and MINOR in told["pythons"]
    assert any(name.startswith("envcheck/envcheck_gpu-") for name in names)


def test_the_same_again_and_only_as_a_tar(shop: Shop, bundle: Path, tmp_path: Path) -> None:
    home, again = Home(tmp_path / "home"), tmp_path / "small image.tar"
    run = shop.bundle(home, again)
    assert run.returncode == 0, run.stderr.decode()
    assert again.read_bytes() == bundle.read_bytes()
    assert "name a file that ends in .tar" in shop.bundle(home, tmp_path / "x").stderr.decode()


def test_podman_has_the_registrys_image(
    shop: Shop, bundle: Path, fresh_podman: PodmanWorld
) -> None:
    fresh_podman.podman("pull", "--quiet", f"oci-archive:{bundle}")
    inspect = ["image", "inspect", "--format", "{{.Digest}}", shop.reference]
    assert fresh_podman.podman(*inspect).stdout.strip() == shop.image.digest


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["--image", "HOST/team/small:2.0"], 2, "no tag 2.0"),
        (["--image", "HOST/team/Small"], 2, "capital letters"),
        (
            ["--image", "HOST/team/small:1.0", "--stack", "tensorflow"],
            2,
            "--image names one image, and --stack another one",
        ),
        (["--image", "127.0.0.1:1/team/small"], 4, "127.0.0.1:1"),
    ],
)
def test_what_cannot_be(
    shop: Shop, tmp_path: Path, arguments: list[str], code: int, word: str
) -> None:
    words = [one.replace("HOST", shop.registry.host) for one in arguments]
    output = tmp_path / "made.tar"
    run = Home(tmp_path / "home").envcheck(
        "bundle", "--mode", "container", *words, "--index", shop.index.index.url, "--output", output
    )
    assert word in sentence(run, code)
    assert [p.name for p in tmp_path.iterdir()] in ([], ["home"])


def last_layer_damaged(archive: Path) -> bytes:
    """One bit of the layer that is this image's alone: one that the engine has already is not read."""
    with tarfile.open(archive) as tar:

        def read(name: str) -> Any:
            member = tar.extractfile(name)
            assert member is not None
            return json.loads(member.read())

        def blob(entry: Any) -> str:
            return "blobs/" + entry["digest"].replace(":", "/")

        layer = blob(read(blob(read("index.json")["manifests"][0]))["layers"][-1])
        member = tar.getmember(layer)
    data = bytearray(archive.read_bytes())
    data[member.offset_data + member.size // 2] ^= 1
    return bytes(data)


def test_what_podman_saved_is_installed_elsewhere(
    podman_world: PodmanWorld, fresh_podman: PodmanWorld, tmp_path: Path
) -> None:
    """Its id in the other storage is the one that it had; of a damaged one, nothing gets there."""
    name = podman_world.image("tensorflow")
    whole = podman_world.save(name, tmp_path / "whole.tar")
    (tmp_path / "broken.tar").write_bytes(last_layer_damaged(whole))
    before = fresh_podman.images()
    home = Home(tmp_path / "home")
    options = ["--mode", "container", "--engine", "podman", "--allow-no-gpu", "--yes"]

    def install(archive: Path) -> subprocess.CompletedProcess[bytes]:
        return home.envcheck("install", *options, "--offline", archive, **fresh_podman.variables)

    broken = install(tmp_path / "broken.tar")
    assert broken.returncode in (2, 5), broken.stderr.decode()
    assert b"igest" in broken.stderr and b"Traceback" not in broken.stderr
    assert fresh_podman.images() == before
    done = install(whole)
    assert done.returncode == 0, done.stderr.decode()
    assert fresh_podman.images() - before == {podman_world.id_of(name)}
