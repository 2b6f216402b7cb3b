"""setup.sh: what it makes and says; where something is missing, one sentence and nothing half done."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import planted_modules
import pytest
from processes import ran

REPOSITORY = Path(__file__).resolve().parents[2]
TOOLS = (
    "sh", "dirname", "cat", "cksum", "rm", "env", "sed", "tail", "mktemp", "mkdir",
)  # fmt: skip
OLD = '#!/bin/sh\ncase "$*" in *print*) echo 3.9.2 ;; *) exit 1 ;; esac\n'
NO_VENV = f'#!/bin/sh\ncase "$*" in *ensurepip*) exit 1;; esac\nexec {sys.executable} "$@"\n'
PLAIN = f'#!/bin/sh\nexec {sys.executable} "$@"\n'
ROOT, ANN = "#!/bin/sh\necho 0\n", "#!/bin/sh\necho 1000\n"
# What uv does of "uv python install".
UV = """#!/bin/sh
[ "$1 $2" = "python install" ] || exit 1
made="$UV_PYTHON_INSTALL_DIR/cpython-$3.7-linux-x86_64-gnu/bin"
mkdir -p "$made"
printf '#!/bin/sh\\nexec %s "$@"\\n' {python} >"$made/python3"
chmod 755 "$made/python3"
"""
PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "envcheck-gpu"
version = "1"
"""
# Builds an "envcheck" that says how it was called.
BACKEND = """
import zipfile
def get_requires_for_build_editable(settings=None):
    return []
def build_editable(folder, settings=None, metadata=None):
    info = "envcheck_gpu-1.dist-info"
    texts = {
        "standin.py": "import os, sys\\ndef main(): print(os.environ['ENVCHECK_COMMAND'], sys.argv[1:])\\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\\nName: envcheck-gpu\\nVersion: 1\\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
        f"{info}/entry_points.txt": "[console_scripts]\\nenvcheck = standin:main\\n",
    }
    texts[f"{info}/RECORD"] = "".join(f"{name},,\\n" for name in [*texts, f"{info}/RECORD"])
    name = "envcheck_gpu-1-py3-none-any.whl"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        for path, text in texts.items():
            wheel.writestr(path, text)
    return name
"""


