"""The environment's own pip.conf, and the constraints that keep pip from breaking it in silence.

pip may add and change packages. A constraint file refuses what a dependency of a dependency must not do:

- another version of the framework (``===``: ``==1.0`` lets "1.0+anything" in), or another distribution;
- another version of a package from the stack's own index: pip takes the highest of all indexes;
- a version that the catalogue knows to break the release, such as a protobuf that is too new for it;
- a name of the stack's own index that nobody holds on the public registry, and a version there that only
  holds a name.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from urllib.parse import urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ...data import packages
from ..catalogue.model import PUBLIC, Release, Stack
from ..lockfile import Lockfile
from ..network import addresses
from . import logs

_LOOPBACK = ("127.0.0.1", "localhost", "::1")

_HEAD = """\
# Written by envcheck: what pip does not change here. To change one of these, too, for one command:
#   PIP_CONSTRAINT=/dev/null {python} -m pip install PACKAGE
"""
_CONF = """\
# Written by envcheck for this environment alone. The constraints say what pip does not change.
[global]
constraint = {constraints}
"""


def write(directory: Path, stack: Stack, lock: Lockfile, public: str) -> None:
    """Write both files; without an index of the stack's own, the constraints alone.

    public: the URL of the index that pip and uv are configured with, without credentials.
    """
    constraints = directory / logs.OWN / "constraints.txt"
    constraints.parent.mkdir(parents=True, exist_ok=True)
    python = shlex.quote(str(directory / "bin" / "python"))
    lines = constraints_of(stack, lock)
    constraints.write_text(
        _HEAD.format(python=python) + "".join(f"{one}\n" for one in lines), "utf-8"
    )
    # Another index stood in the place of the configured one, and does here, too.
    used = public_of(stack, lock)
    replaced = used if _is_safe(used) and used.rstrip("/") != public.rstrip("/") else ""
    (directory / "pip.conf").write_text(
        text(constraints, replaced, own_indexes(stack, lock)), "utf-8"
    )


def public_of(stack: Stack, lock: Lockfile) -> str:
    """The public index that a lock was made with; "" where all is from the stack's own."""
    return next((p.index for p in lock.packages if stack.index_of(p.name) == PUBLIC), "")


def own_indexes(stack: Stack, lock: Lockfile) -> list[str]:
    """The stack's own indexes, as far as a locked package comes from them, each once.

    One without TLS is left out, unless it is on this machine: pip would need a setting to trust it.
    """
    found = dict.fromkeys(p.index for p in lock.packages if stack.index_of(p.name) != PUBLIC)
    return [index for index in found if _is_safe(index)]


def constraints_of(stack: Stack, lock: Lockfile) -> list[str]:
    """What may not change, what is refused, and the catalogue's bounds."""
    releases = [release for release in stack.releases if release.release == lock.release]
    framework = canonicalize_name(stack.distribution)
    locked = {package.name: package.version for package in lock.packages}
    asked = {framework, *_names(releases)}
    kept = {n for n in locked if n in asked or stack.index_of(n) != PUBLIC}
    # Other distributions of TensorFlow would install their files over this one's.
    refused = packages.TENSORFLOWS - set(locked) if framework in packages.TENSORFLOWS else set()
    refused = {name for name in refused if stack.index_of(name) == PUBLIC}
    if own_indexes(stack, lock):
        free = [n for n in packages.unregistered() if n not in locked]
        refused |= {name for name in free if stack.index_of(name) != PUBLIC}
    bounds = [*stack.constraints, *(line for release in releases for line in release.constraints)]
    empty = {n: v for n, v in packages.placeholders().items() if n not in {*locked, *refused}}
    return [
        *(f"{name}==={locked[name]}" for name in sorted(kept)),
        *(f"{name}<0" for name in sorted(refused)),
        *(line for line in dict.fromkeys(bounds) if _is_bound(Requirement(line), kept)),
        *(f"{n}!={',!='.join(v)}" for n, v in empty.items() if stack.index_of(n) == PUBLIC),
    ]


def text(constraints: Path, index: str, own: list[str]) -> str:
    """index: in the place of the configured one; "" leaves that. own: beside it."""
    # As a URL: pip separates the files of this setting at white space.
    found = _CONF.format(constraints=constraints.absolute().as_uri())
    found += f"index-url = {index}\n" if index else ""
    # pip asks these beside its index, and takes the highest version of all.
    return found + ("extra-index-url =\n" + "".join(f"    {one}\n" for one in own) if own else "")


def _names(releases: list[Release]) -> set[str]:
    """What the releases ask for by name beside the framework."""
    lines = (line for release in releases for line in release.extra_requirements)
    return {canonicalize_name(Requirement(line).name) for line in lines}


def _is_bound(bound: Requirement, pinned: set[str]) -> bool:
    """Whether it bounds what is not pinned; pip takes no constraint with an extra."""
    return not bound.extras and canonicalize_name(bound.name) not in pinned


def _is_safe(index: str) -> bool:
    if not addresses.is_one_word(index):
        return False
    parts = urlsplit(index)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
