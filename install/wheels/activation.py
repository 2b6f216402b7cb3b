"""What a stack's packages expect in the environment: set by activation, and unset by `deactivate`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

_BEGIN = "# >>> envcheck >>>"
_END = "# <<< envcheck <<<"
_EXPORTED = re.compile(r"(?P<name>\w+)=(?P<value>.*) ; export (?P=name)")
_DEACTIVATE = re.compile(r"^deactivate *\(\) *\{\n", re.MULTILINE)


def write(directory: Path, variables: Mapping[str, str]) -> None:
    """Add ``variables`` to the activation script of sh, bash and zsh; none: nothing is touched."""
    path = directory / "bin" / "activate"
    if not variables or not path.is_file():
        return
    unset = "".join(f"    unset {name}\n" for name in variables)
    script = _DEACTIVATE.sub(lambda found: found[0] + unset, path.read_text("utf-8"), count=1)
    lines = [f"{name}={shlex.quote(value)} ; export {name}" for name, value in variables.items()]
    path.write_text(
        script.rstrip("\n") + "\n\n" + "\n".join([_BEGIN, *lines, _END]) + "\n", "utf-8"
    )


def read(directory: Path) -> dict[str, str]:
    """What ``write`` made activation set in a verified environment."""
    try:
        script = (directory / "bin" / "activate").read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return {}
    _, begins, ours = script.rpartition(f"\n{_BEGIN}\n")
    lines = ours.partition(f"\n{_END}\n")[0].splitlines() if begins else []
    found = [_EXPORTED.fullmatch(line) for line in lines]
    return {one["name"]: "".join(shlex.split(one["value"])) for one in found if one}
