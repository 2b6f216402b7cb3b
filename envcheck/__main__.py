"""`envcheck`, and `python -m envcheck`."""

import os
import sys


def main() -> int:
    _fill_closed_streams()
    try:
        if sys.argv[1:] in (["--version"], ["-V"]):  # no parser, no imports: scripts ask this often
            return _version()
        from .cli.main import run

        return run(sys.argv[1:])
    except KeyboardInterrupt:
        print("envcheck: interrupted", file=sys.stderr)
        return 130


def _version() -> int:
    from . import __version__

    try:
        print(f"envcheck {__version__}", flush=True)
    except OSError:
        from .cli.main import run

        return run(["--version"])  # which knows what to say of a standard output like this
    return 0


def _fill_closed_streams() -> None:
    """Give what the caller closed (`envcheck >&-`) the null device, so that no file gets its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
            setattr(sys, name, open(number, "w" if number else "r"))  # noqa: PTH123, SIM115


if __name__ == "__main__":
    sys.exit(main())
