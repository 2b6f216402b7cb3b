"""Installing a lock: exactly it, from nowhere else, and what an error then says."""

from __future__ import annotations

import os
from pathlib import Path

import locked_folder
import pytest
from index_server import serve
from locked_folder import bundled, lock_of
from resolving import MINOR, PYTHON, stack
from wheel_maker import wheel

from envcheck.install.lockfile import Lockfile
from envcheck.install.wheels import environment

STACK = stack("alpha=={version}")


@pytest.fixture(autouse=True)
def _places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    bundled("pip", folder)
    wheel(folder, "alpha", "1.0", requires=["beta"], payload=1 << 20)
    wheel(folder, "beta", "2.0+nv23.3", scripts={"say-beta": "beta:__name__.__len__"})
    return folder


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = tmp_path / "an env" / "1.0"
    environment.create(made, PYTHON)
    return made


def install(directory: Path, lock: Lockfile) -> None:
    locked_folder.install(directory, lock, STACK)


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def installed(directory: Path) -> list[str]:
    (site,) = directory.glob("lib/python3.*/site-packages")
    return sorted(path.name.removesuffix(".dist-info") for path in site.glob("*.dist-info"))


def test_the_environment_holds_the_lock_and_nothing_else(directory: Path, files: Path) -> None:
    lock = lock_of(files, MINOR)
    install(directory, lock)
    pip = next(package for package in lock.packages if package.name == "pip")
    assert installed(directory) == ["alpha-1.0", "beta-2.0+nv23.3", f"pip-{pip.version}"]
    assert (directory / ".envcheck" / "logs" / "install.log").stat().st_size
    left = {path.name for path in (directory / ".envcheck").iterdir()}
    assert left == {"logs"}


def test_nothing_of_the_users_configuration_reaches_it(
    directory: Path, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attack = wheel(tmp_path / "attack", "alpha", "99.0.0")
    home = tmp_path / "home"
    (home / ".config" / "pip").mkdir(parents=True)
    (home / ".config" / "uv").mkdir()
    with serve(tmp_path / "attack", tmp_path / "index") as index:
        (home / ".config" / "pip" / "pip.conf").write_text(
            f"[global]\nextra-index-url = {index.url}\nfind-links = {attack.parent}\n"
            f"target = {tmp_path}/other\n"
        )
        (home / ".config" / "uv" / "uv.toml").write_text(f'extra-index-url = ["{index.url}"]\n')
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
        for name, value in {
            "PIP_EXTRA_INDEX_URL": index.url,
            "PIP_NO_DEPS": "0",
            "PIP_TARGET": str(tmp_path / "target"),
            "UV_INDEX": index.url,
            "UV_FIND_LINKS": str(attack.parent),
            "UV_OFFLINE": "1",
            "UV_LINK_MODE": "symlink",
            "PYTHONPATH": str(tmp_path),
            "https_proxy": index.origin,
            "http_proxy": index.origin,
        }.items():
            monkeypatch.setenv(name, value)
        before = contents(home / ".config")
        install(directory, lock_of(files, MINOR))
        environment.configure(directory, STACK, lock_of(files, MINOR), index.url)
        assert index.asked("/simple/") == []
        assert contents(home / ".config") == before  # no configuration of the user's was written to
    assert "alpha-1.0" in installed(directory)
    assert not (tmp_path / "target").exists() and not (tmp_path / "other").exists()
    assert not [path for path in directory.rglob("alpha.py") if path.is_symlink()]
