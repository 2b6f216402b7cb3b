"""Making an environment: where its path is awkward, from old Pythons, and with nothing of the user's."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import locked_folder
import msgspec
import pytest
from cli import environment as clean_environment
from locked_folder import bundled, lock_of
from processes import ran
from pythons import heavy, need
from resolving import isolate, stack

from envcheck.install.lockfile import Lockfile
from envcheck.install.pythons.interpreter import Interpreter
from envcheck.install.wheels import environment

AWKWARD = "with spaces & ünïcödé " + "and so long that no kernel takes it as a shebang " * 3
STACK = stack("pip=={version}")
EMPTY = Lockfile(stack="test", release="1", python="3.11", architecture="x86_64", packages=[])


_autouse = pytest.fixture(autouse=True)(isolate)


def interpreter(minor: int | None, **changes: object) -> Interpreter:
    path = sys.executable if minor is None else need(minor)
    version = "{}.{}.{}".format(*sys.version_info) if minor is None else f"3.{minor}.0"
    return Interpreter(path=path, version=version, found_in="--python", **changes)  # type: ignore[arg-type]


def output(*argv: str | Path, **variables: str) -> str:
    env = clean_environment(**variables)
    result = ran(argv, text=True, env=env)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout.strip()


@pytest.mark.parametrize("minor", [*heavy(6, 7, 8), None])
def test_a_script_starts_from_an_awkward_path(tmp_path: Path, minor: int | None) -> None:
    python = interpreter(minor)
    directory = tmp_path / AWKWARD[:120].rstrip() / AWKWARD[120:].rstrip() / "1.0"
    assert len(os.fsencode(directory)) > 127
    environment.create(directory, python, prompt="named")
    files = tmp_path / "files"
    bundled("pip", files, python.path if minor is not None else "")
    lock = lock_of(files, python.minor)
    locked_folder.install(directory, lock, STACK)
    version = lock.packages[0].version
    assert output(directory / "bin" / "pip", "--version").startswith(
        f"pip {version} from {directory}"
    )
    site = next(directory.glob("lib/python3.*/site-packages"))
    # What virtualenv and uv keep for themselves begins with "_virtualenv"; nothing else is there.
    there = {path.name for path in site.iterdir() if not path.name.startswith("_virtualenv")}
    assert there - {"__pycache__"} == {"pip", f"pip-{version}.dist-info"}
    assert not list(site.glob("*/direct_url.json"))


@pytest.mark.parametrize("shell", ["sh", "bash", "zsh"])
def test_activation_sets_and_deactivation_unsets(tmp_path: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} on this machine")
    directory = tmp_path / "an env"
    value = 'it\'s "$1" \\!'
    environment.create(directory, interpreter(None))
    of = msgspec.structs.replace(STACK, environment={"TF_IT": value})
    environment.configure(directory, of, EMPTY, "https://public.example/simple")
    (tmp_path / "told.py").write_text("import os\nprint(ascii(os.environ.get('TF_IT')))\n")
    tell = f"'{sys.executable}' '{tmp_path}/told.py'"
    source = "." if shell == "sh" else "source"
    program = f"{source} '{directory}/bin/activate'\n{tell}\ndeactivate\n{tell}\n"
    result = output(shell, "-c", program, TF_IT="the user's $HOME")
    assert result.splitlines() == [ascii(value), ascii(None)]
