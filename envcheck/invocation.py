"""How this envcheck is called, so that every command it prints works where it is printed."""

from __future__ import annotations

import json
import os
import shlex
import sys

# Set by setup.sh, which starts an envcheck that is not on PATH.
VARIABLE = "ENVCHECK_COMMAND"


def envcheck_command() -> str:
    """The words that start this envcheck, quoted for a shell."""
    import shutil  # here, as pathlib: together they cost `--help` a tenth of its time
    from pathlib import Path

    started = Path(sys.argv[0]) if sys.argv else Path()
    if started.name == "envcheck" and started.is_file():
        found = shutil.which("envcheck")
        if found and Path(found).samefile(started):
            return "envcheck"
        script = shlex.quote(str(started.absolute()))
    else:
        script = f"{shlex.quote(sys.executable or 'python3')} -m envcheck"
    name = os.environ.get(VARIABLE, "")
    return name if name and name.isprintable() else script


def in_place(command: str) -> str:
    """A command line of envcheck's own ("envcheck doctor …") as it works here; any other as it is."""
    name, space, rest = command.partition(" ")
    return f"{envcheck_command()}{space}{rest}" if name == "envcheck" else command


def own_python(code: str) -> list[str]:
    """How a process starts that runs this code with the very modules of this one, and none of the working
    directory's or the user's."""
    path = "import json, sys\nsys.path[:] = json.loads(sys.argv[1])\n"
    return [sys.executable, "-I", "-c", path + code, json.dumps(sys.path)]
