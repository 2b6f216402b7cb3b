"""What is built: a wheel with one top-level name, every module and table; an sdist with all that is kept."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest
from processes import ran

from envcheck import __version__

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
        *package.rglob("*.css"),
        *package.rglob("*.js"),
        *(package / "fleet").rglob("*.yml"),
        *(package / "fleet").rglob("*.sh"),
    ]:
        assert f"envcheck/{path.relative_to(package).as_posix()}" in names
    assert "envcheck/install/pipeline.py" in names


def test_nothing_else_is_in_it(wheel: zipfile.ZipFile) -> None:
    for name in wheel.namelist():
        of_shells = name.startswith("envcheck/install/start/shell/")
        known = (
            name.endswith((".py", ".csv", ".toml", ".txt", ".template")) or ".dist-info/" in name
        )
        of_fleet = name.startswith("envcheck/fleet/") and name.endswith((".yml", ".sh"))
        of_pages = name.endswith((".css", ".js")) or "/templates/" in name
        demo = name.startswith("envcheck/data/demos/") and name.endswith(".json")
        assert known or of_shells or of_fleet or of_pages or demo, name
    assert "envcheck/install/start/shell/bash.sh" in wheel.namelist()


def test_the_licence_and_the_command_are_in_it(wheel: zipfile.ZipFile) -> None:
    info = f"envcheck_gpu-{__version__}.dist-info"
    assert b"Apache License" in wheel.read(f"{info}/licenses/LICENSE")
    assert b"envcheck = envcheck.__main__:main" in wheel.read(f"{info}/entry_points.txt")


def test_the_sdist_holds_what_is_committed(tmp_path: Path) -> None:
    """The tests run from it as they do in a checkout, and its links lead somewhere."""
    from hatchling.builders.sdist import SdistBuilder

    if shutil.which("git") is None:
        pytest.skip("there is no git on this machine")
    listed = ran(["git", "ls-files", "-z"], cwd=REPOSITORY)
    if listed.returncode:
        pytest.skip("this is no checkout of git")
    committed = {name for name in listed.stdout.decode().split("\0") if name}
    (path,) = SdistBuilder(str(REPOSITORY)).build(directory=str(tmp_path), versions=["standard"])
    with tarfile.open(path) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    there = {name for name in committed if (REPOSITORY / name).exists()}
    # The link is followed: what it leads to stands in its place.
    followed = {f"envcheck/{name}" if name.startswith("install/") else name for name in there}
    assert followed - held - {"envcheck/install", ".gitattributes"} == set()
