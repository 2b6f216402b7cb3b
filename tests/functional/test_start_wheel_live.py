"""`envcheck run` and `envcheck shell` in an environment of wheels: what activation sets, and real shells."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from cli import refused
from installing import Home
from started import Installed, version, work

from envcheck.install.pythons.interpreter import Interpreter
from envcheck.install.wheels import activation, environment

ODD = 'it\'s $HOME; `x` \\ "q" ünï'
MINOR = f"{sys.version_info[0]}.{sys.version_info[1]}"
UNDOES_IT = "PATH=/usr/bin:/bin\nexport PATH\nFROM_RC=read\n"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """An environment without packages, whose stack sets two variables."""
    home = Home(tmp_path_factory.mktemp("home"))
    directory = version(home, "tiny", f"1.0-py{MINOR}-0badf00d")
    python = Interpreter(
        path=sys.executable, version="{}.{}.{}".format(*sys.version_info), found_in="--python"
    )
    environment.create(directory, python, prompt="tiny")
    activation.write(directory, {"STACK": ODD, "TF_X": "1"})
    return Installed(home, work(home), {})


def prefix(tiny: Installed) -> Path:
    return (tiny.home.root("tiny") / "current").resolve()


def test_the_command_gets_what_activation_sets(tiny: Installed) -> None:
    script = (
        'echo "$STACK"; echo "$TF_X ${PYTHONHOME-unset} $VIRTUAL_ENV"; command -v python; exit 3'
    )
    done = tiny.run("sh", "-c", script, PYTHONHOME=sys.base_prefix, TF_X="theirs")
    bin_python = prefix(tiny) / "bin" / "python"
    assert done.stdout.decode().splitlines() == [
        ODD, f"1 unset {prefix(tiny)}", str(bin_python),
    ]  # fmt: skip
    assert (done.returncode, done.stderr) == (3, b"")
    result = tiny.run("python", "-c", "import sys; print(sys.prefix)")
    assert result.stdout.decode() == f"{prefix(tiny)}\n"
    own = tiny.envcheck("run", "-e", "TF_X=2", "-e", "NONE", "sh", "-c", "echo $TF_X ${NONE-unset}")
    assert own.stdout == b"2 unset\n"


def test_what_cannot_be_started(tiny: Installed) -> None:
    broken = tiny.work / "broken"
    broken.write_text("#!/nowhere/sh\n")
    plain = tiny.work / "plain"
    plain.write_text("#!/bin/sh\n")
    binary = tiny.work / "binary"
    binary.write_bytes(b"\0\1\2")
    for path in (broken, binary):
        path.chmod(0o755)
    for command, code, words in (
        ("nosuch", 127, "nosuch: there is no such command"),
        ("./nosuch", 127, "./nosuch: there is no such command"),
        ("./broken", 126, "interpreter"),
        ("./plain", 126, "Permission denied"),
        ("./binary", 126, "Exec format error"),
        ("/", 126, "/: "),
    ):
        assert words in refused(tiny.run(command), code)
    for option in (["-v", "/:/x"], ["--engine-arg=--init"]):
        sentence = refused(tiny.envcheck("run", *option, "true"), 125)
        assert option[0][:3] in sentence and "environment of wheels" in sentence


def test_bash_s_rc_file_does_not_undo_the_activation(tiny: Installed) -> None:
    program = shutil.which("bash")
    if program is None:
        pytest.skip("no bash on this machine")
    home = tiny.home.folder / "home of bash"
    file = home / ".bashrc"
    file.parent.mkdir(parents=True)
    file.write_text(UNDOES_IT)
    places = {"HOME": str(home), "SHELL": program, "TERM": "dumb", "ENV": str(file)}
    with tiny.typing("shell", **places) as terminal:
        terminal.type('echo "1:$FROM_RC:$STACK:$TF_X:"; command -v python\n')
        terminal.wait_for(f"1:read:{ODD}:1:")
        terminal.wait_for(f"{prefix(tiny)}/bin/python")
        assert "tiny" in terminal.seen.decode(), "the prompt says where one is"
        terminal.type('deactivate; echo "2:$TF_X:$VIRTUAL_ENV:"; command -v python; exit 4\n')
        assert terminal.end() == 4
    assert "2:::" in terminal.seen.decode()
    assert terminal.seen.decode().count(f"{prefix(tiny)}/bin/python") == 1
    assert "ENVCHECK" not in terminal.seen.decode()
