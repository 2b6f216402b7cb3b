"""What distributions need and their metadata does not say."""

from __future__ import annotations

import re
from functools import lru_cache

from packaging.version import Version

from . import table
from .versions import parse_version


@lru_cache(maxsize=1024)
def unstated(name: str, version: str) -> tuple[tuple[str, str], ...]:
    """(requirement, what fails without it) of a release; "{minor}" is its own "2.11"."""
    from packaging.specifiers import SpecifierSet  # here: it takes 20 ms

    has = parse_version(version)
    if has is None:
        return ()
    minor = ".".join(map(str, has.release[:2]))
    torch = built_for(has)
    own = ((torch, "it is compiled for that PyTorch alone: importing it fails"),) if torch else ()
    return own + tuple(
        (row["requires"].format(minor=minor), row["consequence"].format(minor=minor))
        for row in table("unstated_requirements")
        if row["name"] == name and SpecifierSet(row["versions"]).contains(has.public, True)
    )


def mended_in(name: str, requires: str) -> str:
    """The first release without a need that metadata does not state; "" where none is known."""
    rows = (row for row in table("unstated_requirements") if row["name"] == name)
    bound = next((row["versions"] for row in rows if row["requires"] == requires), "")
    return bound[1:] if re.match(r"<\d", bound) else ""


# As PyTorch Geometric and flash-attention write it: "2.1.2+pt21cu118", "2.5.8+cu12torch2.3cxx11abifalse".
_BUILT_FOR = re.compile(r"(?:pt|torch)(\d)\.?(\d{1,2})(?!\d)")


def built_for(version: Version) -> str:
    """The PyTorch that a build says it was compiled with, as a requirement; "" where it says none."""
    found = _BUILT_FOR.search(version.local or "")
    return f"torch=={found[1]}.{found[2]}.*" if found else ""