class Machine:
    """A checkout in a directory with awkward characters in its name, and a PATH with little on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checkout = folder / "ann's checkout"
        self.checkout.mkdir()
        self.script = self.checkout / "setup.sh"
        shutil.copy(REPOSITORY / "setup.sh", self.checkout)
        (self.checkout / "pyproject.toml").write_text(PROJECT)
        (self.checkout / "backend.py").write_text(BACKEND)
        self.bin = folder / "bin"
        self.bin.mkdir()
        for tool in TOOLS:
            (self.bin / tool).symlink_to(str(shutil.which(tool)))

    def has(self, name: str, script: str) -> Path:
        program = self.bin / name
        program.write_text(script)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return program

    def run(
        self, *arguments: str, cwd: Path | None = None, **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """From another directory, without a network."""
        (self.folder / "tmp").mkdir(exist_ok=True)
        variables = {"PATH": str(self.bin), "TMPDIR": str(self.folder / "tmp")}
        return ran(
            [str(self.bin / "sh"), str(self.script), *arguments],
            text=True,
            cwd=cwd or self.folder,
            stdin=subprocess.DEVNULL,
            env=variables | {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull} | environ,
        )

    def refusal(self, *arguments: str, **environ: str) -> str:
        ran = self.run(*arguments, **environ)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert not (self.checkout / ".venv" / "bin").exists()
        return ran.stderr.splitlines()[-1].removeprefix("setup: ")

    def logs(self) -> list[Path]:
        return list((self.folder / "tmp").iterdir())


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_nothing_to_do(machine: Machine) -> None:
    assert machine.refusal().startswith("say what to do: sh setup.sh doctor")


def test_it_sets_up_and_starts_and_the_second_time_it_says_nothing(machine: Machine) -> None:
    python = machine.has("python3", PLAIN)
    version = "{}.{}.{}".format(*sys.version_info)
    first, second = (machine.run("doctor", "a b") for _ in range(2))
    assert first.stderr.splitlines() == [
        f"setup: making .venv with Python {version} ({python})",
        "setup: installing envcheck and its packages",
    ]
    assert second.stderr == ""
    called = str(machine.script).replace("'", "'\\''")
    assert first.stdout == second.stdout == f"sh '{called}' ['doctor', 'a b']\n"
    assert machine.logs() == []


def test_what_pip_said_is_in_a_log_that_is_named(machine: Machine) -> None:
    machine.has("python3", PLAIN)
    (machine.checkout / "backend.py").write_text("raise SystemExit('no such luck')\n")
    ran = machine.run("doctor")
    (log,) = machine.logs()
    assert ran.returncode == 2 and "no such luck" in log.read_text()
    *_, last = ran.stderr.splitlines()
    assert last.startswith("setup: pip could not install envcheck") and str(log) in last
    assert len(ran.stderr.splitlines()) == 6, "two of what it does, three last words, and why"


def test_no_python(machine: Machine) -> None:
    called = str(machine.script).replace("'", "'\\''")
    way = f"uv can get one into .venv: sh '{called}' --get-python doctor; PYTHON=/path/to/python3"
    result = machine.refusal("doctor", "--from", "x")
    assert result.startswith(f"needs Python 3.10 or newer; found none. {way}")
    python = machine.has("python3", OLD)
    result = machine.refusal("doctor")
    assert result.startswith(f"needs Python 3.10 or newer; found Python 3.9.2 ({python}). {way}")


def test_the_python_that_was_named_is_the_one_that_counts(machine: Machine) -> None:
    machine.has("python3", NO_VENV)
    old = machine.has("old", OLD)
    result = machine.refusal("doctor", PYTHON=str(old))
    assert result == f"PYTHON={old} is Python 3.9.2; envcheck needs 3.10 or newer"
    odd = machine.has("odd", "#!/bin/sh\nexit 1\n")
    assert machine.refusal("doctor", PYTHON=str(odd)) == f"PYTHON={odd} is not a Python interpreter"


def test_uv_gets_a_python_where_the_user_says_so(machine: Machine) -> None:
    machine.has("python3", OLD)
    machine.has("uv", UV.replace("{python}", sys.executable))
    for tool in ("mkdir", "chmod"):
        if not (machine.bin / tool).exists():
            (machine.bin / tool).symlink_to(str(shutil.which(tool)))
    first = machine.run("--get-python", "doctor")
    assert first.returncode == 0, first.stderr
    assert "setup: getting Python 3.12 with uv" in first.stderr.splitlines()
    assert machine.run("doctor").stderr == "", "what is there is not got again"


def test_there_is_nothing_that_could_get_a_python(machine: Machine) -> None:
    result = machine.refusal("--get-python", "doctor")
    assert result.startswith("there is neither uv nor a Python that could get it")
    machine.has("uv", "#!/bin/sh\necho no network >&2\nexit 1\n")
    result = machine.refusal("--get-python", "doctor")
    assert result.startswith("uv could not get Python 3.12 (everything it said: ")


def test_no_venv_module(machine: Machine) -> None:
    python = machine.has("python3", NO_VENV)
    package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
    machine.has("python3", NO_VENV.replace("ensurepip*)", "ensurepip*|*virtualenv*)"))
    assert "has no venv module (ensurepip): install it" in machine.refusal("doctor")
    apt = machine.has("apt-get", "#!/bin/sh\necho noise\nexit 100\n")
    machine.has("id", ROOT)
    assert machine.refusal("doctor").startswith(f"could not install {package}")
    assert "noise" in machine.logs()[0].read_text()
    apt.write_text("#!/bin/sh\nexit 0\n")
    assert machine.refusal("doctor").startswith(f"{python} still has no venv module")
    machine.has("id", ANN)
    assert f"as root, apt-get install {package}" in machine.refusal("doctor"), (
        "and there is no sudo"
    )


@pytest.mark.parametrize("has_venv", [True, False])
def test_modules_of_the_current_directory_and_of_pythonpath_are_not_run(
    machine: Machine, has_venv: bool
) -> None:
    """Not by any Python that is asked for its version, nor by venv, virtualenv, pip or envcheck itself."""
    machine.has("python3", PLAIN if has_venv else NO_VENV)
    planted = planted_modules.plant(machine.folder / "somebody's")
    for _ in range(2):
        ran = machine.run("doctor", cwd=planted, PYTHONPATH=f"{planted}:")
        assert ran.returncode == 0, ran.stderr
        assert planted_modules.ran(planted) == []
