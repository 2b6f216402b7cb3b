"""The options that say what runs on the GPUs: how deep a look is, and which micro-kernels."""

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

_LEVELS: tuple[str, ...] = get_args(Level)
_MODES: tuple[str, ...] = get_args(Mode)
_OPTIONS = ("kernels", "gpu", "modes", "busy_ok", "evidence")
LOOKS = ("quick", "standard", "deep")


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--level",
        choices=LOOKS,
        metavar="LEVEL",
        help="quick: facts; standard (default): and Tensor Cores; deep: and AMP, XLA, NCCL, …",
    )
    group = parser.add_argument_group(
        "micro-kernels",
        "Matrix products on each GPU show whether its Tensor Cores are used: L0 by the\n"
        "driver alone, L1 with the target's cuBLAS, L2 in its framework.",
    )
    group.add_argument(
        "--kernels",
        metavar="LEVELS",
        type=_words(_LEVELS),
        help="these levels only, as L0 or L0,L1 (default: all)",
    )
    add_gpus(group)
    group.add_argument(
        "--modes",
        metavar="MODES",
        type=_words(_MODES),
        help=f"these of {', '.join(_MODES)}; fp32, the control, always runs (default: all)",
    )
    group.add_argument(
        "--evidence",
        choices=("quick", "full"),
        metavar="HOW",
        help="quick (default), or full: sample the GPU's counters, too, which takes longer",
    )
    parser.rare("--kernels", "--gpu", "--modes", "--busy-ok", "--evidence")


def add_gpus(parser: argparse._ActionsContainer) -> None:
    """Which GPUs something runs on."""
    parser.add_argument(
        "--gpu",
        metavar="N",
        type=_indices,
        action="extend",
        help="on these GPUs only, numbered as in nvidia-smi: 0 or 0,2 (default: all that"
        " CUDA_VISIBLE_DEVICES leaves)",
    )
    parser.add_argument("--busy-ok", action="store_true", help="also on GPUs that are in use")


def refuse(arguments: argparse.Namespace, other: str) -> None:
    """Raise UsageError where kernels were chosen and ``other`` ("--from") leaves none to run."""
    level = f"--level {arguments.level}" if arguments.level else ""
    for option in [*_given(arguments), *([level] if level else [])]:
        raise UsageError(
            f"{option} and {other} cannot be used together: with {other} nothing is run"
        )


def wanted(
    arguments: argparse.Namespace, only: Collection[str] = (), skip: Collection[str] = ()
) -> Kernels | None:
    """What the options ask for; None where nothing is to run on a GPU.

    only, skip: the codes and areas of checks that were chosen: where those leave out all that something is
    run for, it is not. Acceleration systems that are named there are run at any level but a lower one
    that was asked for. Raises UsageError for options that contradict each other.
    """
    given = _given(arguments)
    quick = "--level quick" if arguments.level == "quick" else ""
    systems = _systems(arguments, only, skip)
    products = not quick and _products(arguments, only, skip)
    of_products = [option for option in given if option not in ("--gpu", "--busy-ok")]
    if quick and (of_products or (given and not systems)):
        raise UsageError(f"{(of_products or given)[0]} and {quick} cannot be used together")
    if not products and not quick and (of_products or (given and not systems)):
        raise UsageError(
            f"{(of_products or given)[0]} and {'--skip' if AREA in skip else '--only'} cannot be used"
            f" together: the checks of {AREA}, for which kernels are run, are left out"
        )
    if not products and not systems:
        return None
    return Kernels(
        products=products,
        levels=arguments.kernels or [],
        modes=arguments.modes or [],
        gpus=arguments.gpu or [],
        busy_ok=arguments.busy_ok,
        full=arguments.evidence == "full",
        systems=systems,
    )


def _products(arguments: argparse.Namespace, only: Collection[str], skip: Collection[str]) -> bool:
    """Whether a check that was chosen judges what the kernels find."""
    if not only and not skip:
        return True
    from ..checks import sections

    unused = () if getattr(arguments, "expect", None) else ("expected",)  # without a profile
    return sections.is_read("micro_kernels", only, [*skip, *unused])


def _systems(
    arguments: argparse.Namespace, only: Collection[str], skip: Collection[str]
) -> list[str]:
    """The acceleration systems to run."""
    deep = arguments.level == "deep"
    if not deep and not only:
        return []
    from ..checks.engine import is_chosen
    from ..checks.registry import all_systems

    found = [
        system
        for system, checks in all_systems().items()
        if any(is_chosen(check, only, skip) for check in checks)
    ]
    if found and arguments.level in ("quick", "standard"):
        raise UsageError(
            f"--level {arguments.level} does not run {', '.join(found[:3])}, which --only names",
            hint="leave --level out, or use --level deep",
        )
    return found


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
