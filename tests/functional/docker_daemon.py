"""A docker daemon of the tests' own: its storage, its socket, its containerd; no bridge, no iptables rule.

docker_daemon.docker("run", "--rm", docker_daemon.image("base"), "true")
docker_daemon.variables    # environment variables with which envcheck, too, uses this daemon

Its programs come from PATH. Debian's packages docker.io and containerd need not be installed, which would
start a daemon: .ci/engines unpacks them.
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
from processes import PATIENCE, ran, wait_for

_CONTAINERD = """\
version = 2
root = "{folder}/containerd"
state = "{run}/containerd"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
address = "{run}/c.sock"
"""


@dataclass(frozen=True)
class DockerDaemon(Engine):
    """``folder`` holds its storage, ``run`` what has to have a short path."""

    folder: Path
    run: Path

    @property
    def variables(self) -> dict[str, str]:
        return {
            "DOCKER_HOST": f"unix://{self.run}/d.sock",
            "DOCKER_CONFIG": str(self.folder / "config"),
            "DOCKER_BUILDKIT": "0",  # the daemon's own builder
            "PATH": _path(),
        }

    @property
    def complete_variables(self) -> dict[str, str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("CONTAINER", "DOCKER_"))}
        return clean | self.variables

    def docker(
        self,
        *arguments: str | Path,
        code: int | None = 0,
        seconds: float = PATIENCE,
        **changes: str,
    ) -> subprocess.CompletedProcess[str]:
        """One run, which has to end with that exit code (None: with any)."""
        done = ran(
            [_program("docker"), *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            env=self.complete_variables | changes,
            timeout=seconds,
        )
        return ended(done, code)

    def id_of(self, image: str) -> str:
        """The image's id: 64 hex digits."""
        output = self.docker("image", "inspect", "--format", "{{.Id}}", image).stdout.strip()
        return output.removeprefix("sha256:")

    def images(self) -> set[str]:
        """The ids of all images, without prefix."""
        output = self.docker("images", "--all", "--quiet", "--no-trunc").stdout
        return {line.removeprefix("sha256:") for line in output.split()}

    def containers(self) -> set[str]:
        """The ids of all containers, running or not."""
        return set(self.docker("ps", "--all", "--quiet", "--no-trunc").stdout.split())

    def import_tar(
        self, tar: Path, name: str, changes: Sequence[str], architecture: str = ""
    ) -> None:
        """An image of one layer. changes: lines of a Dockerfile."""
        options = [word for line in changes for word in ("--change", line)]
        options += ["--platform", f"linux/{architecture}"] if architecture else []
        self.docker("import", *options, tar, name)

    def build(self, name: str, recipe: str, files: base_files.Files) -> str:
        """An image from a Dockerfile's text and what it copies: the name."""
        with base_images.context(self.folder, recipe, files) as place:
            self.docker("build", "--quiet", "--tag", name, place)
        return name


def _path() -> str:
    return f"{os.environ['PATH']}:/usr/sbin:/sbin"


def _program(name: str) -> str:
    found = shutil.which(name, path=_path())
    if found is None:
        raise Refused(f"there is no {name} on this machine")
    return found


@contextmanager
def daemon(folder: Path, base: Path) -> Iterator[DockerDaemon]:
    """A daemon with the base image and nothing else, removed without a trace. Raises Refused.

    base: the tar of base_files.base_tar.
    """
    programs = [_program(name) for name in ("containerd", "dockerd", "runc", "docker")]
    if os.geteuid():
        raise Refused("a docker daemon of the tests' own needs root")
    (folder / "config").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        prefix="ec-", dir="/tmp"
    ) as run:  # a socket's path has to be short
        made = DockerDaemon(folder, Path(run))
        children: list[subprocess.Popen[bytes]] = []
        try:
            _start(made, programs, children)
            made.made["base"] = base_images.import_base(made, base)
            made.docker("run", "--rm", made.made["base"], "true")
            yield made
        finally:
            _end(made, children)


def _start(
    made: DockerDaemon, programs: list[str], children: list[subprocess.Popen[bytes]]
) -> None:
    """Its own containerd first: dockerd would share one that the machine runs."""
    settings = made.folder / "containerd.toml"
    settings.write_text(_CONTAINERD.format(folder=made.folder, run=made.run))
    containerd, dockerd, *_others = programs
    _child(made, [containerd, "--config", str(settings)], made.run / "c.sock", children)
    arguments = [
        f"--data-root={made.folder}/data", f"--exec-root={made.run}/exec", f"--pidfile={made.run}/d.pid",
        f"--host=unix://{made.run}/d.sock", f"--containerd={made.run}/c.sock",
        "--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false",
    ]  # fmt: skip
    _child(made, [dockerd, *arguments], made.run / "d.sock", children)
    daemon = children[-1]
    answered = lambda: made.docker("version", code=None).returncode == 0  # noqa: E731
    wait_for(lambda: answered() or daemon.poll() is not None)
    if daemon.poll() is not None:
        raise Refused(f"dockerd does not answer: {_last_words(made, 'dockerd')}")


def _child(
    made: DockerDaemon, argv: list[str], socket: Path, children: list[subprocess.Popen[bytes]]
) -> None:
    name = Path(argv[0]).name
    with (made.folder / f"{name}.log").open("wb") as log:
        child = subprocess.Popen(argv, stdout=log, stderr=log, env=made.complete_variables)
    children.append(child)
    wait_for(lambda: socket.exists() or child.poll() is not None)
    if not socket.exists():
        raise Refused(f"{name} does not start: {_last_words(made, name)}")


def _last_words(made: DockerDaemon, name: str) -> str:
    lines = (made.folder / f"{name}.log").read_text(errors="replace").splitlines()
    return lines[-1] if lines else "it says nothing"


def _end(made: DockerDaemon, children: list[subprocess.Popen[bytes]]) -> None:
    if len(children) == 2 and children[-1].poll() is None:
        with suppress(subprocess.TimeoutExpired, Refused):
            made.docker("rm", "--force", *made.containers(), code=None)
    for child in reversed(children):  # dockerd asks containerd to the end
        child.terminate()
        try:
            child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    kill_those_of(made.run)
    for place in (made.folder, made.run):
        unmount_below(place)
        shutil.rmtree(place, ignore_errors=True)
    left = [*processes_of(made.run), *mounts_below(made.folder), *mounts_below(made.run)]
    assert not left and not made.folder.exists(), f"docker's tests leave behind: {left}"


@pytest.fixture(scope="session")
def docker_daemon(
    tmp_path_factory: pytest.TempPathFactory, base_tar: Path
) -> Iterator[DockerDaemon]:
    """One daemon for all tests; skips them where none can be started."""
    yield from opened(daemon(tmp_path_factory.mktemp("docker"), base_tar))
