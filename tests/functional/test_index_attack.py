"""Dependency confusion: the attack works against plain pip, and fails against envcheck's one index a package.

Two indexes fight over nvidia-tensorrt: NVIDIA's has 8.5.1, the public one 99.0.0, whose code leaves a mark.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import pythons
from index_server import Index, serve
from index_site import Offer
from index_worlds import opened, pip, resolve, stack
from wheel_maker import sdist, wheel

REAL = "nvidia_tensorrt-8.5.1-py3-none-any.whl"


@dataclass
class Fight:
    nvidia: Index
    public: Index
    mark: Path


def attack(mark: Path) -> str:
    return f'open({str(mark)!r}, "w").write("the attacker was here")\n'


@contextmanager
def fight(folder: Path, *, source: bool) -> Iterator[Fight]:
    """source: the attacker's file is an sdist, whose setup.py is enough; else a wheel."""
    mark = folder / "mark"
    nvidia, public = folder / "nvidia", folder / "public"
    wheel(nvidia, "nvidia-tensorflow", "1.15.5", requires=["nvidia-tensorrt", "six"])
    wheel(nvidia, "nvidia-tensorrt", "8.5.1")
    wheel(public, "six", "1.16.0")
    # Names that NVIDIA's wheels ask for, that nobody has registered: here an attacker has.
    wheel(public, "nvidia-cublas-cu117", "11.10.1.25")
    modules = {"nvidia_tensorrt.py": attack(mark)}
    if source:
        code = attack(mark) + (
            "from setuptools import setup\n"
            "setup(name='nvidia-tensorrt', version='99.0.0', py_modules=['nvidia_tensorrt'])\n"
        )
        sdist(public, "nvidia-tensorrt", "99.0.0", setup=code, modules=modules)
    else:
        wheel(public, "nvidia-tensorrt", "99.0.0", modules=modules)
    plain = Offer(json=False)  # pip 23.0 stumbles over the JSON of an index with metadata files
    with (
        serve(nvidia, folder / "nvidia-index", offer=plain) as first,
        serve(public, folder / "public-index", offer=plain) as second,
    ):
        yield Fight(first, second, mark)


def download(python: str | Path, folder: Path, *indexes: str) -> list[str]:
    """What pip downloads for nvidia-tensorflow."""
    result = pip(
        python, "download", "--no-cache-dir", "--no-build-isolation", *indexes,
        f"--dest={folder / 'got'}", "nvidia-tensorflow",
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    return sorted(path.name for path in (folder / "got").iterdir())


def test_plain_pip_takes_the_attackers_wheel_and_runs_it(tmp_path: Path) -> None:
    with fight(tmp_path, source=False) as there:
        target = tmp_path / "target"
        result = pip(
            sys.executable, "install", "--no-cache-dir", f"--target={target}",
            f"--index-url={there.nvidia.url}", f"--extra-index-url={there.public.url}",
            "nvidia-tensorflow",
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        assert (target / "nvidia_tensorrt-99.0.0.dist-info").is_dir()
        code = f"import sys; sys.path.insert(0, {str(target)!r}); import nvidia_tensorrt"
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
        assert there.mark.exists()


@pytest.fixture(scope="module")
def with_setuptools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python whose venv still brings setuptools."""
    python = next(filter(None, map(pythons.find, (8, 9, 10, 11))), None) or pythons.need(8)
    folder = tmp_path_factory.mktemp("pip")
    subprocess.run([python, "-m", "venv", str(folder)], check=True, timeout=120)
    return folder / "bin" / "python"


def test_plain_pip_runs_the_attackers_setup_by_downloading(
    tmp_path: Path, with_setuptools: Path
) -> None:
    with fight(tmp_path, source=True) as there:
        urls = (f"--index-url={there.nvidia.url}", f"--extra-index-url={there.public.url}")
        assert "nvidia-tensorrt-99.0.0.tar.gz" in download(with_setuptools, tmp_path, *urls)
        assert there.mark.exists()


@pytest.mark.parametrize("source", [False, True], ids=["wheel", "sdist"])
def test_through_envcheck_uv_gets_nvidias(tmp_path: Path, source: bool) -> None:
    with (
        fight(tmp_path, source=source) as there,
        opened(there.public.url, tmp_path, stack(there.nvidia.url)) as index,
    ):
        result = resolve(index.server, tmp_path, "nvidia-tensorflow")
        assert result.returncode == 0, result.stderr
        lock = (tmp_path / "pylock.toml").read_text()
        assert REAL in lock and "99.0.0" not in lock
        assert "six-1.16.0-py3-none-any.whl" in lock  # from the public index
        assert not there.mark.exists()
        assert not there.public.asked("nvidia")  # it is not even asked


@pytest.mark.parametrize("source", [False, True], ids=["wheel", "sdist"])
def test_through_envcheck_pip_gets_nvidias(
    tmp_path: Path, with_setuptools: Path, source: bool
) -> None:
    with (
        fight(tmp_path, source=source) as there,
        opened(there.public.url, tmp_path, stack(there.nvidia.url)) as index,
    ):
        got = download(with_setuptools, tmp_path, f"--index-url={index.server.url}")
        assert got == [
            "nvidia_tensorflow-1.15.5-py3-none-any.whl",
            REAL,
            "six-1.16.0-py3-none-any.whl",
        ]
        assert not there.mark.exists()


def test_a_name_that_nobody_registered_is_not_taken_from_who_did(tmp_path: Path) -> None:
    with (
        fight(tmp_path, source=False) as there,
        opened(there.public.url, tmp_path, stack(there.nvidia.url)) as index,
    ):
        assert resolve(index.server, tmp_path, "nvidia-cublas-cu117").returncode != 0
        assert index.index.explain("nvidia-cublas-cu117") == (
            f"the nvidia index ({there.nvidia.url}) has no nvidia-cublas-cu117; "
            "nvidia-cublas-cu117 is taken from no other index"
        )
        assert not there.public.asked("nvidia")


@pytest.mark.parametrize("source", [False, True], ids=["wheel", "sdist"])
def test_a_stack_without_nvidias_index_refuses_the_placeholder(
    tmp_path: Path, source: bool
) -> None:
    """Where NVIDIA's names come from the public index, 99.0.0 is refused for what it is."""
    with fight(tmp_path, source=source) as there, opened(there.public.url, tmp_path) as index:
        assert resolve(index.server, tmp_path, "nvidia-tensorrt").returncode != 0
        said = index.index.explain("nvidia-tensorrt")
        assert "99.0.0 (not NVIDIA's software: it outranks every real version" in said
        assert not there.mark.exists()
