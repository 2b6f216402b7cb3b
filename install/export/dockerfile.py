"""Dockerfiles: a lock's packages on a plain base, or NVIDIA's image with envcheck in it; one template.

uv installs from the lists of hashes beside the Dockerfile, and brings a Python that the base lacks.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from ... import __version__, safe_text
from ...data import table
from ..catalogue.model import PUBLIC, Stack
from ..fit.gpu_rules import needed_driver
from . import template
from .context_writer import UV
from .requirement_lists import ENVCHECK, ITSELF, LockedLists, RequirementList

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


def render(locked: LockedLists, base: str = "") -> str:
    """The Dockerfile of a lock. Needs a Python of OLDEST or newer.

    base: NAME@sha256:DIGEST; "": the pinned one. Where the lock has no digest, a build argument says it.
    """
    stack, of = locked.stack, locked.of
    created = f", locked {of.created_at}" if of.created_at else ""
    tag = f"{of.stack}:{of.release}".replace("+", "-")
    labels = {
        "org.opencontainers.image.title": _quoted(of.stack),
        "org.opencontainers.image.version": _quoted(of.release),
        "org.opencontainers.image.description": _quoted(stack.title),
        "envcheck.stack": _quoted(of.stack),
        "envcheck.release": _quoted(of.release),
    }
    if of.provided:
        labels["envcheck.provided"] = _quoted(",".join(of.provided))
    urls = {one.index: one.url for one in locked.lists if one.index != PUBLIC}
    variables = {"VIRTUAL_ENV": VENV, **stack.environment}
    return _filled(
        base or _base("wheel"),
        envcheck_python(of.python),
        of.digest,
        labels,
        what=[f"{of.stack} {of.release}{created}"],
        tag=[tag],
        about=[
            "# Every package is one file that its sha256 names, and comes from one index.",
            *_host(stack, of.release, tag),
        ],
        indexes=[f"ARG {_variable(name)}={_value(url)}" for name, url in urls.items()],
        packages=_packages(locked.lists, of.python),
        environment=[
            "# As activation would set it, and nothing else.",
            *(f"ENV {key}={_quoted(value)}" for key, value in variables.items()),
            f"ENV PATH={VENV}/bin:$PATH",
        ],
        command=['CMD ["python"]'],
    )


def render_over_image(digest: str, base: str = "") -> str:
    """The Dockerfile of an image that has its framework already, with envcheck in it.

    digest: of the lock of what envcheck needs. base: as above.
    """
    return _filled(
        base or _base("ngc"),
        PYTHON,
        digest,
        {},
        what=["an NGC image with envcheck in it"],
        tag=["tensorflow-envcheck"],
        about=[
            "#   docker run --rm --gpus all tensorflow-envcheck envcheck doctor --target /usr/bin/python3",
            "# Any of NVIDIA's images; its entrypoint and command stay, user and working directory are new.",
        ],
        indexes=[],
        packages=[],
        environment=[],
        command=[],
    )


def _filled(
    base: str, python: str, digest: str, labels: Mapping[str, str], **blocks: list[str]
) -> str:
    """The template with these lines in it. Whatever a line quotes, it stays one line.

    python: for envcheck.
    """
    labels = {
        **labels,
        "org.opencontainers.image.base.name": '"$BASE"',
        "org.opencontainers.image.base.digest": '"$BASE_DIGEST"',
        "envcheck.version": _quoted(__version__),
        "envcheck.lock": f'"sha256:{digest}"' if digest else '"$LOCK"',
    }
    unknown = [] if digest else ["# sha256:… of the lock that the lists are of.", "ARG LOCK="]
    blocks |= {
        "version": [__version__],
        "base": [_value(base)],
        "digest": [_value(base.partition("@")[2])],
        "envcheck": _run(
            _venv(_ENVCHECK, python),
            *_pip(_ENVCHECK, ENVCHECK, "--only-binary :all:"),
            *_pip(_ENVCHECK, ITSELF, f"--no-index --find-links {_LISTS}"),
            f"rm {_LISTS}/envcheck_gpu-*.whl",
        ),
        "labels": [*unknown, *_label(labels)],
    }
    filled = {name: "\n".join(map(safe_text.escaped, lines)) for name, lines in blocks.items()}
    return re.sub(r"\n{3,}", "\n\n", template.fill("Dockerfile", filled)).strip() + "\n"


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
    builds = {one.name: one.sdist.build for one in lists if one.sdist}
    if not builds:
        return lines
    if programs := sorted({program for build in builds.values() for program in build.programs}):
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
        elif one.sdist:
            variables = {"PYTHONPATH": _BUILD_TOOLS, **one.sdist.build.environment}
            setting = " ".join(f"{key}={shlex.quote(value)}" for key, value in variables.items())
            how = f"--no-build-isolation --no-binary {one.sdist.name}{_index(one)}"
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
    return _continued(told)


def _label(labels: Mapping[str, str]) -> list[str]:
    first, *others = [f"{key}={value}" for key, value in labels.items()]
    return _continued([f"LABEL {first}", *(f"      {line}" for line in others)])


def _continued(lines: list[str]) -> list[str]:
    return [*(f"{line} \\" for line in lines[:-1]), lines[-1]]


def _index(one: RequirementList) -> str:
    return "" if one.index == PUBLIC else f' --default-index "${_variable(one.index)}"'


def _variable(index: str) -> str:
    """The build argument that holds an index's address."""
    word = "".join(c if c.isascii() and c.isalnum() else "_" for c in index.upper())
    return f"{word}_INDEX_URL"


def _host(stack: Stack, release: str, tag: str) -> list[str]:
    """What the machine needs that it will run on: an image brings no driver."""
    if not stack.gpu:
        return []
    found = next((one for one in stack.releases if one.release == release), None)
    needs = needed_driver(found) if found else ""
    driver = f"driver {needs} or newer" if needs else "a driver: which is not known"
    if found and found.cuda and needs:
        driver += f", for CUDA {found.cuda}"
    return [
        f"# The host needs NVIDIA's container toolkit and {driver}.",
        f"#   docker run --rm --gpus all {tag} python -c 'import tensorflow'",
    ]


def _base(use: str) -> str:
    return next(row["reference"] for row in table("image_bases") if row["use"] == use)


def _quoted(text: str) -> str:
    """A value as a Dockerfile reads it: nothing in it is a variable or ends the string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
    return f'"{escaped}"'


def _value(text: str) -> str:
    """A build argument's default, quoted where that is needed."""
    plain = all(c.isascii() and (c.isalnum() or c in "_.:/@%+=,~-") for c in text)
    return text if plain else _quoted(text)
