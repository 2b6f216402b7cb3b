"""Dependency confusion: the attack works against plain pip and uv, and fails against one index a package.

NVIDIA's index and the public one hold the same names; what the public one's code does leaves a mark.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from cli import environment
from index_server import Index, serve
from index_site import Offer
from processes import ran
from resolving import choice, isolate, locked, stack, versions
from wheel_maker import sdist, wheel

from envcheck.exit_codes import Cannot
from envcheck.install.wheels import origin, uv_compile

_autouse = pytest.fixture(autouse=True)(isolate)


@dataclass
class Fight:
    nvidia: Index
    public: Index
    mark: Path


def attack(mark: Path) -> str:
    return f'open({str(mark)!r}, "w").write("the attacker was here")\n'


@contextmanager
def fight(folder: Path, *, source: bool = False) -> Iterator[Fight]:
    """source: the attacker's file is an sdist, whose setup.py is enough; else a wheel."""
    mark = folder / "mark"
    nvidia, public = folder / "nvidia", folder / "public"
    wheel(nvidia, "nvidia-tensorflow", "1.0", requires=["nvidia-tensorrt", "six", "keras"])
    wheel(nvidia, "nvidia-tensorrt", "8.5.1", requires=["nvidia-cublas"])
    wheel(nvidia, "nvidia-cublas", "11.0")
    wheel(nvidia, "six", "99.0")  # is none of NVIDIA's names
    wheel(public, "six", "1.16.0")
    wheel(
        public, "keras", "1.0", requires=["nvidia-cudnn"]
    )  # a claimed name, asked for from outside
    wheel(nvidia, "nvidia-cudnn", "8.0")
    modules = {"nvidia_tensorrt.py": attack(mark)}
    code = attack(mark) + (
        "from setuptools import setup\n"
        "setup(name='nvidia-tensorrt', version='99.0.0', py_modules=['nvidia_tensorrt'])\n"
    )
    for name in ("nvidia-tensorrt", "nvidia-cublas", "nvidia-cudnn", "nvidia-tensorflow"):
        if source:
            sdist(public, name, "99.0.0", setup=code, modules=modules)
        else:
            wheel(public, name, "99.0.0", modules=modules)
    plain = Offer(json=False)  # pip 23.0 stumbles over the JSON of an index with metadata files
    with (
        serve(nvidia, folder / "nvidia-index", offer=plain) as first,
        serve(public, folder / "public-index", offer=plain) as second,
    ):
        yield Fight(first, second, mark)


def run(*argv: str | Path) -> subprocess.CompletedProcess[str]:
    return ran(list(map(str, argv)), env=environment(), text=True)


@pytest.mark.parametrize("source", [False, True], ids=["wheel", "sdist"])
def test_each_package_comes_from_its_own_index(tmp_path: Path, source: bool) -> None:
    """Needed by NVIDIA's packages or by others, once or through others; and six is not NVIDIA's."""
    with fight(tmp_path, source=source) as there:
        chosen = choice(stack("nvidia-tensorflow=={version}", there.nvidia.url))
        lock = locked(chosen, there.public.url)
        assert versions(lock) == {
            "keras": "1.0",
            "nvidia-cublas": "11.0",
            "nvidia-cudnn": "8.0",
            "nvidia-tensorflow": "1.0",
            "nvidia-tensorrt": "8.5.1",
            "six": "1.16.0",
        }
        for package in lock.packages:
            ours = there.nvidia if package.name.startswith("nvidia") else there.public
            assert package.index == ours.url and package.file.url.startswith(ours.origin)
        assert not there.mark.exists()
        whole = [r for r in there.public.asked("99.0.0") if not r.path.endswith(".metadata")]
        assert not [r for r in whole if r.sent and not r.range]


def test_a_name_that_nobody_registered_is_not_taken_from_who_did(tmp_path: Path) -> None:
    with fight(tmp_path) as there:
        wheel(tmp_path / "nvidia", "nvidia-needing", "1.0", requires=["nvidia-cublas-cu117"])
        wheel(tmp_path / "public", "nvidia-cublas-cu117", "11.10.1.25")
        there.nvidia.refresh()
        there.public.refresh()
        chosen = choice(stack("nvidia-needing=={version}", there.nvidia.url))
        with pytest.raises(Cannot) as caught:
            locked(chosen, there.public.url)
        assert str(caught.value) == (
            f"the nvidia index ({there.nvidia.url}) has no nvidia-cublas-cu117 that fits, and"
            f" {there.public.url} offers 11.10.1.25 under that name; nvidia-cublas-cu117 is taken from no"
            " other index"
        )
        assert not there.public.asked("/files/nvidia_cublas_cu117-11.10.1.25-py3-none-any.whl?")


def test_a_dependency_by_address_is_refused(tmp_path: Path) -> None:
    with fight(tmp_path) as there:
        evil = f"six @ {there.public.origin}/files/nvidia_tensorrt-99.0.0-py3-none-any.whl"
        wheel(tmp_path / "nvidia", "nvidia-needing", "1.0", requires=[evil])
        there.nvidia.refresh()
        with pytest.raises(Exception, match="URL dependenc"):
            locked(choice(stack("nvidia-needing=={version}", there.nvidia.url)), there.public.url)
        assert not there.public.asked("/files/")


def test_the_users_further_indexes_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fight(tmp_path) as there:
        settings = tmp_path / "home" / ".config" / "uv" / "uv.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text(
            f'index-strategy = "unsafe-best-match"\nindex-url = "{there.nvidia.url}"\n'
        )
        for name, value in {
            "HOME": str(tmp_path / "home"),
            "XDG_CONFIG_HOME": str(tmp_path / "home" / ".config"),
            "UV_INDEX": there.public.url,
            "UV_EXTRA_INDEX_URL": there.public.url,
            "UV_INDEX_STRATEGY": "unsafe-best-match",
            "UV_FIND_LINKS": str(tmp_path / "public"),
            "UV_CONSTRAINT": str(tmp_path / "no such file"),
            "UV_OFFLINE": "1",
        }.items():
            monkeypatch.setenv(name, value)
        lock = locked(
            choice(stack("nvidia-tensorflow=={version}", there.nvidia.url)), there.public.url
        )
        assert versions(lock)["nvidia-tensorrt"] == "8.5.1" and versions(lock)["six"] == "1.16.0"


def test_a_resolver_that_does_not_obey_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What uv answers is held against the claims, whatever uv was told."""
    asked, name = uv_compile.compile_, "nvidia-tensorrt"

    def disobeying(*arguments: object) -> list[uv_compile.Pin]:
        pins = asked(*arguments)  # type: ignore[arg-type]
        wrong = there.public.url
        return [
            msgspec.structs.replace(pin, index=wrong) if pin.name == name else pin for pin in pins
        ]

    monkeypatch.setattr(uv_compile, "compile_", disobeying)
    with fight(tmp_path) as there:
        chosen = choice(stack("nvidia-tensorflow=={version}", there.nvidia.url))
        with pytest.raises(Cannot, match=name):
            locked(chosen, there.public.url)
        # The test can fail: without the check it is locked.
        monkeypatch.setattr(origin, "check", lambda pins, indexes: None)
        assert name in versions(locked(chosen, there.public.url))
