"""What a stack is called on the command line: by its name alone, or by --stack and --mode."""

from __future__ import annotations

import argparse

from ..exit_codes import UsageError
from . import messages
from .options import option
from .parser import Parser

# What else people call a stack.
_ALIASES = {"tensorflow-gpu": "tensorflow", "pytorch": "torch", "pytorch-cpu": "torch-cpu"}


def add_arguments(parser: Parser, without: str = "what fits best") -> None:
    """Which stack, by its name alone or by options; ``without`` says what it is where none is named."""
    words = (
        "tensorflow, tensorflow-cpu, nvidia-tf1, torch, jax …, ngc-tf2, ngc-torch … (containers)"
    )
    words += f", or a TOML file of your own (default: {without})"
    option(parser, "named", "STACK", words, nargs="?")
    option(parser, "--stack", "STACK", "same as the STACK argument")
    words = "wheel (a virtual environment) or container, if no STACK is named (default: wheel)"
    parser.add_argument("--mode", choices=("wheel", "container"), help=words)


def settle(arguments: argparse.Namespace) -> None:
    """Let ``stack`` and ``mode`` say what the command line means, whichever way it says it. Raises
    UsageError where its words contradict each other, or name a stack that does not exist."""
    from ..install.catalogue import load

    named, stack, mode = arguments.named or "", arguments.stack or "", arguments.mode
    if named and stack and named != stack:
        raise UsageError(f'"{named}" and --stack {stack} are two stacks: name one of them')
    stack = _without_release(arguments, named or stack)
    if stack in _ALIASES:
        messages.say(f"{stack} is the stack {_ALIASES[stack]} here")
        stack = _ALIASES[stack]
    images = containers()
    if stack and stack not in images and not (load.is_known(stack) or load.is_file(stack)):
        raise load.unknown(stack, [*load.names(), *images])
    of_images = stack in images or getattr(arguments, "image", None)
    meant = "container" if of_images else "wheel"
    if stack and mode and mode != meant:
        kind = "a container" if meant == "container" else "a virtual environment of wheels"
        raise UsageError(
            f'"{stack}" is {kind}, which contradicts --mode {mode}: leave out one of them',
            f"the containers are {' and '.join(images)}" if mode == "container" else "",
        )
    arguments.stack = stack or None
    arguments.mode = mode or meant


def _without_release(arguments: argparse.Namespace, stack: str) -> str:
    """The stack's name alone: its release may follow it after "==" or as a word of its own."""
    name, double, attached = stack.partition("==")
    given = [getattr(arguments, "release", None), getattr(arguments, "named_release", None)]
    releases = list(dict.fromkeys(release for release in [*given, attached] if release))
    if len(releases) > 1:
        raise UsageError(f"{' and '.join(releases)} are two releases: name one of them")
    if double and (not name or not attached or "release" not in arguments):
        known = f"envcheck releases {name}" if name else "envcheck releases"
        raise UsageError(f'"{stack}" is not the name of a stack', f"{known} lists the releases")
    arguments.release = releases[0] if releases else None
    return name


def containers() -> dict[str, str]:
    """The stacks that are containers, with the flavour that each stands for."""
    from ..install.catalogue.containers import flavours

    return {stack.name: stack.flavour for stack in flavours()}
