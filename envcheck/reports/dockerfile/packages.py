"""The steps that make a lock's environment: its Python, pip, the wheels, and what is built."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from ...install.catalogue.model import PUBLIC, Stack
from ...install.lockfile import Lockfile
from .lists import Listed, Lists
from .options import Options
from .words import run, variable

ENVIRONMENT = "/opt/venv"
LISTS = "/opt/lock"  # of a context; they stay in the image, to say what is in it
CACHE = "/var/cache/pip"
MOUNT = f"--mount=type=cache,target={CACHE}"
_BUILD_TOOLS = "/tmp/build-tools"
_LIST = "/tmp/requirements.txt"


def system(listed: Lists) -> Iterator[list[str]]:
    """What comes from the distribution. apt has no hashes for it: its signed index vouches."""
    yield [
        "# Python by apt, unless BASE brings it: no hash pins that, only the distribution's signature.",
        "RUN python3 -c 'import ensurepip, venv' 2>/dev/null \\",
        " || { apt-get update \\",
        "      && apt-get install -y --no-install-recommends python3 python3-venv \\",
        "      && rm -rf /var/lib/apt/lists/*; }",
    ]
    programs = sorted({p for one in listed.sdists if one.sdist for p in one.sdist.build.programs})
    if programs:
        yield [
            "# What the packages without a wheel are compiled with.",
            "RUN apt-get update \\",
            f" && apt-get install -y --no-install-recommends {' '.join(programs)} \\",
            " && rm -rf /var/lib/apt/lists/*",
        ]


def check(lock: Lockfile) -> list[str]:
    found = "'%d.%d' % sys.version_info[:2] + ' ' + platform.machine()"
    wanted = f"{lock.python} {lock.architecture}"
    return [
        f"# These wheels are for Python {lock.python} on {lock.architecture}: said now, and not after the"
        " downloads.",
        f'RUN found="$(python3 -c "import platform, sys; print({found})")" \\',
        f" && {{ [ \"$found\" = '{wanted}' ] \\",
        f'      || {{ echo "BASE has Python $found, and {wanted} is needed" >&2; exit 1; }}; }}',
    ]


def environment(listed: Lists, stack: Stack, options: Options) -> Iterator[list[str]]:
    """The environment with everything that the lock names."""
    mount = MOUNT if options.context else ""
    if options.context:
        names = " ".join(one.name for one in listed.all)
        yield [
            "# Every package and its sha256.",
            f"COPY {names} {LISTS}/",
        ]
    yield [
        "# The environment, and its own pip: the one that came with Python may be too old for the wheels.",
        *run(
            [
                [f"python3 -m venv {ENVIRONMENT}"],
                *(c for one in listed.pip for c in _install(one, options)),
            ],
            mount,
        ),
    ]
    for one in listed.wheels:
        where = "the public index" if one.index == PUBLIC else f'the index "{one.index}"'
        many = "" if options.context else f"{len(one.packages)} f"
        yield [f"# {many or 'F'}rom {where}.", *run(_install(one, options), mount)]
    if listed.sdists:
        yield _built(listed, options, mount)


def _built(listed: Lists, options: Options, mount: str) -> list[str]:
    """In one step, after the wheels that a build may import, so that its tools leave no layer."""
    commands: list[list[str]] = []
    for one in listed.building:
        commands += _install(one, options, f"--only-binary=:all: --target {_BUILD_TOOLS}")
    told = []
    for one in listed.sdists:
        assert one.sdist is not None, "it is one of these"
        name = one.packages[0].name
        told.append(
            f"# {name} {one.sdist.why}: built from the one source distribution that is allowed."
        )
        variables = {"PYTHONPATH": _BUILD_TOOLS, **one.sdist.build.environment}
        setting = " ".join(f"{key}={shlex.quote(value)}" for key, value in variables.items())
        how = f"--no-build-isolation --no-binary {name}"
        commands += _install(one, options, how, before=f"{setting} ")
    commands.append([f"rm -rf {_BUILD_TOOLS}"])
    return [
        *told,
        "# What it is built with is pinned too: pip's own build isolation would fetch it without a hash.",
        *run(commands, mount),
    ]


def _install(
    one: Listed, options: Options, how: str = "--only-binary=:all:", before: str = ""
) -> list[list[str]]:
    """The commands that install a list."""
    cache = f"--cache-dir {CACHE}" if options.context else "--no-cache-dir"
    pip = f"{before}{pip_of(ENVIRONMENT)} {cache}"
    if options.context:
        return [[pip, f"  {how}", f"  {_option(one.index)} -r {LISTS}/{one.name}"]]
    return [
        ["printf '%s\\n'", *(f"  {shlex.quote(line)}" for line in one.lines), f"  > {_LIST}"],
        [pip, f"  {how}", f"  {_option(one.index)} -r {_LIST}"],
        [f"rm {_LIST}"],
    ]


def pip_of(environment: str) -> str:
    """A pip that installs what is listed, and nothing without its hash."""
    return f"{environment}/bin/python -m pip install --no-deps --require-hashes"


def _option(index: str) -> str:
    if index == PUBLIC:
        return '${INDEX_URL:+--index-url "$INDEX_URL"}'
    return f'--index-url "${variable(index)}"'
