"""A podman of the tests' own: its storage, its configuration, its images; the user's are never touched.

podman_world.podman("run", "--rm", podman_world.image("base"), "true")
podman_world.variables    # environment variables with which envcheck, too, uses this storage
podman_world.image("banner")    # one of base_images.KINDS, made when it is first asked for
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import base_files
import base_images
import pytest
from engine_worlds import Engine, Refused, ended, opened
from leftovers import kill_those_of, mounts_below, processes_of, unmount_below
from processes import PATIENCE, ran

# For a fixture that is given an engine by its name: selection.py does not see what that one asks for.
EITHER = [pytest.param(name, marks=pytest.mark.engine) for name in ("podman", "docker")]

# crun refuses hybrid cgroups, and ulimits may not be raised everywhere: both work without.
_ENGINE = """\
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
netns = "none"
log_driver = "k8s-file"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
image_copy_tmp_dir = "{folder}/tmp"
lock_type = "file"
runtime = "runc"
tmp_dir = "{run}/libpod"
[network]
network_config_dir = "{folder}/networks"
"""
_STORAGE = '[storage]\ndriver = "{driver}"\ngraphroot = "{folder}/storage"\nrunroot = "{run}/run"\n'
_REGISTRIES = 'unqualified-search-registries = []\nshort-name-mode = "enforcing"\n'


@dataclass(frozen=True)
class PodmanWorld(Engine):
    """``folder`` holds all of it but what has to have a short path: that is in ``run``."""

    folder: Path
    run: Path

    @property
    def storage(self) -> Path:
        return self.folder / "storage"

    @property
    def variables(self) -> dict[str, str]:
        return {
            "CONTAINERS_CONF": str(self.folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(self.folder / "storage.conf"),
            "CONTAINERS_REGISTRIES_CONF": str(self.folder / "registries.conf"),
            "REGISTRY_AUTH_FILE": str(self.folder / "auth.json"),
        }

    def podman(
        self,
        *arguments: str | Path,
        code: int | None = 0,
        stdin: bytes = b"",
        seconds: float = PATIENCE,
        **changes: str,
    ) -> subprocess.CompletedProcess[str]:
        """One run, which has to end with that exit code (None: with any)."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("CONTAINER", "DOCKER_"))}
        variables = clean | self.variables | {"TMPDIR": str(self.folder / "tmp")} | changes
        done = subprocess.run(
            ["podman", *map(str, arguments)],
            input=stdin,
            capture_output=True,
            env=variables,
            cwd=self.folder / "tmp",  # conmon may leave a file "oom" where it was started
            timeout=seconds,
            check=False,
        )
        return ended(done, code)

    def id_of(self, image: str) -> str:
        """The image's id: 64 hex digits."""
        return self.podman("image", "inspect", "--format", "{{.Id}}", image).stdout.strip()

    def images(self) -> set[str]:
        """The ids of all images, without prefix."""
        output = self.podman("images", "--all", "--quiet", "--no-trunc").stdout
        return {line.removeprefix("sha256:") for line in output.split()}

    def containers(self) -> set[str]:
        """The ids of all containers, running or not."""
        arguments = ("ps", "--all", "--quiet", "--no-trunc", "--external")
        for _ in range(4):  # podman 4.3 fails where one goes while it looks
            with suppress(Refused):
                return set(self.podman(*arguments).stdout.split())
        return set(self.podman(*arguments).stdout.split())

    def import_tar(
        self, tar: Path, name: str, changes: Sequence[str], architecture: str = ""
    ) -> None:
        """An image of one layer. changes: lines of a Dockerfile."""
        options = [word for line in changes for word in ("--change", line)]
        options += ["--arch", architecture] if architecture else []
        self.podman("import", "--quiet", *options, tar, name)

    def build(self, name: str, recipe: str, files: base_files.Files) -> str:
        """An image from a Dockerfile's text and what it copies: the name."""
        with base_images.context(self.folder, recipe, files) as place:
            alone = ("--pull=never", "--network=none")
            self.podman("build", "--quiet", *alone, "--tag", name, place)
        return name

    def save(self, image: str, to: Path) -> Path:
        """Write the image as an OCI archive."""
        self.podman("save", "--quiet", "--format", "oci-archive", "--output", to, image)
        return to


