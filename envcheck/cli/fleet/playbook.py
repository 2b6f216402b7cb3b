"""`envcheck fleet playbook`: the playbooks and roles that `envcheck fleet` runs, to read, copy and run."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from ...exit_codes import ExitCode, UsageError
from .. import files
from ..parser import Parser

EPILOG = """\
examples:
  envcheck fleet playbook rollout/
  ansible-playbook -i hosts.ini -e envcheck_bundle=/srv/bundle rollout/install.yml"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("directory", metavar="DIR", help="a new directory for the files")


def run(arguments: argparse.Namespace) -> int:
    from ...fleet.engines.ansible import CONTENT

    folder = Path(arguments.directory)
    try:
        shutil.copytree(CONTENT, folder, ignore=shutil.ignore_patterns("__pycache__"))
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}") from None
    files.write(None, "".join(f"{path}\n" for path in sorted(folder.glob("*.yml"))))
    return ExitCode.HEALTHY
