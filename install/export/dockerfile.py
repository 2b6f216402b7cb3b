"""Dockerfiles: a lock's packages on a plain base, or NVIDIA's image with envcheck in it; one template.

uv installs from the lists of hashes beside the Dockerfile, and brings a Python that the base lacks.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from string import Template

import msgspec

from ... import safe_text
from ...data import table
from ..catalogue.model import PUBLIC, Stack
from ..fit.gpu_rules import needed_driver
from ..lockfile import Lockfile
from .context_writer import UV
from .requirement_lists import ENVCHECK, ITSELF, RequirementList, index_of, requirement_lists

VENV = "/opt/venv"
OLDEST = (3, 8)  # that uv makes environments for
PYTHON = "3.12"  # for envcheck, where the stack's Python is too old
_ENVCHECK_NEEDS = (3, 10)
_ENVCHECK = "/opt/envcheck"
_LISTS = "/opt/lock"
_BUILD_TOOLS = "/tmp/build-tools"


class _Template(Template):
    delimiter = "@"


class DockerfileOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a Dockerfile says beside its stack and lock."""

    envcheck: str  # the version that wrote it
    digest: str | None  # sha256 of the lock's text; None: a build argument says it
    base: str = ""  # NAME@sha256:DIGEST; "": the pinned one


def envcheck_python(python: str) -> str:
    """The Python that envcheck runs under in an image whose stack has this one ("3.8")."""
    return python if _numbers(python) >= _ENVCHECK_NEEDS else PYTHON


def render(stack: Stack, lock: Lockfile, options: DockerfileOptions) -> str:
    """The Dockerfile of a lock, which is of that stack. Needs a Python of OLDEST or newer."""
    lists = requirement_lists(stack, lock)
    created = f", locked {lock.created_at}" if lock.created_at else ""
    tag = f"{lock.stack}:{lock.release}".replace("+", "-")
    labels = {
        "org.opencontainers.image.title": _quoted(lock.stack),
        "org.opencontainers.image.version": _quoted(lock.release),
        "org.opencontainers.image.description": _quoted(stack.title),
        "envcheck.stack": _quoted(lock.stack),
        "envcheck.release": _quoted(lock.release),
    }
    if lock.provided:
        labels["envcheck.provided"] = _quoted(",".join(sorted(lock.provided)))
    values = {"VIRTUAL_ENV": VENV, **stack.environment}
    return _filled(
        options,
        base=options.base or _base("wheel"),
        what=f"{lock.stack} {lock.release}{created}",
        tag=tag,
        about=[
            "# Every package is one file that its sha256 names, and comes from one index.",
            *_host(stack, lock, tag),
        ],
        indexes=[
            f"ARG {_variable(name)}={_value(url)}" for name, url in _indexes(stack, lock).items()
        ],
        packages=_packages(lists, lock.python),
        python=envcheck_python(lock.python),
        environment=[
            "# As activation would set it, and nothing else.",
            *(f"ENV {key}={_quoted(value)}" for key, value in values.items()),
            f"ENV PATH={VENV}/bin:$PATH",
        ],
        labels=labels,
        command='CMD ["python"]',
    )


def render_over_image(options: DockerfileOptions) -> str:
    """The Dockerfile of an image that has its framework already, with envcheck in it."""
    return _filled(
        options,
        base=options.base or _base("ngc"),
        what="an NGC image with envcheck in it",
        tag="tensorflow-envcheck",
        about=[
            "#   docker run --rm --gpus all tensorflow-envcheck envcheck doctor --target /usr/bin/python3",
            "# Any of NVIDIA's images; its entrypoint and command stay, user and working directory are new.",
        ],
        python=PYTHON,
    )


def _filled(
    options: DockerfileOptions,
    *,
    base: str,
    what: str,
    tag: str,
    about: list[str],
    python: str,
    indexes: list[str] | None = None,
    packages: list[str] | None = None,
    environment: list[str] | None = None,
    labels: Mapping[str, str] | None = None,
    command: str = "",
) -> str:
    """The template with these lines in it. Whatever a line quotes, it stays one line."""
    lock = f'"sha256:{options.digest}"' if options.digest else '"$LOCK"'
    labels = {
        **(labels or {}),
        "org.opencontainers.image.source": '"$SOURCE"',
        "org.opencontainers.image.revision": '"$REVISION"',
        "org.opencontainers.image.base.name": '"$BASE"',
        "org.opencontainers.image.base.digest": '"$BASE_DIGEST"',
        "envcheck.version": _quoted(options.envcheck),
        "envcheck.lock": lock,
    }
    unknown = (
        [] if options.digest else ["# sha256:… of the lock that the lists are of.", "ARG LOCK="]
    )
    blocks = {
        "version": [options.envcheck],
        "what": [what],
        "tag": [tag],
        "about": about,
        "base": [_value(base)],
        "digest": [_value(base.partition("@")[2])],
        "indexes": indexes or [],
        "packages": packages or [],
        "envcheck": [
            *_run(
                _venv(_ENVCHECK, python),
                *_pip(_ENVCHECK, ENVCHECK, "--only-binary :all:"),
                *_pip(_ENVCHECK, ITSELF, f"--no-index --find-links {_LISTS}"),
            )
        ],
        "environment": environment or [],
        "labels": [*unknown, *_label(labels)],
        "command": [command],
    }
    template = _Template(
        (Path(__file__).parent / "Dockerfile.template").read_text(encoding="utf-8")
    )
    filled = {name: "\n".join(map(safe_text.escaped, lines)) for name, lines in blocks.items()}
    return re.sub(r"\n{3,}", "\n\n", template.substitute(filled)).strip() + "\n"


