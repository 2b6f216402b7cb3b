"""`envcheck`, and `python -m envcheck`."""

import sys


def main() -> int:
    if sys.argv[1:] in (["--version"], ["-V"]):  # no parser, no imports: scripts ask this often
        from . import __version__

        print(f"envcheck {__version__}")
        return 0
    try:
        from .cli.main import run

        return run(sys.argv[1:])
    except KeyboardInterrupt:
        print("envcheck: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
