"""The Dockerfile of a lock: its packages on a plain base, and envcheck in an environment of its own.

uv installs from the lists of hashes beside the Dockerfile, and brings a Python that the base lacks.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from ... import __version__
from ...data import table
from ..catalogue.model import PUBLIC, Stack
from ..fit.gpu_rules import needed_driver
from ..lockfile import Lockfile
from . import template
from .requirement_lists import ENVCHECK, ITSELF, RequirementList

VENV = "/opt/venv"
OLDEST = (3, 8)  # that uv makes environments for
PYTHON = "3.12"  # for envcheck, where the stack's Python is too old
_ENVCHECK_NEEDS = (3, 10)
_ENVCHECK = "/opt/envcheck"
_LISTS = "/opt/lock"
_BUILD_TOOLS = "/tmp/build-tools"


def envcheck_python(python: str) -> str:
    """The Python that envcheck runs under in an image whose stack has this one ("3.8")."""
    return python if minor_numbers(python) >= _ENVCHECK_NEEDS else PYTHON


def minor_numbers(python: str) -> tuple[int, ...]:
    """ "3.8" as (3, 8)."""
    return tuple(int(part) for part in python.split("."))


def render(
    stack: Stack, lock: Lockfile, lists: list[RequirementList], digest: str = "", base: str = ""
) -> str:
    """The Dockerfile of a lock. Needs a Python of OLDEST or newer.

    digest: the lock's; without one it becomes a build argument. base: NAME@sha256:DIGEST; "": the pinned one.
    """
    created = f", locked {lock.created_at}" if lock.created_at else ""
    labels = {
        "org.opencontainers.image.title": lock.stack,
        "org.opencontainers.image.version": lock.release,
        "org.opencontainers.image.description": stack.title,
        "envcheck.stack": lock.stack,
        "envcheck.release": lock.release,
    }
    if lock.provided:
        labels["envcheck.provided"] = ",".join(sorted(lock.provided))
    builds = [one.sdist.build for one in lists if one.sdist]
    (pinned,) = (row["reference"] for row in table("image_bases") if row["use"] == "wheel")
    return template.render(
        "Dockerfile.j2",
        version=__version__,
        base=base or pinned,
        envcheck=[
            _venv(_ENVCHECK, envcheck_python(lock.python)),
            _pip(_ENVCHECK, ENVCHECK, "--only-binary :all:"),
            _pip(_ENVCHECK, ITSELF, f"--no-index --find-links {_LISTS}"),
            [f"rm {_LISTS}/envcheck_gpu-*.whl"],
        ],
        digest=digest,
        labels=labels,
        what=f"{lock.stack} {lock.release}{created}",
        tag=f"{lock.stack}:{lock.release}".replace("+", "-"),
        driver=_driver(stack, lock.release) if stack.gpu else "",
        indexes={_variable(o.index): o.url for o in lists if o.index != PUBLIC},
        venv=_venv(VENV, lock.python),
        installs=[
            [_pip(VENV, one.name, f"--only-binary :all:{_index(one)}")]
            for one in lists
            if one.use == "environment"
        ],
        programs=sorted({program for build in builds for program in build.programs}),
        builds=[*_builds(lists), [f"rm -rf {_BUILD_TOOLS}"]] if builds else [],
        variables={"VIRTUAL_ENV": VENV, **stack.environment},
    )


def _builds(lists: list[RequirementList]) -> Iterator[list[str]]:
    """What is built from source comes last, in one step."""
    for one in lists:
        if one.use == "building":
            how = f"--only-binary :all: --target {_BUILD_TOOLS}{_index(one)}"
            yield _pip(VENV, one.name, how)
        elif one.sdist:
            variables = {"PYTHONPATH": _BUILD_TOOLS, **one.sdist.build.environment}
            setting = " ".join(f"{key}={shlex.quote(value)}" for key, value in variables.items())
            how = f"--no-build-isolation --no-binary {one.sdist.name}{_index(one)}"
            yield _pip(VENV, one.name, how, setting)


def _venv(folder: str, python: str) -> list[str]:
    return [f"uv venv --python {python} {folder}"]


def _pip(folder: str, name: str, how: str, setting: str = "") -> list[str]:
    """A command in two lines that installs what is listed, and nothing without its hash."""
    pip = f"uv pip install --python {folder}/bin/python --no-deps --require-hashes"
    return [f"{setting} {pip}".lstrip(), f"{how} -r {_LISTS}/{name}"]


def _index(one: RequirementList) -> str:
    return "" if one.index == PUBLIC else f' --default-index "${_variable(one.index)}"'


def _variable(index: str) -> str:
    """The build argument that holds an index's address."""
    word = "".join(c if c.isascii() and c.isalnum() else "_" for c in index.upper())
    return f"{word}_INDEX_URL"


def _driver(stack: Stack, release: str) -> str:
    """The driver that the host needs: an image brings none."""
    found = next((one for one in stack.releases if one.release == release), None)
    needed = needed_driver(found) if found else ""
    driver = f"driver {needed} or newer" if needed else "a driver: which is not known"
    return f"{driver}, for CUDA {found.cuda}" if found and found.cuda and needed else driver
