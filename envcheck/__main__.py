"""`envcheck`, and `python -m envcheck`."""

import os
import sys


def main() -> int:
    _fill_closed_streams()
    _put_pythonpath_last()
    try:
        if sys.argv[1:] in (["--version"], ["-V"]) and _prints_version():
            return 0  # no parser, no imports: scripts ask this often
        from .cli.main import run

        return run(sys.argv[1:])
    except KeyboardInterrupt:
        import signal

        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the next one changes nothing any more
        exec("")  # else Python ends by SIGINT after one in a string's exec, such as namedtuple's
        print("envcheck: interrupted", file=sys.stderr)
        return 130


def _prints_version() -> bool:
    from . import __version__

    try:
        print(f"envcheck {__version__}", flush=True)
    except OSError:
        return False  # run() knows what to say of a standard output like this
    return True


def _fill_closed_streams() -> None:
    """Give what the caller closed (`envcheck >&-`) the null device, so that no file gets its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
            setattr(sys, name, open(number, "w" if number else "r"))  # noqa: PTH123, SIM115


def _put_pythonpath_last() -> None:
    """Let the standard library come before PYTHONPATH, where an old typing.py may lie."""
    entries = os.environ.get("PYTHONPATH", "")
    if entries and not sys.flags.ignore_environment:
        theirs = {os.path.normpath(entry) for entry in entries.split(os.pathsep)}
        sys.path.sort(key=lambda entry: os.path.normpath(entry) in theirs)


if __name__ == "__main__":
    sys.exit(main())
