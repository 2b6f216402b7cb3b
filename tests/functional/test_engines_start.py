"""Commands in fresh containers of real engines, and the GPUs that arrive there.

The GPUs are stand-ins: character devices that are /dev/null's, named by a CDI specification that is seen in
a mount namespace of the test's own, and an empty file in libcuda's place.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from docker_daemon import DockerDaemon
from podman import EITHER, PodmanWorld
from processes import PATIENCE

from envcheck.install.engine import EngineName, Start, Wiring
from envcheck.install.engines import command, gpu_count_check, inside
from envcheck.install.engines.command import Here

CDI = Wiring(kind="cdi", arguments=["--device", "nvidia.com/gpu=all"])
NONE = Wiring(kind="none", arguments=[])


def start(world: PodmanWorld | DockerDaemon, name: EngineName, **changes: object) -> Start:
    program = shutil.which(name, path=world.variables.get("PATH"))
    assert program
    values: dict[str, object] = {
        "engine": name,
        "program": program,
        "image": f"sha256:{world.id_of(world.image('base'))}",
        "reference": "localhost/base",
        "wiring": NONE,
        "gpus": 0,
    }
    return Start(**(values | changes))  # type: ignore[arg-type]


def here(directory: Path, **changes: object) -> Here:
    values: dict[str, object] = {"uid": 1234, "gid": 1234, "cwd": str(directory), "network": "none"}
    return Here(**(values | changes))  # type: ignore[arg-type]


def run(
    world: PodmanWorld | DockerDaemon, argv: Sequence[str], stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv,
        input=stdin,
        capture_output=True,
        text=True,
        env={**os.environ, **world.variables},
        timeout=PATIENCE,
        check=False,
    )


@pytest.fixture(params=EITHER)
def engine(
    request: pytest.FixtureRequest,
) -> Iterator[tuple[EngineName, PodmanWorld | DockerDaemon]]:
    fixture = {"podman": "podman_world", "docker": "docker_daemon"}[request.param]
    world = request.getfixturevalue(fixture)
    yield request.param, world
    assert not world.containers(), "a test leaves a container behind"


def test_the_command_runs_where_and_as_the_caller(
    engine: tuple[EngineName, PodmanWorld | DockerDaemon], tmp_path: Path
) -> None:
    name, world = engine
    place = tmp_path / 'a "b", c:d'
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    script = 'echo "$(id -u):$(id -g) $HOME $A_WISH"; pwd; cat; echo made > here; exit 7'
    whole = here(place, interactive=True, environment={"A_WISH": "1,2=3"})
    done = run(world, command.argv(start(world, name), ["sh", "-c", script], whole), "from stdin")
    assert done.stdout == f"1234:1234 /tmp 1,2=3\n{place}\nfrom stdin", done.stderr
    assert done.returncode == 7
    assert (place / "here").stat().st_uid == 1234


def test_what_is_not_there_is_127_and_what_may_not_run_126(
    engine: tuple[EngineName, PodmanWorld | DockerDaemon], tmp_path: Path
) -> None:
    name, world = engine
    plain = start(world, name)
    for word, code in (("no-such-program", 127), ("/etc", 126)):
        assert run(world, command.argv(plain, [word], here(tmp_path))).returncode == code


def test_an_entrypoint_comes_first_or_not_at_all(
    engine: tuple[EngineName, PodmanWorld | DockerDaemon],
) -> None:
    name, world = engine
    image = world.image("banner")
    printing, silent = (start(world, name, image=image, entrypoint=one) for one in (None, ""))
    with_it = run(world, [*inside.of_start(printing).argv, "echo", "ours"])
    without = run(world, [*inside.of_start(silent).argv, "echo", "ours"])
    assert with_it.stdout.endswith("ours\n") and with_it.stdout != "ours\n"
    assert without.stdout == "ours\n"


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    """Two GPUs' device nodes and a libcuda, all stand-ins."""
    made = tmp_path / "stand-in"
    made.mkdir()
    for name in ("nvidia0", "nvidia1", "nvidiactl"):
        try:
            os.mknod(made / name, 0o20666, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("device nodes cannot be made here")
    (made / "libcuda.so.1").touch()
    return made


def specification(
    nodes: Path,
    *,
    version: str = "0.5.0",
    gpus: int = 2,
    libcuda: bool = True,
    control: str = "nvidiactl",
) -> Path:
    """A folder with the specification in it."""
    devices = "\n".join(
        f"    - path: /dev/nvidia{n}\n      hostPath: {nodes}/nvidia{n}" for n in range(gpus)
    )
    mounts = (
        f"  mounts:\n  - hostPath: {nodes}/libcuda.so.1\n    containerPath: /usr/lib/libcuda.so.1\n"
        "    options: [ro, bind]\n"
    )
    text = (
        f'cdiVersion: "{version}"\nkind: nvidia.com/gpu\ndevices:\n- name: all\n  containerEdits:\n'
        f"    deviceNodes:\n{devices}\ncontainerEdits:\n  deviceNodes:\n  - path: /dev/{control}\n"
        f"    hostPath: {nodes}/nvidiactl\n{mounts if libcuda else ''}"
    )
    folder = nodes.parent / "cdi"
    folder.mkdir(exist_ok=True)
    (folder / "nvidia.yaml").write_text(text)
    return folder


def with_specification(
    world: PodmanWorld, folder: Path, argv: list[str]
) -> subprocess.CompletedProcess[str]:
    """In a mount namespace where /etc/cdi is ``folder``, on an overlay of /etc that nobody else sees."""
    upper, work = folder.parent / "upper", folder.parent / "work"
    (upper / "cdi").mkdir(parents=True, exist_ok=True)
    work.mkdir(exist_ok=True)
    shutil.copy(folder / "nvidia.yaml", upper / "cdi")
    mount = f"lowerdir=/etc,upperdir={upper},workdir={work}"
    script = 'mount -t overlay none -o "$1" /etc && shift && exec "$@"'
    done = run(world, ["unshare", "--mount", "sh", "-c", script, "sh", mount, *argv])
    if "mount: " in done.stderr or "unshare: " in done.stderr:
        pytest.skip(f"no overlay in a mount namespace here: {done.stderr.strip()}")
    return done


def test_by_cdi_the_gpus_arrive_and_the_command_runs(
    podman_world: PodmanWorld, nodes: Path, tmp_path: Path
) -> None:
    wanted = start(podman_world, "podman", wiring=CDI, gpus=2)
    script = "ls /dev/nvidia*; exit 5"
    done = with_specification(
        podman_world,
        specification(nodes),
        command.argv(wanted, ["sh", "-c", script], here(tmp_path)),
    )
    assert done.returncode == 5, done.stderr
    assert done.stdout.split() == ["/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl"]


@pytest.mark.parametrize(
    ("shape", "code", "said"),
    [
        ({"gpus": 1}, 125, "envcheck: 1 of 2 GPUs are in the container"),
        ({"control": "other"}, 125, "in the container, but /dev/nvidiactl is not"),
        ({"libcuda": False}, 125, "envcheck: the GPUs' device nodes are in the container, but"),
        ({"version": "0.6.0"}, 126, "unresolvable CDI devices nvidia.com/gpu=all"),
    ],
)
def test_with_a_specification_that_gives_less_the_command_does_not_run(
    podman_world: PodmanWorld,
    nodes: Path,
    tmp_path: Path,
    shape: dict[str, object],
    code: int,
    said: str,
) -> None:
    """The third is podman's own: 4.3 reads CDI up to 0.5.0 (data/cdi_versions.csv)."""
    release = podman_world.podman("--version").stdout.split()[-1]
    if "version" in shape and not release.startswith("4.3."):
        pytest.skip(f"podman {release} reads CDI 0.6.0, for all that is known")
    wanted = start(podman_world, "podman", wiring=CDI, gpus=2)
    argv = command.argv(wanted, ["echo", "it ran"], here(tmp_path))
    done = with_specification(podman_world, specification(nodes, **shape), argv)  # type: ignore[arg-type]
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr


def test_the_check_without_a_container(nodes: Path) -> None:
    """The device nodes' folder stands in for /dev."""

    def check(gpus: int, **environ: str) -> subprocess.CompletedProcess[str]:
        argv = gpu_count_check.checked(gpus, ["sh", "-c", 'echo "$have $1"', "sh", "a  b*"])
        argv = [word.replace("/dev/", f"{nodes}/") for word in argv]
        whole = {"PATH": os.environ["PATH"], "have": "a wish", **environ}
        return subprocess.run(argv, capture_output=True, text=True, env=whole, check=False)

    libraries = f"/nowhere:{nodes}"
    assert check(2, LD_LIBRARY_PATH=libraries).stdout == "a wish a  b*\n"
    less = check(3, LD_LIBRARY_PATH=libraries)
    assert (less.returncode, less.stdout) == (125, "") and "2 of 3 GPUs" in less.stderr
    if not Path("/usr/lib/x86_64-linux-gnu/libcuda.so.1").exists():
        assert check(2).returncode == 125
    (nodes / "nvidia0").rename(nodes / "dxg")  # WSL2: one node stands for all
    assert check(3, LD_LIBRARY_PATH=libraries).returncode == 0
