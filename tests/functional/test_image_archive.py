"""Archives of images: what envcheck writes is read by the engines, and what they write by envcheck."""

from __future__ import annotations

import io
import platform
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import base_files
import pytest
from docker_daemon import DockerDaemon
from podman import PodmanWorld
from unpacking import unpack

from envcheck.exit_codes import Cannot, UsageError
from envcheck.install.bundle import writing
from envcheck.install.bundle.index import BundleFile, BundleIndex
from envcheck.install.images import layout_writer
from envcheck.install.images.archive import ImageArchive
from envcheck.install.registry.image import Blob, Image

MACHINE = platform.machine()
IMPORTS = "import tensorflow; print(tensorflow.__name__)"
NAME = "nvcr.io/nvidia/tensorflow:23.03-tf1-py3"


def gzipped(world: PodmanWorld, to: Path) -> Path:
    """The stand-in for NVIDIA's image as a registry has it, layers compressed, under NVIDIA's name."""
    if not to.exists():
        world.podman("tag", world.image("tensorflow"), NAME)
        layout = to.with_suffix(".layout")
        world.podman("push", "--quiet", "--compress", NAME, f"oci:{layout}:{NAME}")
        with tarfile.open(to, "w") as tar:
            for path in sorted(layout.rglob("*")):
                tar.add(path, path.relative_to(layout), recursive=False)
        shutil.rmtree(layout)
    return to


@pytest.fixture(scope="module")
def saved(podman_world: PodmanWorld, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return gzipped(podman_world, tmp_path_factory.mktemp("saved") / "saved.tar")


def small(world: PodmanWorld | DockerDaemon, name: str) -> str:
    """An image of a few bytes in that storage: its name."""
    name, path = f"localhost/envcheck-test/{name}:1", world.folder / "small.tar"
    with tarfile.open(path, "w") as tar:
        base_files.add(tar, name.replace("/", "-"), b"hello")
    world.import_tar(path, name, ['ENTRYPOINT ["/small"]'])
    return name


def stored(place: Path, folder: Path) -> Callable[[Blob], Path]:
    """An archive's layers as files, as a registry's lie in the store."""
    unpack(place, folder)
    return lambda blob: folder / layout_writer.name_of(blob.digest)


def write(target: Path, image: Image, where: Callable[[Blob], Path]) -> None:
    contents = layout_writer.contents(image, where)
    index = BundleIndex(
        envcheck="0",
        mode="container",
        stack="image",
        release="1",
        architecture=MACHINE,
        created_at="",
        pythons=[],
        files={name: BundleFile(one.sha256, one.size) for name, one in contents.items()},
    )
    writing.write(target, index, contents)


@pytest.fixture(scope="module")
def written(saved: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Image]:
    """What envcheck writes of it."""
    folder = tmp_path_factory.mktemp("written")
    read = ImageArchive(str(saved), MACHINE)
    write(folder / "image.tar", read.image, stored(saved, folder / "store"))
    return folder / "image.tar", read.image


def test_podman_takes_it(written: tuple[Path, Image], fresh_podman: PodmanWorld) -> None:
    path, image = written
    fresh_podman.podman("pull", "--quiet", f"oci-archive:{path}")
    assert fresh_podman.id_of(NAME) == image.config.sha256
    digests = fresh_podman.podman("image", "inspect", "--format", "{{.Digest}}", NAME).stdout
    assert digests.strip() == image.manifest.digest
    fresh_podman.podman("rmi", NAME)
    fresh_podman.podman("load", "--quiet", "--input", path)
    run = fresh_podman.podman("run", "--rm", NAME, "python3", "-c", IMPORTS)
    assert run.stdout == "tensorflow\n"


def test_docker_takes_it(written: tuple[Path, Image], docker_daemon: DockerDaemon) -> None:
    path, image = written
    docker_daemon.docker("load", "--quiet", "--input", path)
    assert docker_daemon.id_of(NAME) == image.config.sha256
    run = docker_daemon.docker("run", "--rm", NAME, "python3", "-c", IMPORTS)
    assert run.stdout == "tensorflow\n"
    docker_daemon.docker("rmi", NAME)


def test_what_podman_saves(podman_world: PodmanWorld, tmp_path: Path) -> None:
    name = small(podman_world, "small")
    path = podman_world.save(name, tmp_path / "My Image.tar")
    read = ImageArchive(str(path), MACHINE)
    assert read.image.config.sha256 == podman_world.id_of(name)
    assert read.image.entrypoint == ["/small"]
    assert read.image.reference in (name, "localhost/my-image:latest")


Change = Callable[[dict[str, bytes]], None]


def changed(path: Path, to: Path, change: Change) -> Path:
    """A copy with other contents."""
    with tarfile.open(path) as tar:
        files = {m.name: tar.extractfile(m).read() for m in tar if m.isfile()}  # type: ignore[union-attr]
    change(files)
    with tarfile.open(to, "w") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return to


def blob(image: Image, which: str) -> str:
    digest = image.layers[-1].digest if which == "layer" else getattr(image, which).digest
    return f"blobs/{digest.replace(':', '/')}"


@pytest.mark.parametrize("which", ["manifest", "config"])
def test_a_changed_byte_is_found(written: tuple[Path, Image], tmp_path: Path, which: str) -> None:
    path, image = written
    name = blob(image, which)

    def flip(files: dict[str, bytes]) -> None:
        data = bytearray(files[name])
        data[len(data) // 2] ^= 1
        files[name] = bytes(data)

    broken = changed(path, tmp_path / "broken.tar", flip)
    with pytest.raises(UsageError, match="is damaged: it should be sha256:") as told:
        ImageArchive(str(broken), MACHINE)
    assert str(broken) in str(told.value) and name in str(told.value)


def test_a_changed_layer_is_refused_by_the_engine(
    written: tuple[Path, Image], fresh_podman: PodmanWorld, tmp_path: Path
) -> None:
    """For a layer's bytes the engine stands: every engine compares them with their digest."""
    path, image = written
    name = blob(image, "layer")

    def flip(files: dict[str, bytes]) -> None:
        data = bytearray(files[name])
        data[len(data) // 2] ^= 1
        files[name] = bytes(data)

    broken = changed(path, tmp_path / "broken.tar", flip)
    before = fresh_podman.images()
    done = fresh_podman.podman("load", "--input", broken, code=None)
    assert done.returncode != 0 and fresh_podman.images() == before


def test_a_full_disk_leaves_nothing(saved: Path, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    read = ImageArchive(str(saved), MACHINE)
    size = read.image.download_bytes
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size // 2}", "none", str(small)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        path = stored(saved, tmp_path / "store")
        with pytest.raises(Cannot, match="MiB more needed"):
            write(small / "image.tar", read.image, path)
        with (
            pytest.raises(Cannot, match=r"^--output /.*: No space left"),
            pytest.MonkeyPatch.context() as m,
        ):
            m.setattr("envcheck.install.bundle.writing.check_room", lambda *_: None)
            write(small / "image.tar", read.image, path)
        assert not list(small.iterdir())
    finally:
        subprocess.run(["umount", small], check=True)