@contextmanager
def world(folder: Path, base: Path) -> Iterator[PodmanWorld]:
    """A podman with the base image and nothing else, removed without a trace. Raises Refused.

    base: the tar of base_files.base_tar.
    """
    for program in ("podman", "runc"):
        if shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is None:
            raise Refused(f"there is no {program} on this machine")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ec-", dir="/tmp") as run:  # a runroot has to be short
        made = PodmanWorld(folder, Path(run))
        try:
            _start(made, base)
            yield made
        finally:
            _remove(made)


def _start(made: PodmanWorld, base: Path) -> None:
    """Overlay where it works (not on overlay, for one), else plain copies."""
    words = ""
    for driver in ("overlay", "vfs"):
        _configure(made, driver)
        try:
            made.made["base"] = base_images.import_base(made, base)
            made.podman("run", "--rm", made.made["base"], "true")
            return
        except (Refused, subprocess.TimeoutExpired) as error:
            words = str(error)
            _clear(made)
    raise Refused(f"podman does not work here: {words}")


def _configure(made: PodmanWorld, driver: str) -> None:
    for name in ("tmp", "networks"):
        (made.folder / name).mkdir(exist_ok=True)
    places = {"folder": made.folder, "run": made.run, "driver": driver}
    for name, text in (
        ("containers.conf", _ENGINE.format_map(places)),
        ("storage.conf", _STORAGE.format_map(places)),
        ("registries.conf", _REGISTRIES),
        ("auth.json", "{}"),
    ):
        (made.folder / name).write_text(text)


def _remove(made: PodmanWorld) -> None:
    _clear(made)
    shutil.rmtree(made.folder, ignore_errors=True)
    shutil.rmtree(made.run, ignore_errors=True)
    left = [*processes_of(made.run), *mounts_below(made.folder), *mounts_below(made.run)]
    assert not left and not made.folder.exists(), (
        f"podman's tests leave behind: {left or made.folder}"
    )


def _clear(made: PodmanWorld) -> None:
    """No container, no image, no mount, no process, no file of the storage."""
    for arguments in (
        ("rm", "--all", "--force", "--time", "0"),
        ("umount", "--all"),
        ("rmi", "--all", "--force"),
    ):
        with suppress(subprocess.TimeoutExpired):
            made.podman(*arguments, code=None)
    kill_those_of(made.run)
    for place in (made.folder, made.run):
        unmount_below(place)
    remove_tree = ["rm", "-rf", "--", made.storage, made.run / "run", made.run / "libpod"]
    if os.geteuid():  # files of other users of its own name space
        made.podman("unshare", *remove_tree, code=None)
    ran(remove_tree)
    made.made.clear()


@pytest.fixture(scope="session")
def base_tar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tar of the base image's files, made once."""
    return base_files.base_tar(tmp_path_factory.mktemp("base-image") / "base.tar")


@pytest.fixture(scope="session")
def podman_world(tmp_path_factory: pytest.TempPathFactory, base_tar: Path) -> Iterator[PodmanWorld]:
    """One podman for all tests; skips them where there is none that works."""
    yield from opened(world(tmp_path_factory.mktemp("podman"), base_tar))


@pytest.fixture(scope="module", name="world")
def users_podman(tmp_path_factory: pytest.TempPathFactory, base_tar: Path) -> Iterator[PodmanWorld]:
    """The podman of the user who installs: it has none of the images."""
    with world(tmp_path_factory.mktemp("user") / "podman", base_tar) as made:
        yield made


@pytest.fixture
def nothing_left(podman_world: PodmanWorld) -> Iterator[None]:
    """No test leaves a container behind, however it ends."""
    before = podman_world.containers()
    yield
    left = podman_world.containers() - before
    for one in left:
        podman_world.podman("rm", "--force", "--time", "0", one)
    assert not left
