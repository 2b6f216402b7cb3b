"""The options that say what runs on the GPUs: how deep a look is, and which micro-kernels."""

from __future__ import annotations

import argparse
from collections.abc import Collection

from ..collection import Kernels
from ..collector import options
from ..exit_codes import UsageError
from ..suggestions import did_you_mean
from .parser import Parser

AREA = "tensorcores"

LOOKS: tuple[str, ...] = options.LOOKS
add_gpus = options.add_gpus


def add_arguments(parser: Parser) -> None:
    options.add_arguments(parser, did_you_mean)


def refuse(arguments: argparse.Namespace, other: str) -> None:
    """Raise UsageError where kernels were chosen and ``other`` ("--from") leaves none to run."""
    level = f"--level {arguments.level}" if arguments.level else ""
    for option in [*options.given(arguments), *([level] if level else [])]:
        raise UsageError(
            f"{option} and {other} cannot be used together: with {other} nothing is run"
        )


def wanted(
    arguments: argparse.Namespace, only: Collection[str] = (), skip: Collection[str] = ()
) -> Kernels | None:
    """What the options ask for; None where nothing is to run on a GPU. only, skip: the codes and areas of
    checks that were chosen: where those leave out all that something is run for, it is not. Acceleration
    systems that are named there are run at any level but a lower one that was asked for. Raises UsageError
    for options that contradict each other."""
    given = options.given(arguments)
    quick = "--level quick" if arguments.level == "quick" else ""
    systems = _systems(arguments, only, skip)
    products = not quick and _products(arguments, only, skip)
    of_products = [option for option in given if option not in ("--gpu", "--busy-ok")]
    if quick and (of_products or (given and not systems)):
        raise UsageError(f"{(of_products or given)[0]} and {quick} cannot be used together")
    if not products and not quick and (of_products or (given and not systems)):
        raise UsageError(
            f"{(of_products or given)[0]} and {'--skip' if AREA in skip else '--only'} cannot be used"
            f" together: the checks of {AREA}, which need the kernels, do not run"
        )
    if not products and not systems:
        return None
    return Kernels(**options.chosen(arguments, systems, products))


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
