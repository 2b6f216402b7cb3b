"""The environment's own pip.conf, and the constraints that keep pip from breaking it in silence.

pip may add and change packages. A constraint file refuses what a dependency of a dependency must not do:

- another version of the framework (``===``: ``==1.0`` lets "1.0+anything" in), or another distribution;
- another version of a package from the stack's own index: pip takes the highest of all indexes;
- a version that the catalogue knows to break the release, such as a protobuf that is too new for it;
- a name that nobody holds on the public registry, or a version there that only holds a name.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from urllib.parse import urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ...data import packages
from ..catalogue.model import PUBLIC, Stack
from ..lockfile import Lockfile
from ..network import addresses
from . import logs

CONSTRAINTS = "constraints.txt"  # in the environment's own folder of envcheck's

_LOOPBACK = ("127.0.0.1", "localhost", "::1")

_HEAD = """\
# Written by envcheck: what pip does not change here. To change one of these, too, for one command:
#   PIP_CONSTRAINT=/dev/null {python} -m pip install PACKAGE"""
_OTHERS = "# Other distributions of TensorFlow would install their files over this one's."
_BOUND = "# With other versions this release does not work, by envcheck's catalogue."
_EMPTY = "# Versions on the public registry that only hold a name."
_FREE = """\
# Names of {indexes} that have no owner on the public registry. To install one anyway:
#   {alone}"""
# pip's other settings, --isolated included, would leave the second index where it is.
_ALONE = "PIP_CONFIG_FILE=/dev/null python -m pip install --no-deps --index-url {url} NAME"

_CONF = """\
# Written by envcheck for this environment alone. The constraints say what pip does not change.
[global]
constraint = {constraints}
"""
_CONF_PUBLIC = """\
# What is locked came from here.
index-url = {index}
"""
_CONF_OWN = """\
# pip asks these beside its index, and takes the highest version of all. Another package of theirs alone:
#   {alone}
extra-index-url =
"""


def write(directory: Path, stack: Stack, lock: Lockfile, public: str) -> None:
    """Write both files; without an index of the stack's own, the constraints alone.

    public: the URL of the index that pip and uv are configured with, without credentials.
    """
    constraints = logs.work(directory) / CONSTRAINTS
    python = shlex.quote(str(directory / "bin" / "python"))
    constraints.write_text(constraints_text(stack, lock, python), encoding="utf-8")
    conf = text(constraints, replaced_public(stack, lock, public), own_indexes(stack, lock))
    (directory / "pip.conf").write_text(conf, encoding="utf-8")


def public_of(stack: Stack, lock: Lockfile) -> str:
    """The public index that a lock was made with; "" where all is from the stack's own."""
    return next((p.index for p in lock.packages if stack.index_of(p.name) == PUBLIC), "")


def replaced_public(stack: Stack, lock: Lockfile, public: str) -> str:
    """The index that stood in the configured public one's place; "" where that one itself did.

    In the environment it takes its place too: beside it, it would be one more index to be confused with.
    """
    used = public_of(stack, lock)
    return used if _is_safe(used) and used.rstrip("/") != public.rstrip("/") else ""


def own_indexes(stack: Stack, lock: Lockfile) -> list[str]:
    """The stack's own indexes, as far as a locked package comes from them, each once.

    One without TLS is left out, unless it is on this machine: pip would need a setting to trust it.
    """
    found = dict.fromkeys(p.index for p in lock.packages if stack.index_of(p.name) != PUBLIC)
    return [index for index in found if _is_safe(index)]


def constraints_text(stack: Stack, lock: Lockfile, python: str = "python") -> str:
    """What may not change; what is refused; the catalogue's bounds. python: in the comment's command."""
    framework = canonicalize_name(stack.distribution)
    locked = {package.name: package.version for package in lock.packages}
    asked = {framework, *_beside(stack, lock.release)}
    kept = {n: v for n, v in locked.items() if n in asked or stack.index_of(n) != PUBLIC}
    others = packages.TENSORFLOWS - set(locked) if framework in packages.TENSORFLOWS else set()
    refused = {name for name in others if stack.index_of(name) == PUBLIC}
    empty = {
        name: versions
        for name, versions in packages.placeholders().items()
        if name not in {*locked, *others} and stack.index_of(name) == PUBLIC
    }
    parts = [
        (_HEAD.format(python=python), [f"{name}==={version}" for name, version in kept.items()]),
        (_OTHERS, [f"{name}<0" for name in refused]),
        (_BOUND, _bounds(stack, lock.release, set(kept))),
        (_EMPTY, [f"{name}!={',!='.join(versions)}" for name, versions in empty.items()]),
    ]
    if own := own_indexes(stack, lock):
        free = [n for n in packages.unregistered() if n not in locked]
        alone = _ALONE.format(url=shlex.quote(own[0]))
        parts.append(
            (
                _FREE.format(indexes=" and ".join(own), alone=alone),
                [f"{name}<0" for name in free if stack.index_of(name) != PUBLIC],
            )
        )
    return "".join(
        f"{line}\n" for title, lines in parts if lines for line in (title, *sorted(lines))
    )


def _beside(stack: Stack, release: str) -> set[str]:
    """What the release asks for by name beside the framework: another one, with `--with`."""
    found = (one for one in stack.releases if one.release == release)
    lines = (line for one in found for line in one.extra_requirements)
    return {canonicalize_name(Requirement(line).name) for line in lines}


def text(constraints: Path, index: str, own: list[str]) -> str:
    """index: in the place of the configured one; "" leaves that. own: beside it."""
    # As a URL: pip separates the files of this setting at white space.
    found = _CONF.format(constraints=constraints.absolute().as_uri())
    if index:
        found += _CONF_PUBLIC.format(index=index)
    if own:
        found += _CONF_OWN.format(alone=_ALONE.format(url=shlex.quote(own[0])))
        found += "".join(f"    {one}\n" for one in own)
    return found


def _bounds(stack: Stack, release: str, pinned: set[str]) -> list[str]:
    """The catalogue's constraints on packages that are not pinned."""
    of_release = [r.constraints for r in stack.releases if r.release == release]
    lines = dict.fromkeys([*stack.constraints, *(one for found in of_release for one in found)])
    bounds = {line: Requirement(line) for line in lines}
    # pip takes no constraint with an extra.
    return [
        line
        for line, bound in bounds.items()
        if not bound.extras and canonicalize_name(bound.name) not in pinned
    ]


def _is_safe(index: str) -> bool:
    if not addresses.is_one_word(index):
        return False
    parts = urlsplit(index)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
