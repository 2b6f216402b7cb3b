"""Whether an installed wheel was made for this interpreter and this system, by its tags (PEP 425, 600)."""

from __future__ import annotations

import re
from typing import NamedTuple

from packaging.tags import Tag, parse_tag

# glibc that the old manylinux names stand for (PEP 513, 571, 599).
_LEGACY = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}


class System(NamedTuple):
    """What a wheel is matched with."""

    python: tuple[int, int]
    machine: str  # "x86_64"
    glibc: tuple[int, int] | None  # None: not known, or another libc
    musl: bool


def misfit(tags: list[str], system: System) -> str:
    """Why none of a wheel's tags fits the system, in the words of the nearest; "" where one does.

    Raises ValueError for tags that cannot be read.
    """
    parsed: list[Tag] = [tag for text in tags for tag in parse_tag(text)]
    reasons = [_python_misfit(tag, system) or _platform_misfit(tag, system) for tag in parsed]
    if not reasons or "" in reasons:
        return ""
    return sorted(reasons)[0]


def _python_misfit(tag: Tag, system: System) -> str:
    found = re.fullmatch(r"(cp|py|pp)(\d)(\d*)", tag.interpreter)
    if found is None:
        return ""
    made_for = (int(found[2]), int(found[3] or 0))
    running = "{}.{}".format(*system.python)
    if found[1] == "py" or (found[1] == "cp" and tag.abi == "abi3"):
        fits = made_for[0] == system.python[0] and made_for <= system.python
    else:
        fits = found[1] == "cp" and made_for == system.python
    if fits:
        return ""
    return f"it was made for Python {made_for[0]}.{made_for[1]}, and this is {running}"


def _platform_misfit(tag: Tag, system: System) -> str:
    platform = tag.platform
    if platform == "any":
        return ""
    found = re.fullmatch(
        r"(?s)(manylinux\w*?|musllinux|linux)(?:_(\d{1,9})_(\d{1,9}))?_([a-z].*|i686)", platform
    )
    if found is None:
        return f"it was made for {platform}"
    kind, machine = found[1], found[4]
    if machine != system.machine:
        return f"it was made for {machine}, and this is {system.machine}"
    if kind == "musllinux":
        return "" if system.musl else "it was made for musl, and this is glibc"
    needs = (int(found[2]), int(found[3])) if found[2] else _LEGACY.get(kind)
    if needs and system.musl:
        return "it was made for glibc, and this is musl"
    if needs and system.glibc and system.glibc < needs:
        return "it needs glibc {}.{}, and this is {}.{}".format(*needs, *system.glibc)
    return ""
