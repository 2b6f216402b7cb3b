"""Starting a command in a fresh container of the image that the container mode installed."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from ... import safe_text
from ...exit_codes import NotFound, NotStarted
from ..engines import command as engine_commands
from ..engines import starting
from ..engines.command import Here
from ..transaction.layout import Version
from . import start_file
from .exec import become
from .options import Options

# bash where the image has it.
SHELL = ["sh", "-c", "command -v bash >/dev/null 2>&1 && exec bash; exec sh"]


def run(version: Version, command: Sequence[str], options: Options) -> NoReturn:
    """Become the engine, which starts the command. Raises NotStarted, NotExecutable, UsageError."""
    start = starting.with_devices(start_file.read(version.start))
    try:
        become(engine_commands.argv(start, command, where(options)), os.environ)
    except NotFound:
        raise NotStarted(
            f"{start.program}: {start.engine}, which {version.id} was installed with, no longer exists",
            hint=f"install {start.engine} again, or have envcheck install look for another engine",
        ) from None


def where(options: Options) -> Here:
    """By whom, from where, and with what it is started. Raises NotStarted."""
    try:
        cwd = os.getcwd()  # noqa: PTH109
    except OSError as error:
        raise NotStarted(
            f"the working directory cannot be mounted: {error.strerror}; it was removed or is out of reach",
            hint="cd to a directory that is there",
        ) from None
    covered = any(engine_commands.covers(m.target, cwd) for m in options.volume)
    if not engine_commands.mountable(cwd) and not covered:
        why = "is not mounted, since the container has its own: the command starts in the image's"
        print(f"envcheck: {safe_text.one_line(cwd)} {why} directory", file=sys.stderr)
    return Here(
        uid=os.getuid(),
        gid=os.getgid(),
        cwd=cwd,
        home=os.environ.get("HOME", ""),
        interactive=True,
        tty=all(os.isatty(number) for number in (0, 1, 2)),
        mounts=list(options.volume),
        environment=dict(options.env),
        arguments=list(options.engine_arg),
    )
