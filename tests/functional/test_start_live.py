"""`envcheck run` and `envcheck shell` in real containers: codes, signals, streams, files, two at once."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from podman import EITHER, PodmanWorld
from processes import PATIENCE, wait_for
from started import Installed, installed, plain_start


@pytest.fixture(params=EITHER)
def world(request: pytest.FixtureRequest) -> Any:
    """Each engine with a storage of the tests' own."""
    fixture = {"podman": "podman_world", "docker": "docker_daemon"}[request.param]
    return request.getfixturevalue(fixture)


@pytest.fixture
def image(world: Any, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Installed]:
    """The base image, installed; afterwards no container is left."""
    name = "podman" if isinstance(world, PodmanWorld) else "docker"
    variables = dict(world.variables)
    program = shutil.which(name, path=variables.get("PATH", os.environ["PATH"]))
    start = plain_start(
        name,  # type: ignore[arg-type]
        str(program),
        world.id_of(world.image("base")),
        [] if name == "podman" else ["--network=none"],
    )
    before = world.containers()
    yield installed(tmp_path / "home", variables, start)
    assert wait_for(lambda: world.containers() == before), world.containers()


def test_codes_are_the_command_s_or_as_engines_have_them(image: Installed) -> None:
    for command, code in ((("sh", "-c", "exit 3"), 3), (("nosuch",), 127), (("/etc",), 126)):
        assert image.run(*command).returncode == code
    gone = image.change(image="sha256:" + "0" * 64).run("true")
    assert gone.returncode == 125 and b"0000" in gone.stderr and gone.stdout == b""


HANDLES = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\n"
WAITS = 'print("ready", flush=True)\ntime.sleep(60)\n'


def test_a_signal_to_envcheck_reaches_the_command(image: Installed) -> None:
    with image.running("python3", "-c", HANDLES + WAITS) as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 143


def test_control_c_on_a_terminal_reaches_the_command(image: Installed) -> None:
    code = (
        "import os, sys, time\n"
        "try:\n    print('ready', os.isatty(0), os.isatty(1), os.environ['TERM'], flush=True)\n"
        "    time.sleep(60)\n"
        "except KeyboardInterrupt:\n    sys.exit(5)\n"
    )
    with image.typing("run", "python3", "-c", code, TERM="xterm-256color") as terminal:
        terminal.wait_for("ready True True xterm-256color")
        terminal.type("\x03")
        assert terminal.end() == 5


def test_the_working_directory_is_there_under_its_own_name(image: Installed) -> None:
    place = image.work / "with space" / "a:b" / "c,d" / 'quo"te' / "ünï" / "-dash"
    place.mkdir(parents=True)
    (place / "given").write_text("given")
    done = image.run("sh", "-c", 'cat given; pwd >&2; echo "$0" >made', "written", cwd=place)
    assert (done.returncode, done.stdout) == (0, b"given"), done.stderr
    assert done.stderr.decode() == f"{place}\n"
    assert (place / "made").read_text() == "written\n"
    assert (place / "made").stat().st_uid == os.getuid()


def test_volumes_variables_and_what_the_caller_has(image: Installed, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "x").write_text("x")
    script = 'cat /data/x; echo "$A $SECRET ${OTHER-none}"; touch /data/y 2>/dev/null || echo "ro"'
    options = ["-v", f"{data}:/data:ro", "-e", "A=b c", "-e", "SECRET"]
    done = image.envcheck(
        "run",
        *options,
        "--engine-arg=--shm-size=5m",
        "--",
        "sh",
        "-c",
        script,
        SECRET="s",
        OTHER="o",
    )
    assert done.stdout == b"xb c s none\nro\n", done.stderr
    shm = image.envcheck("run", "--engine-arg=--shm-size=5m", "df", "/dev/shm").stdout.split()
    assert b"5120" in shm


def test_a_shell_inside(image: Installed) -> None:
    done = image.envcheck("shell", stdin=b"echo got $((1 + 1)); exit 4\n")
    assert (done.returncode, done.stdout) == (4, b"got 2\n")
    with image.typing("shell") as terminal:
        terminal.type("pwd; exit $((1 + 6))\n")
        terminal.wait_for(str(image.work))
        assert terminal.end() == 7
