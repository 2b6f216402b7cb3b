"""What podman saves is read by envcheck and installed elsewhere; damage is found before or by the engine."""

from __future__ import annotations

import json
import platform
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import base_files
import pytest
from installing import Home
from podman import PodmanWorld

from envcheck.exit_codes import UsageError
from envcheck.install.images.archive import ImageArchive

MACHINE = platform.machine()


def blobs(archive: Path) -> dict[str, tarfile.TarInfo]:
    """The archive's manifest, config and last layer: the one that no other image has."""
    with tarfile.open(archive) as tar:

        def read(name: str) -> Any:
            member = tar.extractfile(name)
            assert member is not None
            return json.loads(member.read())

        def blob(entry: Any) -> str:
            return "blobs/" + entry["digest"].replace(":", "/")

        (listed,) = read("index.json")["manifests"]
        manifest = read(blob(listed))
        names = (blob(listed), blob(manifest["config"]), blob(manifest["layers"][-1]))
        return dict(zip(("manifest", "config", "layer"), map(tar.getmember, names), strict=True))


def damaged(archive: Path, which: str, to: Path) -> Path:
    """A copy with one bit changed."""
    member = blobs(archive)[which]
    data = bytearray(archive.read_bytes())
    data[member.offset_data + member.size // 2] ^= 1
    to.write_bytes(data)
    return to


def test_what_podman_saves_is_read(podman_world: PodmanWorld, tmp_path: Path) -> None:
    name = "localhost/envcheck-test/small:1"
    with tarfile.open(tmp_path / "small.tar", "w") as tar:
        base_files.add(tar, "small", b"hello")
    podman_world.import_tar(tmp_path / "small.tar", name, ['ENTRYPOINT ["/small"]'])
    path = podman_world.save(name, tmp_path / "My Image.tar")
    image = ImageArchive(str(path), MACHINE).image
    assert image.config.sha256 == podman_world.id_of(name)
    assert image.entrypoint == ["/small"]
    assert image.reference in (name, "localhost/my-image:latest")
    for which in ("manifest", "config"):
        broken = damaged(path, which, tmp_path / "broken.tar")
        with pytest.raises(UsageError, match="is damaged: it should be sha256:"):
            ImageArchive(str(broken), MACHINE)


def test_it_is_installed_elsewhere(
    podman_world: PodmanWorld, fresh_podman: PodmanWorld, tmp_path: Path
) -> None:
    """Its id in the other storage is the one that it had; of a damaged one, nothing gets there."""
    name = podman_world.image("tensorflow")
    whole = podman_world.save(name, tmp_path / "whole.tar")
    before = fresh_podman.images()
    home = Home(tmp_path / "home")
    options = ["--mode", "container", "--engine", "podman", "--allow-no-gpu", "--yes"]

    def install(archive: Path) -> subprocess.CompletedProcess[bytes]:
        return home.envcheck("install", *options, "--offline", archive, **fresh_podman.variables)

    broken = install(damaged(whole, "layer", tmp_path / "broken.tar"))
    assert broken.returncode in (2, 5), broken.stderr.decode()
    assert b"igest" in broken.stderr and b"Traceback" not in broken.stderr
    assert fresh_podman.images() == before
    done = install(whole)
    assert done.returncode == 0, done.stderr.decode()
    assert fresh_podman.images() - before == {podman_world.id_of(name)}
