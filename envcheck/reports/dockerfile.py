"""A lock as one self-contained Dockerfile: it needs no file beside it, no network but the indexes, and
no feature that an old builder lacks (no heredoc, no cache mount).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

import msgspec

from ..install.catalogue.model import PUBLIC, Sdist, Stack
from ..install.fit.gpu_rules import needed_driver
from ..install.lock.lock import Lock, LockedPackage

ENVIRONMENT = "/opt/venv"
USER = 10001  # a number, so that Kubernetes can see that it is not root
_PIP = f"{ENVIRONMENT}/bin/python -m pip install --no-deps --require-hashes --no-cache-dir"
_BUILD_TOOLS = "/tmp/build-tools"
_LIST = "/tmp/requirements.txt"


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What a Dockerfile says beside its stack and lock."""

    envcheck: str  # the version that wrote it
    digest: str = ""  # sha256 of the lock's text
    base: str = ""  # "": the official image of the lock's Python, slim


def render(stack: Stack, lock: Lock, options: Options) -> str:
    """The Dockerfile's text. ``lock`` is of that stack."""
    blocks = [
        _head(stack, lock, options),
        _arguments(stack, lock, options),
        _checks(lock),
        *_system(stack, lock),
        *_environment(stack, lock),
        *_wheels(stack, lock),
        *_sdists(stack, lock),
        _tail(stack, lock, options),
    ]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _head(stack: Stack, lock: Lock, options: Options) -> list[str]:
    image = f"{lock.stack}:{lock.release}".replace("+", "-")
    created = f", locked {lock.created_at}" if lock.created_at else ""
    return [
        f"# {lock.stack} {lock.release}, written by envcheck {options.envcheck}{created}.",
        f"#   docker build -t {image} - < Dockerfile",
        f"# {len(lock.packages)} packages, each one file that its sha256 names: an index can fail to serve"
        " it, and",
        "# cannot serve another. Each package comes from one index, and pip is never given two.",
        *_host(stack, lock, image),
    ]


def _host(stack: Stack, lock: Lock, image: str) -> list[str]:
    """What the machine needs that it will run on: an image brings no driver."""
    if not stack.gpu:
        return []
    cuda = next((one.cuda for one in stack.releases if one.release == lock.release), "")
    needs = needed_driver(cuda)
    told = f"driver {needs} or newer, for CUDA {cuda}" if needs else "a driver: which is not known"
    return [
        f"# The host needs NVIDIA's container toolkit and {told}.",
        f"#   docker run --rm --gpus all {image} python -c 'import tensorflow'",
    ]


def _arguments(stack: Stack, lock: Lock, options: Options) -> list[str]:
    base = options.base or f"docker.io/library/python:{lock.python}-slim"
    lines = [
        f"# Debian or Ubuntu with Python {lock.python} as python3. A tag moves; a digest does not:",
        "#   docker build --build-arg BASE=NAME@sha256:DIGEST …",
        f"ARG BASE={base}",
        "FROM ${BASE}",
        "",
        "# The public index or a mirror of it; empty: pip's own. An address with a password in it stays in",
        "# the image's history: use one without.",
        "ARG INDEX_URL=",
    ]
    for name, url in _indexes(stack, lock).items():
        lines.append(f"ARG {_variable(name)}={url}")
    return lines


def _indexes(stack: Stack, lock: Lock) -> dict[str, str]:
    """The stack's own indexes that the lock uses: name → URL that it was locked from."""
    used: dict[str, str] = {}
    for package in [*lock.packages, *lock.building]:
        name = _index_name(stack, package)
        if name != PUBLIC:
            used.setdefault(name, package.index)
    return used


def _index_name(stack: Stack, package: LockedPackage) -> str:
    for index in stack.indexes:
        if index.claims(package.name):
            return index.name
    return PUBLIC


def _variable(index: str) -> str:
    word = "".join(c if c.isascii() and c.isalnum() else "_" for c in index.upper())
    return f"{word}_INDEX_URL"


def _option(index: str) -> str:
    if index == PUBLIC:
        return '${INDEX_URL:+--index-url "$INDEX_URL"}'
    return f'--index-url "${_variable(index)}"'


def _checks(lock: Lock) -> list[str]:
    found = "'%d.%d' % sys.version_info[:2] + ' ' + platform.machine()"
    wanted = f"{lock.python} {lock.architecture}"
    return [
        f"# These wheels are for Python {lock.python} on {lock.architecture}: said now, and not after the"
        " downloads.",
        f'RUN found="$(python3 -c "import platform, sys; print({found})")" \\',
        f" && {{ [ \"$found\" = '{wanted}' ] \\",
        f'      || {{ echo "BASE has Python $found, and {wanted} is needed" >&2; exit 1; }}; }}',
    ]


def _system(stack: Stack, lock: Lock) -> Iterator[list[str]]:
    programs = sorted({p for _package, sdist in _built(stack, lock) for p in sdist.build.programs})
    if programs:
        yield [
            "# What the packages without a wheel are compiled with.",
            "RUN apt-get update \\",
            f" && apt-get install -y --no-install-recommends {' '.join(programs)} \\",
            " && rm -rf /var/lib/apt/lists/*",
        ]


