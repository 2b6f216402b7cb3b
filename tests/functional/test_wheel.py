"""What the built wheel holds: one top-level name, every module, every table."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from envcheck import __version__
from envcheck.cli.demo import NAMES

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    from hatchling.builders.wheel import WheelBuilder

    folder = tmp_path_factory.mktemp("wheel")
    (path,) = WheelBuilder(str(REPOSITORY)).build(directory=str(folder), versions=["standard"])
    return zipfile.ZipFile(path)


def test_there_is_one_top_level_name(wheel: zipfile.ZipFile) -> None:
    tops = {name.partition("/")[0] for name in wheel.namelist()}
    assert tops == {"envcheck", f"envcheck_gpu-{__version__}.dist-info"}


def test_every_module_and_table_is_in_it_once(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()
    assert len(names) == len(set(names))
    package = REPOSITORY / "envcheck"
    for path in [
        *package.rglob("*.py"),
        *(package / "install").rglob("*.py"),
        *(package / "install").rglob("*.toml"),
        *package.rglob("*.csv"),
        *package.rglob("*.txt"),
        *package.rglob("*.json"),
    ]:
        assert f"envcheck/{path.relative_to(package).as_posix()}" in names
    assert "envcheck/install/last.py" in names


def test_nothing_else_is_in_it(wheel: zipfile.ZipFile) -> None:
    for name in wheel.namelist():
        of_shells = name.startswith("envcheck/install/start/shell/")
        known = name.endswith((".py", ".csv", ".toml", ".txt")) or ".dist-info/" in name
        demo = name.startswith("envcheck/data/demos/") and name.endswith(".json")
        assert known or of_shells or demo, name
    assert "envcheck/install/start/shell/.zshrc" in wheel.namelist(), "a file with a dot in front"


def test_the_licence_and_the_command_are_in_it(wheel: zipfile.ZipFile) -> None:
    info = f"envcheck_gpu-{__version__}.dist-info"
    assert b"Apache License" in wheel.read(f"{info}/licenses/LICENSE")
    assert b"envcheck = envcheck.__main__:main" in wheel.read(f"{info}/entry_points.txt")


def test_the_demos_are_in_it_and_small(wheel: zipfile.ZipFile) -> None:
    demos = [one for one in wheel.infolist() if one.filename.startswith("envcheck/data/demos/")]
    assert {Path(one.filename).stem for one in demos} == set(NAMES)
    assert sum(one.compress_size for one in demos) < 100_000
