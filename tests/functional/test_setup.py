"""setup.sh on machines that lack something: one sentence that says what, and nothing half done."""

from __future__ import annotations

import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
TOOLS = ("sh", "dirname", "cat", "cksum", "rm", "env")
OLD = "#!/bin/sh\nexit 1\n"  # no Python of 3.10 or newer
NO_VENV = f'#!/bin/sh\ncase "$*" in *ensurepip*) exit 1;; esac\nexec {sys.executable} "$@"\n'
ROOT, ANN = "#!/bin/sh\necho 0\n", "#!/bin/sh\necho 1000\n"


class Machine:
    """A checkout in a directory with a blank in its name, and a PATH with little on it."""

    def __init__(self, folder: Path) -> None:
        self.checkout = folder / "my checkout"
        self.checkout.mkdir()
        shutil.copy(REPOSITORY / "setup.sh", self.checkout)
        self.bin = folder / "bin"
        self.bin.mkdir()
        for tool in TOOLS:
            (self.bin / tool).symlink_to(str(shutil.which(tool)))

    def has(self, name: str, script: str) -> Path:
        program = self.bin / name
        program.write_text(script)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return program

    def refusal(self, *arguments: str, **environ: str) -> str:
        ran = subprocess.run(
            [str(self.bin / "sh"), str(self.checkout / "setup.sh"), *arguments],
            capture_output=True,
            text=True,
            env={"PATH": str(self.bin), **environ},
            check=False,
        )
        assert (ran.returncode, ran.stdout) == (2, "")
        assert not (self.checkout / ".venv").exists()
        return ran.stderr.splitlines()[-1].removeprefix("setup: ")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_nothing_to_do(machine: Machine) -> None:
    assert machine.refusal().startswith("say what to do: sh setup.sh doctor")


def test_no_python(machine: Machine) -> None:
    assert machine.refusal("doctor").startswith("needs Python 3.10 or newer, and found none")
    machine.has("python3", OLD)
    assert machine.refusal("doctor").startswith("needs Python 3.10 or newer, and found none")


def test_the_python_that_was_named_is_the_one_that_counts(machine: Machine) -> None:
    machine.has("python3", NO_VENV)
    old = machine.has("old", OLD)
    assert machine.refusal("doctor", PYTHON=str(old)) == f"PYTHON={old} is no Python 3.10 or newer"


def test_no_venv_module(machine: Machine) -> None:
    python = machine.has("python3", NO_VENV)
    package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
    assert "has no venv module (ensurepip): install it" in machine.refusal("doctor")
    apt = machine.has("apt-get", "#!/bin/sh\nexit 100\n")
    machine.has("id", ROOT)
    assert machine.refusal("doctor").startswith(f"could not install {package}")
    apt.write_text("#!/bin/sh\nexit 0\n")
    assert machine.refusal("doctor").startswith(f"{python} still has no venv module")
    machine.has("id", ANN)
    assert f"as root, apt-get install {package}" in machine.refusal("doctor"), (
        "and there is no sudo"
    )
