"""NVIDIA's own recipe rewrites pip's configuration all over the machine: envcheck's changes not a byte."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nvidia_index
import pytest
import registry
from index_server import Index, serve
from installing import Home
from pythons import need

USERS = """\
# mine, with a comment
[global]
index-url = {url}
extra-index-url = https://someone:a-secret@index.invalid/simple
trusted-host = index.invalid
"""

# Below a home, a prefix, or the root: every place that pip, uv, setuptools and their like read.
IN_A_HOME = (
    ".pip/pip.conf", ".config/pip/pip.conf", ".config/uv/uv.toml", ".pypirc", ".netrc",
    ".pydistutils.cfg", ".config/pypoetry/config.toml", "Library/Application Support/pip/pip.conf",
)  # fmt: skip
OF_THE_MACHINE = (
    "/etc/pip.conf",
    "/etc/xdg/pip/pip.conf",
    "/etc/uv/uv.toml",
    "/etc/xdg/uv/uv.toml",
)


def configuration(home: Path, pythons: list[str]) -> list[Path]:
    """Every file that could configure pip or uv here, there or not."""
    places = [Path(path) for path in OF_THE_MACHINE]
    for folder in (home, Path.home()):
        places += [folder / path for path in IN_A_HOME]
    for python in pythons:
        show = "import sys; print(sys.prefix); print(sys.base_prefix)"
        told = subprocess.run([python, "-c", show], capture_output=True, text=True, check=True)
        places += [Path(prefix) / "pip.conf" for prefix in told.stdout.split()]
    asked = [sys.executable, "-m", "pip", "config", "debug"]
    for line in subprocess.run(
        asked, capture_output=True, text=True, check=False
    ).stdout.splitlines():
        name = line.strip().partition(", exists:")[0]
        if name.startswith("/"):
            places.append(Path(name))
    return sorted(set(places))


def state(paths: list[Path]) -> dict[str, str]:
    """Each file's bytes (hashed), mode, owner and time of change; "absent" where there is none."""
    told = {}
    for path in paths:
        if not path.exists():
            told[str(path)] = "absent"
        elif path.is_file():
            facts = path.stat()
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            told[str(path)] = f"{digest} {facts.st_mode:o} {facts.st_uid} {facts.st_mtime_ns}"
    return told


def everything_below(folder: Path, but: set[str]) -> list[Path]:
    found = []
    for where, folders, files in os.walk(folder):
        if Path(where) == folder:
            folders[:] = [name for name in folders if name not in but]
        found += [Path(where) / name for name in [*folders, *files]]
    return found


@pytest.fixture
def indexes(tmp_path: Path) -> Iterator[tuple[Index, Index]]:
    recipe = nvidia_index.build(tmp_path / "indexes", ("23.03",))
    nvidia_index.add(recipe, *registry.fetch(tmp_path / "real", *nvidia_index.real_files()))
    with (
        serve(recipe.nvidia, tmp_path / "n") as nvidia,
        serve(recipe.public, tmp_path / "p") as public,
    ):
        yield nvidia, public


@pytest.fixture
def home(tmp_path: Path, indexes: tuple[Index, Index]) -> Home:
    """A user who has configured pip, uv and a netrc."""
    made = Home(tmp_path / "home")
    for path, text in {
        ".config/pip/pip.conf": USERS.format(url=indexes[1].url),
        ".pip/pip.conf": "[install]\nno-compile = no\n",
        ".config/uv/uv.toml": "# nothing set\n",
        ".netrc": "machine index.invalid login someone password a-secret\n",
    }.items():
        (made.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (made.folder / path).write_text(text)
        (made.folder / path).chmod(0o600)
    return made


def test_install_and_uninstall_change_no_configuration(
    home: Home, indexes: tuple[Index, Index]
) -> None:
    python = need(8)
    # What envcheck writes of its own; everything else in the home has to stay.
    own = {"cache", "data", "state", "tmp"}
    paths = configuration(home.folder, [python, sys.executable])
    assert home.folder / ".config/pip/pip.conf" in paths
    before = state([*paths, *everything_below(home.folder, own)])

    # The public index is the one in the user's pip.conf: no --index names it.
    made = home.install(
        "--stack", "nvidia-tf1", "--release", "23.03", "--python", python, "--allow-no-gpu",
        "--index", f"nvidia={indexes[0].url}",
        PIP_CONFIG_FILE=str(home.folder / ".config/pip/pip.conf"),
    )  # fmt: skip
    assert indexes[1].asked("/simple/protobuf/")
    assert (made.prefix / "pip.conf").exists()
    assert state([*paths, *everything_below(home.folder, own)]) == before
    words = made.progress + str(made.told) + (made.prefix / "pip.conf").read_text()
    assert "a-secret" not in words and "extra-index-url" in words

    gone = home.envcheck("uninstall", "nvidia-tf1", "--yes")
    assert gone.returncode == 0, gone.stderr.decode()
    assert state([*paths, *everything_below(home.folder, own)]) == before
