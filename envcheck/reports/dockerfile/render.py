"""The template: its blocks, in order."""

from __future__ import annotations

from collections.abc import Iterator

from ...install.catalogue.model import PUBLIC, Stack
from ...install.fit.gpu_rules import needed_driver
from ...install.lockfile import Lockfile
from . import inside, packages
from .lists import index_of, lists
from .options import Options, base_of, ngc_base
from .words import Argument, argument, label, quoted, text, variable

USER = 10001  # a number, so that Kubernetes can see that it is not root
_LOCK_TO_BE_TOLD = [
    "# sha256:… of the lock that the lists are of, as their first lines have it.",
    "ARG LOCK=",
]


def render(stack: Stack, lock: Lockfile, options: Options) -> str:
    """The Dockerfile of a lock, which is of that stack."""
    listed = lists(stack, lock)
    return text(
        [
            _head(stack, lock, options),
            _bases(options.base or base_of(lock.python) or _official(lock), lock.python),
            *(inside.stage(options.context) if options.context else ()),
            _start(),
            _arguments(_indexes(stack, lock)),
            *packages.system(listed),
            packages.check(lock),
            *packages.environment(listed, stack, options),
            *(inside.steps(options.context) if options.context else ()),
            _tail(stack, lock, options),
        ]
    )


def render_over(options: Options) -> str:
    """The Dockerfile of an image that has its framework already, with envcheck in it. Needs a context."""
    assert options.context is not None, "envcheck's wheel lies in it"
    base = options.base or ngc_base()
    labels = {
        "org.opencontainers.image.base.name": Argument("BASE"),
        "envcheck.version": options.envcheck,
        "envcheck.lock": f"sha256:{options.digest}",
    }
    return text(
        [
            [
                f"# An NGC image with envcheck in it, written by envcheck {options.envcheck}.",
                "#   docker build -t tensorflow-envcheck DIRECTORY     (a builder with cache mounts)",
                "#   docker run --rm --gpus all tensorflow-envcheck envcheck doctor"
                " --target /usr/bin/python3",
                "# Its entrypoint, its command and its working directory stay as they are.",
            ],
            [
                "# Any of NVIDIA's, of any Python: a tag moves, a digest does not.",
                "#   docker build --build-arg BASE=NAME@sha256:DIGEST …",
                argument("BASE", base),
            ],
            *inside.stage(options.context),
            [*_start(), "ARG BASE", "USER root"],
            _arguments({}),
            *inside.steps(options.context, constrained=True),
            [
                *label(labels),
                *inside.health(),
                *_nobody(),
            ],
        ]
    )


def _head(stack: Stack, lock: Lockfile, options: Options) -> list[str]:
    image = f"{lock.stack}:{lock.release}".replace("+", "-")
    created = f", locked {lock.created_at}" if lock.created_at else ""
    build = "- < Dockerfile"
    if options.context:
        build = "DIRECTORY     (a builder with cache mounts)"
    many = "Its" if options.context else f"{len(lock.packages)}"
    return [
        # Never a lock's word first: BuildKit takes "# syntax=IMAGE" there for the program that builds.
        f"# Written by envcheck {options.envcheck}: {lock.stack} {lock.release}{created}.",
        f"#   docker build -t {image} {build}",
        f"# {many} packages, each one file that its sha256 names: an index can fail to serve it, and",
        "# cannot serve another. Each package comes from one index, and pip is never given two.",
        *_host(stack, lock, image),
    ]


def _host(stack: Stack, lock: Lockfile, image: str) -> list[str]:
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


def _official(lock: Lockfile) -> str:
    return f"docker.io/library/python:{lock.python}-slim"


def _bases(base: str, python: str) -> list[str]:
    return [
        f"# Debian or Ubuntu with Python {python} as python3. A tag moves; a digest does not:",
        "#   docker build --build-arg BASE=NAME@sha256:DIGEST …",
        argument("BASE", base),
    ]


def _start() -> list[str]:
    return ["FROM ${BASE}"]


def _arguments(indexes: dict[str, str]) -> list[str]:
    return [
        "# The public index or a mirror of it; empty: pip's own. An address with a password in it stays in",
        "# the image's history: use one without. PIP_CERT: a file with the mirror's authorities, in BASE or",
        "# mounted while building.",
        "ARG INDEX_URL=",
        "ARG PIP_CERT=",
        *(argument(variable(name), url) for name, url in indexes.items()),
    ]


def _indexes(stack: Stack, lock: Lockfile) -> dict[str, str]:
    """The stack's own indexes that the lock uses: name → URL that it was locked from."""
    used: dict[str, str] = {}
    for package in [*lock.packages, *lock.building]:
        name = index_of(stack, package)
        if name != PUBLIC:
            used.setdefault(name, package.index)
    return used


def _tail(stack: Stack, lock: Lockfile, options: Options) -> list[str]:
    labels = {
        "org.opencontainers.image.title": lock.stack,
        "org.opencontainers.image.version": lock.release,
        "org.opencontainers.image.description": stack.title,
        "envcheck.stack": lock.stack,
        "envcheck.release": lock.release,
        "envcheck.version": options.envcheck,
    }
    if options.digest != "":
        labels["envcheck.lock"] = f"sha256:{options.digest}" if options.digest else Argument("LOCK")
    if lock.provided:
        labels["envcheck.provided"] = ",".join(sorted(lock.provided))
    values = {"VIRTUAL_ENV": packages.ENVIRONMENT, **stack.environment}
    return [
        "# As activation would set it, and nothing else.",
        *(f"ENV {key}={quoted(value)}" for key, value in values.items()),
        f"ENV PATH={packages.ENVIRONMENT}/bin:$PATH",
        *(_LOCK_TO_BE_TOLD if options.digest is None else ()),
        *label(labels),
        *(inside.health() if options.context else ()),
        *_nobody(),
        "WORKDIR /home/envcheck",
        'CMD ["python"]',
    ]


def _nobody() -> Iterator[str]:
    yield f"RUN useradd --create-home --uid {USER} envcheck"
    yield f"USER {USER}"
