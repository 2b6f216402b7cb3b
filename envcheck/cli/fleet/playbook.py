"""`envcheck fleet playbook`: the playbooks and roles that `envcheck fleet` runs, to read, copy and run."""

from __future__ import annotations

import argparse
from pathlib import Path

from ...exit_codes import ExitCode
from .. import files
from ..parser import Parser

EPILOG = """\
examples:
  envcheck fleet playbook install                     the playbook and its role
  envcheck fleet playbook install --output rollout/   as files
  ansible-playbook -i hosts.ini -e envcheck_bundle=/srv/bundle rollout/install.yml"""

NAMES = ("install", "rollback", "collect")


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    parser.add_argument(
        "name", nargs="?", choices=NAMES, default="install", metavar="NAME", help=", ".join(NAMES)
    )
    parser.add_argument(
        "--output", metavar="DIR", help="write the files into this directory, which is new or empty"
    )


def run(arguments: argparse.Namespace) -> int:
    from ...fleet.rollout import playbooks

    found = playbooks.files_of(arguments.name)
    if arguments.output is None:
        files.write(None, playbooks.text(found))
        return ExitCode.HEALTHY
    folder = Path(arguments.output)
    written = playbooks.write(found, folder)
    files.write(None, "".join(f"{path}\n" for path in written))
    return ExitCode.HEALTHY
