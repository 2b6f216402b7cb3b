"""What a stack's packages expect in the environment: set by activation, and undone by `deactivate`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

from . import logs

BEGIN = "# >>> envcheck >>>"
END = "# <<< envcheck <<<"

_EXPORTED = re.compile(r"(?P<name>\w+)=(?P<value>.*) ; export (?P=name)")

# The scripts lie in the second folder while the environment has not been verified.
_FOLDERS = ("bin", f"{logs.OWN}/activate")


def write(directory: Path, variables: Mapping[str, str]) -> None:
    """Add ``variables`` to the activation scripts of sh, fish and csh; none: nothing is touched."""
    if not variables:
        return
    for folder in _FOLDERS:
        for name, edited in _SHELLS.items():
            script = directory / folder / name
            if script.is_file():
                script.write_text(edited(script.read_text("utf-8"), variables), "utf-8")


def read(directory: Path) -> dict[str, str]:
    """What ``write`` made activation set in a verified environment."""
    try:
        script = (directory / "bin" / "activate").read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return {}
    _, begins, ours = script.rpartition(f"\n{BEGIN}\n")  # in `deactivate`, it is indented
    lines = ours.partition(f"\n{END}\n")[0].splitlines() if begins else []
    found = [_EXPORTED.fullmatch(line) for line in lines]
    return {one["name"]: "".join(shlex.split(one["value"])) for one in found if one}


def sh(script: str, variables: Mapping[str, str]) -> str:
    """For sh, bash, zsh: ``deactivate`` is a function."""
    undo, do = [], []
    for name, value in variables.items():
        old = f"_ENVCHECK_OLD_{name}"
        undo += [
            f'    if [ "${{{old}-}}" = unset ] ; then unset {name} {old} ; fi',
            f'    if [ -n "${{{old}-}}" ] ; then {name}="${{{old}#set:}}" ; export {name} ; unset {old} ; fi',
        ]
        do += [
            f'if [ -n "${{{name}+x}}" ] ; then {old}="set:${{{name}}}" ; else {old}=unset ; fi',
            f"{name}={shlex.quote(value)} ; export {name}",
        ]
    begins = re.search(r"^deactivate *\(\) *\{\n", script, re.MULTILINE)
    return _joined(script, begins, undo, do, "    ")


def fish(script: str, variables: Mapping[str, str]) -> str:
    undo, do = [], []
    for name, value in variables.items():
        old = f"_ENVCHECK_OLD_{name}"
        undo += [
            f"    if set -q {old}",
            f'        if test "${old}[1]" = set; set -gx {name} ${old}[2..-1]; else; set -e {name}; end',
            f"        set -e {old}",
            "    end",
        ]
        do += [
            f"if set -q {name}; set -g {old} set ${name}; else; set -g {old} unset; end",
            f"set -gx {name} {fish_quoted(value)}",
        ]
    begins = re.search(r"^function deactivate\b.*\n", script, re.MULTILINE)
    return _joined(script, begins, undo, do, "    ")


def csh(script: str, variables: Mapping[str, str]) -> str:
    """For csh and tcsh: ``deactivate`` is an alias, one line in single quotes."""
    undo, do = "", []
    for name, value in variables.items():
        old = f"_ENVCHECK_OLD_{name}"
        undo += (
            f"test $?_ENVCHECK_SET_{name} != 0 && unsetenv {name} && unset _ENVCHECK_SET_{name}; "
        )
        undo += f'test $?{old} != 0 && setenv {name} "${old}:q" && unset {old}; '
        do += [
            f"if ( $?{name} ) then",  # on one line, csh would read the variable before it asks
            f'    set {old} = "${name}:q"',
            "endif",
            f"setenv {name} {shlex.quote(value).replace('!', chr(92) + '!')}",
            f"set _ENVCHECK_SET_{name}",
        ]
    aliased = re.sub(
        r"^alias deactivate '", lambda found: found[0] + undo, script, count=1, flags=re.MULTILINE
    )
    return _joined(aliased, None, [], do, "")


def _joined(
    script: str, begins: re.Match[str] | None, undo: list[str], do: list[str], indent: str
) -> str:
    if begins is not None:
        marked = "\n".join([indent + BEGIN, *undo, indent + END, ""])
        script = script[: begins.end()] + marked + script[begins.end() :]
    return script.rstrip("\n") + "\n\n" + "\n".join([BEGIN, *do, END]) + "\n"


def fish_quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


_SHELLS: dict[str, Callable[[str, Mapping[str, str]], str]] = {
    "activate": sh,
    "activate.fish": fish,
    "activate.csh": csh,
}
