"""`envcheck completion SHELL`: completion for bash, zsh, fish and tcsh."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from ..exit_codes import ExitCode
from . import files, stacks
from .options import option

EPILOG = """\
bash:
  mkdir -p ~/.local/share/bash-completion/completions
  envcheck completion bash > ~/.local/share/bash-completion/completions/envcheck
zsh (with "fpath+=~/.zfunc" before "compinit" in ~/.zshrc):
  envcheck completion zsh > ~/.zfunc/_envcheck
fish:
  envcheck completion fish > ~/.config/fish/completions/envcheck.fish"""

_PATHS = ("FILE", "DIR", "BUNDLE", "PLACE", "WHERE")  # what stands for a path in the help


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    shells = ("bash", "zsh", "fish", "tcsh")
    option(parser, "shell", "SHELL", "%(choices)s", choices=shells)


def run(arguments: argparse.Namespace) -> int:
    import shtab

    from ..checks.registry import all_checks, areas
    from ..install.catalogue import load
    from ..reports.explain import PAGES
    from .main import build_parser

    parser = build_parser()
    named = [*areas(), *(check.code for check in all_checks())]
    for action in _actions(parser):
        if action.metavar in _PATHS:
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # shtab's way
        elif action.metavar == "CHECK":
            action.choices = named
        elif action.metavar == "WORD":
            action.choices = [*PAGES, *named]
        elif action.metavar == "STACK":
            action.choices = [*load.names(), *stacks.containers()]
    files.write(None, shtab.complete(parser, shell=arguments.shell) + "\n")
    return ExitCode.HEALTHY


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """All options and arguments of all commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
        else:
            yield action
