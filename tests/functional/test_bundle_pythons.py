"""`envcheck bundle` for the Pythons of the machines that it goes to, and for machines without one."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from demo_stack import MINOR, TEXT, Demo, demo
from installing import Home
from processes import ran
from wheel_maker import stand_ins, wheel

from envcheck.data.system_pythons import system_pythons
from envcheck.install.catalogue.load import seed
from envcheck.install.export import own_wheel

SYSTEMS = {row.system: row.python for row in system_pythons()}
NEW = """
[[releases]]
release = "2.0"
version = "2.0"
python = ["3.12", "3.13", "3.14"]
source = "the tests"

[[releases]]
release = "1.0"
version = "1.0"
python = ["3.10", "3.11", "3.12", "3.13"]
source = "the tests"
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """A framework with a wheel for each Python, and with stand-ins for what envcheck itself needs."""
    folder = tmp_path_factory.mktemp("shop")
    with demo(folder) as running:
        for name, version in stand_ins(own_wheel.build().requires):
            wheel(running.files, name, version)
        for minor in ("3.10", "3.11", "3.12", "3.13", "3.14"):
            tag = f"cp{minor.replace('.', '')}"
            wheel(running.files, "per-python", "1", tags=f"{tag}-{tag}-manylinux_2_28_x86_64")
            for pin in seed(minor):
                name, _, version = pin.partition("==")
                wheel(running.files, name, version)
        for version in ("1.0", "2.0"):
            wheel(running.files, "new-framework", version, requires=["demo-lib>=1", "per-python"])
        running.index.refresh()
        stack = folder / "new.toml"
        stack.write_text(TEXT.format(distribution="new-framework", releases=NEW, more=""))
        yield Demo(running.index, running.files, stack)


def bundled(shop: Demo, home: Home, *words: str | Path, **changes: str) -> tuple[Path, str, Any]:
    """A bundle, what was printed, and its index. uv has no Python, unless the variables say where."""
    made = home.folder / "new"
    nothing = {"UV_PYTHON_DOWNLOADS_JSON_URL": str(pythons(home.folder, {}))}
    run = home.envcheck(
        "bundle", shop.stack, "--index", shop.index.url, "--output", made, *words,
        **(nothing | changes),
    )  # fmt: skip
    assert run.returncode == 0, run.stderr.decode()
    index = json.loads((made / "bundle.json").read_bytes())
    return made, run.stderr.decode() + run.stdout.decode(), index


def pythons(folder: Path, entries: dict[str, Any]) -> Path:
    """What uv can download, as its own list has it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "downloads.json"
    path.write_text(json.dumps(entries))
    return path


def test_without_options_it_is_for_the_newest_python_that_the_release_has_wheels_for(
    shop: Demo, tmp_path: Path
) -> None:
    made, told, index = bundled(shop, Home(tmp_path))
    assert (index["release"], index["python"], index["carries"]) == ("2.0", "3.14", "")
    assert set(index["pythons"]) == set(SYSTEMS.values())
    assert len(list(made.glob("files/per_python-*.whl"))) == 1
    assert "none in it: it has to be there" in told and "uv could not get Python 3.14" in told


def test_for_the_machines_of_snapshots(shop: Demo, tmp_path: Path) -> None:
    """The oldest C library of all of them decides."""
    home = Home(tmp_path)
    files: list[str | Path] = []
    for glibc in ("2.36", "2.27"):
        file = tmp_path / f"{glibc}.json"
        assert home.envcheck("collect", "--output", file).returncode == 0
        told = json.loads(file.read_bytes())
        told["machine"]["host"]["facts"]["glibc"] = glibc
        file.write_text(json.dumps(told))
        files += ["--for", file]
        words = ["bundle", shop.stack, "--index", shop.index.url, "--output", tmp_path / glibc]
        run = home.envcheck(*words, *files)
        assert run.returncode == (0 if glibc == "2.36" else 3), run.stderr.decode()
    assert "per-python" in run.stderr.decode(), "whose wheels need glibc 2.28"


def test_it_carries_an_interpreter_where_uv_can_get_one(shop: Demo, tmp_path: Path) -> None:
    """A stand-in for uv's download: an archive whose Python starts this one."""
    machine = platform.machine()
    name = f"cpython-{MINOR}.99-linux-{machine}-gnu"
    archive = standin_python(tmp_path)
    entry = {
        "name": "cpython", "arch": {"family": machine, "variant": None}, "os": "linux", "libc": "gnu",
        "major": 3, "minor": sys.version_info[1], "patch": 99, "prerelease": "", "variant": None,
        "url": archive.as_uri(), "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(), "build": "1",
    }  # fmt: skip
    downloads = pythons(tmp_path / "uv", {name: entry})
    made, told, index = bundled(
        shop, Home(tmp_path / "maker"), "--python", MINOR, "--release", "1.0",
        UV_PYTHON_DOWNLOADS_JSON_URL=str(downloads),
    )  # fmt: skip
    assert index["carries"] == name and f"{name}, " in told, told
    carried = made / "python" / f"{name}.tar.gz"
    assert carried.read_bytes() == archive.read_bytes()
    there = Home(tmp_path / "there")
    done = setup(made, there, programs(tmp_path / "bin"))
    unpacked = there.folder / "data/uv/python" / name / "bin/python"
    # Further than that it does not come with a stand-in for pip.
    assert unpacked.exists() and f"making {there.folder}/venv with" in done.stderr.decode()
    has_one = Home(tmp_path / "has one")
    path = programs(tmp_path / "with python")
    (path / f"python{MINOR}").symlink_to(sys.executable)
    done = setup(made, has_one, path)
    assert f"making {has_one.folder}/venv with" in done.stderr.decode()
    assert not (has_one.folder / "data/uv").exists()
    carried.write_bytes(carried.read_bytes()[:-1])
    done = setup(made, Home(tmp_path / "damaged"), tmp_path / "bin")
    assert done.returncode == 2 and b"is damaged: copy the bundle again" in done.stderr


def standin_python(folder: Path) -> Path:
    """As uv downloads one: a folder "python", whose programs start this Python here."""
    archive = folder / "python.tar.gz"
    script = f'#!/bin/sh\nexec {sys.executable} "$@"\n'.encode()
    with tarfile.open(archive, "w:gz") as tar:
        for program in ("python", "python3", f"python{MINOR}"):
            entry = tarfile.TarInfo(f"python/bin/{program}")
            entry.mode, entry.size = 0o755, len(script)
            tar.addfile(entry, io.BytesIO(script))
        data = Path(sysconfig.get_path("stdlib")).glob("_sysconfigdata_*.py")  # uv reads it
        for file in data:
            tar.add(file, f"python/lib/python{MINOR}/{file.name}")
    return archive


def programs(folder: Path) -> Path:
    """A PATH with a shell's programs, and no Python."""
    folder.mkdir()
    for name in [
        "sh",
        "dirname",
        "cut",
        "sha256sum",
        "mkdir",
        "mktemp",
        "tar",
        "gzip",
        "ln",
        "mv",
        "rmdir",
    ]:
        (folder / name).symlink_to(str(shutil.which(name)))
    return folder


def setup(bundle: Path, home: Home, path: Path) -> subprocess.CompletedProcess[bytes]:
    return ran(
        ["sh", bundle / "setup.sh", home.folder / "venv"], env={**home.variables, "PATH": str(path)}
    )