def _environment(stack: Stack, lock: Lock) -> Iterator[list[str]]:
    yield [
        "# The environment, and its own pip: the one that came with Python may be too old for the wheels.",
        *_run(
            [
                [f"python3 -m venv {ENVIRONMENT}"],
                *(
                    command
                    for package in lock.packages
                    if package.name == "pip"
                    for command in _pip(stack, [package], "--only-binary=:all:")
                ),
            ]
        ),
    ]


def _wheels(stack: Stack, lock: Lock) -> Iterator[list[str]]:
    wheels = [p for p in lock.packages if p.file.kind == "wheel" and p.name != "pip"]
    for name, packages in _by_index(stack, wheels):
        where = "the public index" if name == PUBLIC else f'the index "{name}"'
        yield [
            f"# {len(packages)} from {where}.",
            *_run(_pip(stack, packages, "--only-binary=:all:")),
        ]


def _by_index(
    stack: Stack, packages: Iterable[LockedPackage]
) -> Iterator[tuple[str, list[LockedPackage]]]:
    """The public index's first."""
    grouped: dict[str, list[LockedPackage]] = {}
    for package in packages:
        grouped.setdefault(_index_name(stack, package), []).append(package)
    yield from sorted(grouped.items(), key=lambda item: (item[0] != PUBLIC, item[0]))


def _built(stack: Stack, lock: Lock) -> list[tuple[LockedPackage, Sdist]]:
    allowed = {sdist.sha256: sdist for sdist in stack.sdists}
    return [
        (package, allowed[package.file.sha256])
        for package in lock.packages
        if package.file.sha256 in allowed
    ]


def _sdists(stack: Stack, lock: Lock) -> Iterator[list[str]]:
    """In one step, after the wheels that a build may import, so that its tools leave no layer."""
    built = _built(stack, lock)
    if not built:
        return
    commands: list[list[str]] = []
    for _index, packages in _by_index(stack, lock.building):
        commands += _pip(stack, packages, f"--only-binary=:all: --target {_BUILD_TOOLS}")
    for package, sdist in built:
        variables = {"PYTHONPATH": _BUILD_TOOLS, **sdist.build.environment}
        setting = " ".join(f"{key}={shlex.quote(value)}" for key, value in variables.items())
        how = f"--no-build-isolation --no-binary {package.name}"
        commands += _pip(stack, [package], how, before=f"{setting} ")
    commands.append([f"rm -rf {_BUILD_TOOLS}"])
    yield [
        *(
            f"# {package.name} {sdist.why}: built from the one source distribution that is allowed."
            for package, sdist in built
        ),
        "# What it is built with is pinned too: pip's own build isolation would fetch it without a hash.",
        *_run(commands),
    ]


def _pip(
    stack: Stack, packages: list[LockedPackage], how: str, before: str = ""
) -> list[list[str]]:
    """The commands that install packages of one index: each a list of lines."""
    listed = sorted(packages, key=lambda package: package.name)
    lines = [f"{p.name}=={p.version} --hash=sha256:{p.file.sha256}" for p in listed]
    index = _option(_index_name(stack, listed[0]))
    return [
        ["printf '%s\\n'", *(f"  {shlex.quote(line)}" for line in lines), f"  > {_LIST}"],
        [f"{before}{_PIP}", f"  {how}", f"  {index} -r {_LIST}"],
        [f"rm {_LIST}"],
    ]


def _run(commands: list[list[str]]) -> list[str]:
    """One RUN of commands, each of which needs the one before it."""
    lines: list[str] = []
    for number, command in enumerate(commands):
        lines.append((" && " if number else "RUN ") + command[0])
        lines += [f"    {line}" for line in command[1:]]
    return [line + " \\" for line in lines[:-1]] + lines[-1:]


def _tail(stack: Stack, lock: Lock, options: Options) -> list[str]:
    labels = {
        "org.opencontainers.image.title": lock.stack,
        "org.opencontainers.image.version": lock.release,
        "org.opencontainers.image.description": stack.title,
        "envcheck.stack": lock.stack,
        "envcheck.release": lock.release,
        "envcheck.version": options.envcheck,
    }
    if options.digest:
        labels["envcheck.lock"] = f"sha256:{options.digest}"
    if lock.provided:
        labels["envcheck.provided"] = ",".join(sorted(lock.provided))
    values = {
        "VIRTUAL_ENV": ENVIRONMENT,
        **stack.environment,
    }
    return [
        "# As activation would set it, and nothing else.",
        *(f"ENV {key}={_quoted(value)}" for key, value in values.items()),
        f"ENV PATH={ENVIRONMENT}/bin:$PATH",
        *(f"LABEL {key}={_quoted(value)}" for key, value in labels.items()),
        f"RUN useradd --create-home --uid {USER} envcheck",
        f"USER {USER}",
        "WORKDIR /home/envcheck",
        'CMD ["python"]',
    ]


def _quoted(text: str) -> str:
    """A value as a Dockerfile reads it: nothing in it is a variable or ends the string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
    return f'"{" ".join(escaped.split())}"'
