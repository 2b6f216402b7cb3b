"""What a stack's packages expect in the environment: set by activation, and unset by `deactivate`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from . import logs

BEGIN = "# >>> envcheck >>>"
END = "# <<< envcheck <<<"

_EXPORTED = re.compile(r"(?P<name>\w+)=(?P<value>.*) ; export (?P=name)")

# The scripts lie in the second folder while the environment has not been verified.
_FOLDERS = ("bin", f"{logs.OWN}/activate")


class ScriptSyntax(NamedTuple):
    """How a script says it. deactivate: what its `deactivate` begins with."""

    deactivate: re.Pattern[str]
    unset: str
    set: str
    quoted: Callable[[str], str]


def write(directory: Path, variables: Mapping[str, str]) -> None:
    """Add ``variables`` to the activation scripts of sh and fish; none: nothing is touched."""
    for folder in _FOLDERS if variables else ():
        for name, syntax in _SCRIPTS.items():
            script = directory / folder / name
            if script.is_file():
                script.write_text(edited(script.read_text("utf-8"), syntax, variables), "utf-8")


def read(directory: Path) -> dict[str, str]:
    """What ``write`` made activation set in a verified environment."""
    try:
        script = (directory / "bin" / "activate").read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return {}
    _, begins, ours = script.rpartition(f"\n{BEGIN}\n")
    lines = ours.partition(f"\n{END}\n")[0].splitlines() if begins else []
    found = [_EXPORTED.fullmatch(line) for line in lines]
    return {one["name"]: "".join(shlex.split(one["value"])) for one in found if one}


def edited(script: str, syntax: ScriptSyntax, variables: Mapping[str, str]) -> str:
    """The script, with what sets the variables at its end and what unsets them in `deactivate`."""
    undo = "".join(syntax.unset.format(name=name) for name in variables)
    script = syntax.deactivate.sub(lambda found: found[0] + undo, script, count=1)
    do = [
        syntax.set.format(name=name, value=syntax.quoted(value))
        for name, value in variables.items()
    ]
    return script.rstrip("\n") + "\n\n" + "\n".join([BEGIN, *do, END]) + "\n"


def fish_quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


_SCRIPTS = {
    "activate": ScriptSyntax(
        re.compile(r"^deactivate *\(\) *\{\n", re.MULTILINE),
        "    unset {name}\n",
        "{name}={value} ; export {name}",
        shlex.quote,
    ),
    "activate.fish": ScriptSyntax(
        re.compile(r"^function deactivate\b.*\n", re.MULTILINE),
        "    set -e {name}\n",
        "set -gx {name} {value}",
        fish_quoted,
    ),
}
