"""`envcheck completion SHELL`: completion for bash, zsh and tcsh."""

from __future__ import annotations

import argparse

from ..exit_codes import ExitCode
from . import files

EPILOG = """\
bash:  envcheck completion bash > ~/.local/share/bash-completion/completions/envcheck
zsh:   envcheck completion zsh > ~/.zfunc/_envcheck    (with ~/.zfunc in fpath)"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"))
    parser.epilog = EPILOG


def run(arguments: argparse.Namespace) -> int:
    import shtab

    from .main import build_parser

    files.write(None, shtab.complete(build_parser(), shell=arguments.shell) + "\n")
    return ExitCode.HEALTHY
