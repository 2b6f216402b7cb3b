"""Building what has no wheel: a C extension, flags, one that imports what it is built for, failures."""

from __future__ import annotations

import shutil
from pathlib import Path

import locked_folder
import pytest
from cli import environment as clean_environment
from locked_folder import bundled, lock_of
from processes import ran
from resolving import MINOR, PYTHON, isolate, stack
from wheel_maker import sdist, sha256

from envcheck.exit_codes import Cannot, PutBack
from envcheck.install.catalogue.model import Build, Sdist, Stack
from envcheck.install.wheels import environment, sdists

EXTENSION = """
#include <Python.h>
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "tiny", NULL, -1, NULL};
PyMODINIT_FUNC PyInit_tiny(void) {
    PyObject *made = PyModule_Create(&module);
    PyModule_AddIntConstant(made, "flag", TINY_FLAG);
    return made;
}
"""
EXTENSION_SETUP = """
import os
from setuptools import Extension, setup
macros = [("TINY_FLAG", os.environ["TINY_FLAG"])]
setup(name="tiny", version="1.0", ext_modules=[Extension("tiny", ["tiny.c"], define_macros=macros)])
"""


_autouse = pytest.fixture(autouse=True)(isolate)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    bundled("pip", tmp_path / "files")
    return tmp_path / "files"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = tmp_path / "an env"
    environment.create(made, PYTHON)
    return made


def stack_with(path: Path, build: Build) -> Stack:
    name, _, version = path.name.removesuffix(".tar.gz").rpartition("-")
    allowed = Sdist(
        name=name,
        version=version,
        sha256=sha256(path),
        why="has no wheel",
        source="made up",
        build=build,
    )
    return stack("x", sdists=[allowed])


def install(directory: Path, files: Path, of: Stack, *building: str) -> None:
    locked_folder.install(directory, lock_of(files, MINOR, building), of)


def say(directory: Path, expression: str) -> str:
    argv = [directory / "bin" / "python", "-c", f"print({expression})"]
    result = ran(argv, text=True, env=clean_environment())
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def tools(files: Path) -> str:
    """setuptools among the files; the requirement that pins it."""
    return "setuptools==" + bundled("setuptools", files).name.split("-")[1]


def test_a_c_extension_with_flags(directory: Path, files: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler on this machine")
    path = sdist(files, "tiny", "1.0", modules={"tiny.c": EXTENSION}, setup=EXTENSION_SETUP)
    pin = tools(files)
    # The second time, nothing of the first build may be taken from uv's cache.
    for flag in ("7", "8"):
        build = Build(requires=[pin], environment={"TINY_FLAG": flag}, programs=["cc"])
        shutil.rmtree(directory)
        environment.create(directory, PYTHON)
        install(directory, files, stack_with(path, build), "setuptools")
        assert say(directory, "__import__('tiny').flag") == flag
    assert say(directory, "__import__('importlib.util').util.find_spec('setuptools')") == "None"
    log = (directory / ".envcheck" / "logs" / "build-tiny.log").read_text()
    assert "tiny.c" in log
    assert {path.name for path in (directory / ".envcheck").iterdir()} == {"logs"}


def test_a_build_that_fails_says_its_last_words(directory: Path, files: Path) -> None:
    setup = "import sys\nprint('configuring')\nsys.exit('CMake Error: no MPI for miles around')\n"
    path = sdist(files, "broken", "1.0", setup=setup)
    build = Build(requires=[tools(files)])
    with pytest.raises(PutBack) as caught:
        install(directory, files, stack_with(path, build), "setuptools")
    assert str(caught.value) == "building broken 1.0 failed: CMake Error: no MPI for miles around"
    log, _, more = caught.value.hint.removeprefix("its log is ").partition("; ")
    assert "configuring" in Path(log).read_text()
    assert "no space" in more


def test_what_a_build_needs_is_looked_for_first(files: Path) -> None:
    path = sdist(files, "tiny", "1.0")
    of = stack_with(path, Build(programs=["cmake-that-is-not-here", "sh"]))
    with pytest.raises(Cannot, match=r"^tiny 1\.0 is built .* no cmake-that-is-not-here$"):
        sdists.check_programs(lock_of(files, MINOR), of)


def test_an_sdist_that_is_not_allowed_is_not_built(directory: Path, files: Path) -> None:
    path = sdist(files, "evil", "1.0", setup=f"open({str(files / 'ran')!r}, 'w')\n")
    of = stack_with(path, Build())
    sdist(files, "evil", "1.0", setup=f"open({str(files / 'ran')!r}, 'w')  # other bytes\n")
    with pytest.raises(Cannot, match="the stack allows the one with"):
        install(directory, files, of)
    assert not (files / "ran").exists()
