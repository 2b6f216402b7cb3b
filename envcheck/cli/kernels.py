"""The options that choose among the micro-kernels, for every command that runs them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection
from typing import get_args

from ..collection import Kernels
from ..exit_codes import UsageError
from ..facts.micro_kernels import Level, Mode
from ..suggestions import did_you_mean
from .parser import Parser

AREA = "tensorcores"
CODES = "TC-"  # what the codes of that area begin with

_LEVELS: tuple[str, ...] = get_args(Level)
_MODES: tuple[str, ...] = get_args(Mode)
_OPTIONS = ("kernels", "gpu", "modes", "busy_ok", "evidence", "no_kernels")


def add_arguments(parser: Parser) -> None:
    group = parser.add_argument_group(
        "micro-kernels",
        "Matrix products on each GPU show whether its Tensor Cores are used: L0 by the\n"
        "driver alone, L1 with the target's cuBLAS, L2 in its framework.",
    )
    group.add_argument("--no-kernels", action="store_true", help="run none on the GPUs")
    group.add_argument(
        "--kernels",
        metavar="LEVELS",
        type=_words(_LEVELS),
        help="these levels only, as L0 or L0,L1 (default: all)",
    )
    group.add_argument(
        "--gpu",
        metavar="N",
        type=_indices,
        action="extend",
        help="on these GPUs only, numbered as in nvidia-smi: 0 or 0,2 (default: all that"
        " CUDA_VISIBLE_DEVICES leaves)",
    )
    group.add_argument(
        "--modes",
        metavar="MODES",
        type=_words(_MODES),
        help=f"these of {', '.join(_MODES)}; fp32, the control, always runs (default: all)",
    )
    group.add_argument("--busy-ok", action="store_true", help="also on GPUs that are in use")
    group.add_argument(
        "--evidence",
        choices=("quick", "full"),
        metavar="HOW",
        help="quick (default), or full: sample the GPU's counters, too, which takes longer",
    )
    parser.rare("--kernels", "--gpu", "--modes", "--busy-ok", "--evidence")


def refuse(arguments: argparse.Namespace, other: str) -> None:
    """Raise UsageError where kernels were chosen and ``other`` ("--from") leaves none to run."""
    for option in _given(arguments):
        raise UsageError(
            f"{option} and {other} cannot be used together: with {other} no kernel is run"
        )


def wanted(
    arguments: argparse.Namespace, only: Collection[str] = (), skip: Collection[str] = ()
) -> Kernels | None:
    """What the options ask for; None where no kernel is to run.

    only, skip: the codes and areas of checks that were chosen: where those leave out all that the
    kernels are run for, none is. Raises UsageError for options that contradict each other.
    """
    given = _given(arguments)
    if arguments.no_kernels:
        if len(given) > 1:
            raise UsageError(f"{given[0]} and --no-kernels cannot be used together")
        return None
    if AREA in skip or (only and not any(word == AREA or word.startswith(CODES) for word in only)):
        for option in given:
            raise UsageError(
                f"{option} and {'--skip' if AREA in skip else '--only'} cannot be used together: the checks"
                f" of {AREA}, for which kernels are run, are left out"
            )
        return None
    return Kernels(
        levels=arguments.kernels or [],
        modes=arguments.modes or [],
        gpus=arguments.gpu or [],
        busy_ok=arguments.busy_ok,
        full=arguments.evidence == "full",
    )


def _given(arguments: argparse.Namespace) -> list[str]:
    return ["--" + name.replace("_", "-") for name in _OPTIONS if getattr(arguments, name)]


def _words(choices: tuple[str, ...]) -> Callable[[str], list[str]]:
    """A converter of words with commas between them, in any case, to the choices that they name."""
    known = {choice.lower(): choice for choice in choices}

    def words(text: str) -> list[str]:
        asked = [word.strip() for word in text.split(",")]
        wrong = [word for word in asked if word.lower() not in known]
        if wrong:
            near = did_you_mean(wrong[0], choices)
            raise argparse.ArgumentTypeError(
                f"{wrong[0]!r} is not one of {', '.join(choices)}{near}"
            )
        return [known[word.lower()] for word in asked]

    return words


def _indices(text: str) -> list[int]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and len(word) < 5 for word in words):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a GPU's number in nvidia-smi: write 0 or 0,2"
        )
    return [int(word) for word in words]
