"""What is to be installed, and where from: the same words for an installation and for a bundle."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..exit_codes import UsageError
from . import stacks
from .options import flag, option
from .parser import Parser

if TYPE_CHECKING:
    from ..install.request import Request


class Groups(NamedTuple):
    """The options of one mode alone, grouped by mode in the help."""

    wheel: argparse._ArgumentGroup
    container: argparse._ArgumentGroup


def add_arguments(parser: Parser) -> Groups:
    """What says what is to be installed; more options of one mode go into its group."""
    stacks.add_arguments(parser)
    words = "such as 2.20.0 or 23.03 (default: the newest that fits)"
    option(parser, "named_release", "RELEASE", words, nargs="?")
    option(parser, "--release", "RELEASE", "same as the RELEASE argument")
    option(parser, "--python", "PYTHON", "a version (3.11) or an interpreter's path")
    option(parser, "--image", "REF", "your own container image, REGISTRY/NAME:TAG")
    flag(parser, "--allow-no-gpu", "install a GPU build without a GPU (unverified)")
    words = "host of an index or registry that may use plain http or an unverified certificate"
    repeated = {"action": "append", "default": []}
    option(parser, "--allow-insecure", "HOST", words, **repeated)
    groups = Groups(
        parser.add_argument_group("for --mode wheel"),
        parser.add_argument_group("for --mode container"),
    )
    words = "install exactly this pylock.toml, made by envcheck"
    option(groups.wheel, "--lock", "FILE", words)
    words = (
        "use this index instead of the public one, or of the stack's index of that name; repeatable"
    )
    option(groups.wheel, "--index", "[NAME=]URL", words, **repeated)
    return groups


# What says something to one mode alone.
_OF_CONTAINERS = "--image --engine"
_OF_WHEELS = "--lock --python --index"


def refuse_other_mode(arguments: argparse.Namespace) -> None:
    """Raises UsageError for an option that says nothing to the mode that was asked for."""
    other, options = (
        ("wheel", _OF_WHEELS) if arguments.mode == "container" else ("container", _OF_CONTAINERS)
    )
    for name in options.split():
        if _given(arguments, name):
            raise UsageError(
                f"{name} is for --mode {other}", hint=f"leave it out, or use --mode {other}"
            )


def request_of(arguments: argparse.Namespace) -> Request:
    """The Request in a command line; paths in it are absolute."""
    from ..install.request import Request

    stack = arguments.stack or ""
    containers = stacks.containers() if arguments.mode == "container" else {}
    flavour = containers.get(stack, "")
    if stack in containers:
        stack = ""  # the flavour says it: one request, however it was worded
    elif os.sep in stack or stack.endswith(".toml"):
        stack = _absolute(stack, "--stack")
    offline: str | None = getattr(arguments, "offline", None)
    image = getattr(arguments, "image", None) or ""
    held = offline is not None and arguments.mode == "container"  # it names an image
    return Request(
        stack=stack,
        release=arguments.release or "",
        path=_absolute(getattr(arguments, "path", None), "--path"),
        python=_python(arguments.python),
        indexes=arguments.index,
        offline="" if held else _absolute(offline, "--offline"),
        lock=_absolute(arguments.lock, "--lock"),
        allow_no_gpu=arguments.allow_no_gpu,
        allow_insecure=arguments.allow_insecure,
        mode=arguments.mode,
        flavour=flavour,  # type: ignore[arg-type]  # one of the catalogue's
        engine=getattr(arguments, "engine", None) or "",
        image=image if offline is None or not held else offline,
        held=held,
    )


def _absolute(path: str | None, option: str) -> str:
    if path is None:
        return ""
    if not path:
        raise UsageError(f"{option}: the path is empty")
    if not path.isprintable():  # bytes that are no UTF-8 are not, either
        raise UsageError(f"{option} {path!a}: the path has characters that cannot be printed")
    expanded = os.path.expanduser(path)  # noqa: PTH111 - of a user that may not be there
    if expanded.startswith("~"):
        user = expanded.partition("/")[0]
        raise UsageError(
            f"{option} {path}: there is no user whose home is {user}",
            hint=f"./{path} is a directory of that name",
        )
    return os.path.abspath(expanded)  # noqa: PTH100 - links in it stay


def _python(python: str | None) -> str:
    """A path is made absolute; a version or a command's name stays."""
    return _absolute(python, "--python") if python and os.sep in python else python or ""


def refuse_together(arguments: argparse.Namespace, option: str, others: str, why: str) -> None:
    """Raises UsageError where ``option`` and one of the others (words) are both given."""
    if not _given(arguments, option):
        return
    for other in others.split():
        if _given(arguments, other):
            by_name = other == "--stack" and arguments.named
            shown = f'"{arguments.named}"' if by_name else other
            raise UsageError(f"{option} and {shown} cannot be used together: {why}")


def _given(arguments: argparse.Namespace, option: str) -> bool:
    value = getattr(arguments, option.removeprefix("--").replace("-", "_"), None)
    return value not in (None, False, [])


def refuse_lock(arguments: argparse.Namespace) -> None:
    refuse_together(arguments, "--lock", "--release --upgrade", "the lock says what is installed")


def absolute_output(path: str) -> Path:
    return Path(_absolute(path, "--output"))
