"""The environment's own pip.conf: what nvidia-pyindex was for, without what it does to a machine.

pip merges the indexes it knows and takes the highest version, whoever offers it; it cannot be told that
nvidia-* comes from NVIDIA's index alone. What it can be told stands in a constraint file beside it:

- every locked package stays at its version, to the letter: ``===``, for ``==1.0`` lets "1.0+anything" in;
- what the catalogue bounds and the lock has not keeps to these bounds;
- names that the stack's own indexes claim and that nobody holds on the public registry are refused: whoever
  registers one there would otherwise hand out the highest version.

A name of that kind which no table knows yet stays open, as it is for every pip with a second index; and a
file of the very same version may come from either index where somebody installs it once more by hand.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ...data import packages
from ..catalogue.model import PUBLIC, Stack
from ..lock.checking import index_name, public_of
from ..lock.lock import Lock
from . import logs

CONSTRAINTS = "constraints.txt"  # in the environment's own folder of envcheck's

_LOOPBACK = ("127.0.0.1", "localhost", "::1")

_PINNED = "# The versions that envcheck locked: pip keeps to them in this environment."
_BOUND = "# What envcheck's catalogue says of packages that are not locked."
_FREE = """\
# Names of {indexes} that nobody held on the public registry when they were looked up:
# pip asks both, and would take the files of whoever registers one. To install one all the same:
#   {alone}"""
# pip's other settings, --isolated included, would leave the second index where it is.
_ALONE = "PIP_CONFIG_FILE=/dev/null python -m pip install --no-deps --index-url {url} NAME"


def write(directory: Path, stack: Stack, lock: Lock, public: str) -> None:
    """Write both files; without an index of the stack's own, the constraints alone.

    public: the URL of the index that pip and uv are configured with, without credentials.
    """
    constraints = logs.work(directory) / CONSTRAINTS
    constraints.write_text(constraints_text(stack, lock), encoding="utf-8")
    conf = text(constraints, replaced_public(stack, lock, public), own_indexes(stack, lock))
    (directory / "pip.conf").write_text(conf, encoding="utf-8")


def replaced_public(stack: Stack, lock: Lock, public: str) -> str:
    """The index that stood in the configured public one's place; "" where that one itself did.

    In the environment it takes its place too: beside it, it would be one more index to be confused with.
    """
    used = public_of(stack, lock)
    return used if _is_safe(used) and used.rstrip("/") != public.rstrip("/") else ""


def own_indexes(stack: Stack, lock: Lock) -> list[str]:
    """The stack's own indexes, as far as a locked package comes from them, each once.

    One without TLS is left out, unless it is on this machine: pip would have to be told to trust it.
    """
    found = dict.fromkeys(
        package.index
        for package in lock.packages
        if package.index and index_name(stack.indexes, package.name) != PUBLIC
    )
    return [index for index in found if _is_safe(index)]


def constraints_text(stack: Stack, lock: Lock) -> str:
    """Every locked package; the catalogue's bounds on others; the names that are refused."""
    locked = {package.name for package in lock.packages}
    lines = [_PINNED, *sorted(f"{p.name}==={p.version}" for p in lock.packages)]
    bounds = sorted(_bounds(stack, lock.release, locked))
    if bounds:
        lines += [_BOUND, *bounds]
    own = own_indexes(stack, lock)
    free = [f"{name}<0" for name in _free(stack, locked)] if own else []
    if free:
        alone = _ALONE.format(url=own[0])
        lines += [_FREE.format(indexes=" and ".join(own), alone=alone), *free]
    return "\n".join([*lines, ""])


def text(constraints: Path, index: str, own: list[str]) -> str:
    """index: in the place of the configured one; "" leaves that. own: beside it."""
    # As a URL: pip separates the files of this setting at white space.
    lines = [
        "# Written by envcheck for this environment alone.",
        "[global]",
        f"constraint = {constraints.absolute().as_uri()}",
    ]
    if index:
        lines += [
            "# What is locked came from here, and not from the index that pip is configured with.",
            f"index-url = {index}",
        ]
    if own:
        lines += [
            "# pip asks these beside its index, and takes the highest version of all. The constraints pin",
            "# every locked package, and refuse the names that anybody could register. Ask for another",
            "# package of theirs from there alone:",
            f"#   {_ALONE.format(url=own[0])}",
            "extra-index-url =",
            *(f"    {index}" for index in own),
        ]
    return "\n".join(lines) + "\n"


def _bounds(stack: Stack, release: str, locked: set[str]) -> Iterable[str]:
    """The catalogue's constraints on packages that are not locked."""
    of_release = [r.constraints for r in stack.releases if r.release == release]
    for line in dict.fromkeys([*stack.constraints, *(c for found in of_release for c in found)]):
        bound = Requirement(line)
        # pip takes no constraint with an extra.
        if not bound.extras and canonicalize_name(bound.name) not in locked:
            yield line


def _free(stack: Stack, locked: set[str]) -> list[str]:
    return [
        name
        for name in packages.unregistered()
        if name not in locked and index_name(stack.indexes, name) != PUBLIC
    ]


def _is_safe(index: str) -> bool:
    parts = urlsplit(index)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
