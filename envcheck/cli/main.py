"""Reads the command line, runs one command, and turns every error into a sentence and an exit code."""

from __future__ import annotations

import errno
import importlib
import os
import resource
import signal
import stat
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from .. import __version__
from ..exit_codes import EnvcheckError, ExitCode
from . import messages
from .commands import COMMANDS, HEADINGS
from .parser import Parser

EPILOG = """\
start here:
  envcheck doctor                  this machine, and the active environment
  envcheck releases                what can be installed on it
  envcheck install                 what fits best, verified by the doctor
  envcheck run python train.py     a command in it
  envcheck COMMAND --help          the options of a command

exit codes:
  0  healthy or done             4  envcheck could not look
  1  problems were found         5  failed, and everything is as it was before
  2  wrong usage or input        6  failed, and something is left over
  3  this machine cannot         130  interrupted or declined
  of run and shell: the command's own, or 125, 126, 127"""


def _strict_umask() -> None:
    """A umask that lets everybody write becomes 022. One for a group that shares a root (002) stays."""
    umask = os.umask(0o022)
    if umask & stat.S_IWOTH:
        os.umask(umask)


def run(argv: Sequence[str]) -> int:
    """Run one command line; returns the exit code. KeyboardInterrupt is the caller's."""
    try:
        if argv and argv[0] == "help":
            argv = [*argv[1:], "--help"]
        parser = build_parser(argv)
        arguments = parser.parse_args(argv)
        if arguments.command is None:
            parser.print_help(sys.stderr)
            return ExitCode.USAGE
        if arguments.command not in ("run", "shell"):  # whose command keeps the user's umask
            _strict_umask()
        return int(arguments.run(arguments))
    except EnvcheckError as error:
        messages.say(str(error))
        if error.hint:
            messages.hint(error.hint)
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - whatever it is, it becomes a sentence and a code
        code = _explained(error)
        in_its_place = argv[:1] and argv[0] in ("run", "shell")  # other codes are the command's own
        return ExitCode.NOT_STARTED if in_its_place else code


def _explained(error: Exception) -> ExitCode:
    """Say what an unexpected error means; the exit code."""
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        messages.say(f"{error.filename}: this name is too long for a file")
        return ExitCode.USAGE
    if os.environ.get("ENVCHECK_DEBUG"):
        messages.trace()
    sentence = f"internal error: {type(error).__name__}: {error}"
    hint = "please report it, with what it prints under ENVCHECK_DEBUG=1"
    limited = limit_explained(error)
    sentence, hint = limited or (sentence, hint)
    messages.say(sentence)
    messages.hint(hint)
    if limited:
        _await_threads()
    return ExitCode.COULD_NOT_LOOK


def _await_threads() -> None:
    """Let threads come to their end: for one that Python cuts off, glibc opens libgcc_s, and where that
    cannot be opened any more, it aborts the process."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join(timeout=5)


def build_parser(argv: Sequence[str] = ()) -> Parser:
    """The whole parser, or, where argv names a command, only that command's arguments."""
    parser = Parser(
        prog="envcheck",
        description="Find out what is wrong with a machine with NVIDIA GPUs, and install a\n"
        "TensorFlow on it that is verified from the driver up to the framework.",
        epilog=EPILOG,
        allow_abbrev=False,  # of a command's options it would say which are ambiguous among its own
    )
    parser.add_argument(
        "-V",
        "--version",
        action="version",
        version=f"envcheck {__version__}",
        help="show envcheck's version and exit",
    )
    commands = parser.add_subparsers(metavar="COMMAND", dest="command")
    named = next((word for word in argv if not word.startswith("-")), None)
    for name, summary in COMMANDS.items():
        command = commands.add_parser(
            name, help=summary, description=summary[0].upper() + summary[1:] + "."
        )
        if named in (None, name) and not (named is None and argv):
            with _uninterrupted():
                module = importlib.import_module(f".{name}", __package__)
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    parser.show_commands(commands, HEADINGS)
    return parser


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C in this block counts at its end. For imports: msgspec's compiled part, interrupted while it is
    imported, swallows the interrupt and makes the process die of a segmentation fault later, when it reads
    its first Snapshot."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def limit_explained(error: BaseException) -> tuple[str, str] | None:
    """(sentence, hint) of an error that a limit is to blame for; None for any other."""
    number = error.errno if isinstance(error, OSError) else None
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if number == errno.ENOENT and "usable temporary directory" in str(error):
        words = f"no temporary file can be made, with at most {most} open files"
        return words, "set TMPDIR to a directory that can be written, or allow more: ulimit -n 1024"
    if number in (errno.EMFILE, errno.ENFILE):
        words = "envcheck needs more open files than it may have"
        return f"{words} ({most})", "raise the limit for this shell: ulimit -n 1024"
    no_thread = isinstance(error, RuntimeError) and "start new thread" in str(error)
    no_mapping = isinstance(error, ImportError) and "failed to map" in str(error)
    if isinstance(error, MemoryError) or number == errno.ENOMEM or no_thread or no_mapping:
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return "there is not enough memory or threads", "close other programs, and try again"
        words = f"envcheck may use only {limit >> 20} MiB of memory, and needs more"
        return words, "lift the limit for this shell: ulimit -v unlimited"
    return None