def _packages(lists: list[RequirementList], python: str) -> list[str]:
    """The environment with everything that the lock names; what is built comes last, in one step."""
    lines = [
        "# Every package and its sha256; the environment. A Python that BASE lacks is uv's.",
        f"COPY requirements*.txt {_LISTS}/",
        *_run(_venv(VENV, python)),
    ]
    for one in lists:
        if one.use == "environment":
            lines += _run(*_pip(VENV, one.name, f"--only-binary :all:{_index(one)}"))
    sdists = [one for one in lists if one.sdist]
    if not sdists:
        return lines
    programs = sorted(
        {program for one in sdists if one.sdist for program in one.sdist.build.programs}
    )
    if programs:
        lines += [
            "RUN apt-get update \\",
            f" && apt-get install -y --no-install-recommends {' '.join(programs)} \\",
            " && rm -rf /var/lib/apt/lists/*",
        ]
    lines.append("# Built from the source distributions that the stack names, with pinned tools.")
    commands: list[str] = []
    for one in lists:
        if one.use == "building":
            how = f"--only-binary :all: --target {_BUILD_TOOLS}{_index(one)}"
            commands += _pip(VENV, one.name, how)
    for one in sdists:
        assert one.sdist is not None, "it is one of these"
        variables = {"PYTHONPATH": _BUILD_TOOLS, **one.sdist.build.environment}
        setting = " ".join(f"{key}={shlex.quote(value)}" for key, value in variables.items())
        how = f"--no-build-isolation --no-binary {one.packages[0].name}{_index(one)}"
        commands += _pip(VENV, one.name, how, setting)
    return [*lines, *_run(*commands, f"rm -rf {_BUILD_TOOLS}")]


def _venv(folder: str, python: str) -> str:
    return f"uv venv --python {python} {folder}"


def _pip(folder: str, name: str, how: str, setting: str = "") -> list[str]:
    """A command in two lines that installs what is listed, and nothing without its hash."""
    pip = f"uv pip install --python {folder}/bin/python --no-deps --require-hashes"
    return [f"{setting} {pip}".lstrip(), f"  {how} -r {_LISTS}/{name}"]


def _run(*lines: str) -> list[str]:
    """One RUN with uv. A line that begins with a space goes on with the command before it."""
    mounts = f"source={UV},target=/usr/bin/uv --mount=type=cache,target=/var/cache/uv"
    told = [f"RUN --mount=type=bind,{mounts}", f"    {lines[0]}"]
    told += [f"    {line}" if line.startswith(" ") else f" && {line}" for line in lines[1:]]
    return [*(f"{line} \\" for line in told[:-1]), told[-1]]


def _index(one: RequirementList) -> str:
    return "" if one.index == PUBLIC else f' --default-index "${_variable(one.index)}"'


def _indexes(stack: Stack, lock: Lockfile) -> dict[str, str]:
    """The stack's own indexes that the lock uses: name → URL that it was locked from."""
    used: dict[str, str] = {}
    for package in [*lock.packages, *lock.building]:
        name = index_of(stack, package)
        if name != PUBLIC:
            used.setdefault(name, package.index)
    return used


def _host(stack: Stack, lock: Lockfile, tag: str) -> list[str]:
    """What the machine needs that it will run on: an image brings no driver."""
    if not stack.gpu:
        return []
    cuda = next((one.cuda for one in stack.releases if one.release == lock.release), "")
    needs = needed_driver(cuda)
    told = f"driver {needs} or newer, for CUDA {cuda}" if needs else "a driver: which is not known"
    return [
        f"# The host needs NVIDIA's container toolkit and {told}.",
        f"#   docker run --rm --gpus all {tag} python -c 'import tensorflow'",
    ]


def _base(use: str) -> str:
    return next(row["reference"] for row in table("image_bases") if row["use"] == use)


def _numbers(python: str) -> tuple[int, ...]:
    return tuple(int(part) for part in python.split("."))


def _quoted(text: str) -> str:
    """A value as a Dockerfile reads it: nothing in it is a variable or ends the string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
    return f'"{escaped}"'


def _value(text: str) -> str:
    """A build argument's default, quoted where that is needed."""
    plain = all(c.isascii() and (c.isalnum() or c in "_.:/@%+=,~-") for c in text)
    return text if plain else _quoted(text)


def _label(labels: Mapping[str, str]) -> list[str]:
    lines = [f"{key}={value}" for key, value in labels.items()]
    lines = [f"LABEL {lines[0]}", *(f"      {line}" for line in lines[1:])]
    return [*(f"{line} \\" for line in lines[:-1]), lines[-1]]


def _variable(index: str) -> str:
    """The build argument that holds an index's address."""
    word = "".join(c if c.isascii() and c.isalnum() else "_" for c in index.upper())
    return f"{word}_INDEX_URL"
