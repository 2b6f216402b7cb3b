"""`envcheck doctor`: from facts to a diagnosis."""

from __future__ import annotations

import argparse
import functools
import importlib
from typing import TYPE_CHECKING

from .. import json_text, plugins
from ..exit_codes import ExitCode, UsageError
from ..suggestions import did_you_mean
from . import files, kernels, options, sources
from .options import option
from .parser import Parser
from .style import style_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..collection import Collected
    from ..facts.profile import Profile
    from ..findings.model import Diagnosis
    from ..reports.model import Report

EPILOG = """\
examples:
  envcheck doctor                      this machine, and the active environment
  envcheck doctor --from machine.json  a Snapshot that somebody sent
  envcheck doctor --level deep         and AMP, XLA, NCCL, …: do they engage?
  envcheck doctor --only driver gpu    only two areas (or codes, or systems)
  envcheck doctor --target image:REF   a fresh container, compared with the host
  envcheck doctor --gpu 0 --kernels L0  one GPU's Tensor Cores, driver alone
  envcheck doctor --format junit --output report.xml --fail-on warn

exit codes: 0 no check failed, 1 one did, 2 wrong usage or unreadable input,
4 none failed, but one that applies could not run"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    where = parser.add_mutually_exclusive_group()
    options.add_target(where)
    options.add_from(where, "diagnose the Snapshot in this file")
    words = "also compare the machine with this profile (envcheck collect --as-profile writes one)"
    option(parser, "--expect", "FILE", words)
    options.add_report(parser)
    options.add_container(parser)
    options.add_deadline(parser)
    kernels.add_arguments(parser)
    for name, what in (("--only", "run only"), ("--skip", "do not run")):
        words = f"{what} these: DRV-002, driver (an area), xla"
        option(parser, name, "CHECK", words, nargs="+", action="extend", default=[])
    options.add_exit(parser)


def run(arguments: argparse.Namespace) -> int:
    only, skip = _selection(arguments.only), _selection(arguments.skip)
    profile = None
    if arguments.expect is not None:
        from ..attributes import profile_reading as profiles

        profile = profiles.read(arguments.expect)
    if arguments.source is not None:
        kernels.refuse(arguments, "--from")
        options.refuse_container(arguments, "--from")
    wanted = kernels.wanted(arguments, only, skip)
    files.check_places(arguments, "source", "expect")
    if arguments.source is not None:
        collected = sources.read_snapshot(arguments.source)
    else:
        look = functools.partial(
            sources.live,
            arguments.target,
            engine=arguments.engine,
            entrypoint=arguments.entrypoint,
            deadline=arguments.deadline,
            kernels=wanted,
            quiet=arguments.quiet,
            meanwhile=lambda: _load(arguments.format),
        )
        collected = _chosen(look, only, skip, profile) if only or skip else look()
    files.save(arguments, collected.snapshot)
    if plugins.entry_points("envcheck.stacks"):
        from ..install.catalogue import load

        load.names()  # reads them, so that the check on plug-ins knows what is wrong with them
    from ..checks.engine import diagnose

    diagnosis = diagnose(collected.snapshot, only, skip, profile=profile)
    files.write(arguments.output, _render(arguments, collected, diagnosis))
    return ExitCode.HEALTHY if arguments.exit_zero else _exit_code(diagnosis, arguments.fail_on)


def _chosen(
    look: Callable[..., Collected], only: list[str], skip: list[str], profile: Profile | None
) -> Collected:
    """What the chosen checks need; everything, where they read more of this machine than of others."""
    from ..checks import sections

    needed = sections.needed(only, skip)
    collected = look(only=needed)
    missing = sections.missing(collected.snapshot, needed, only, skip, profile)
    return look() if missing else collected


def _load(form: str) -> None:
    """Import what judges and renders; called while the collector works."""
    import msgspec

    from ..checks.registry import areas, checks_without
    from ..facts.snapshot import Snapshot

    msgspec.json.Decoder(Snapshot)  # which looks at the types once, for all that come
    pages = ["reports.terminal"] if form == "text" else []
    for module in ["checks.engine", "reports.model", *pages]:
        importlib.import_module(f"envcheck.{module}")
    checks_without(frozenset(n for n, one in areas().items() if one.section or one.of_target))


def _render(arguments: argparse.Namespace, collected: Collected, diagnosis: Diagnosis) -> str:
    from ..reports.model import build

    report = build(collected.snapshot, diagnosis)
    match arguments.format:
        case "text":
            return _text(arguments, collected, report)
        case "json":
            return json_text.render(report)
        case "junit":
            from ..reports import junit

            return junit.render(report, fail_on=arguments.fail_on)
        case "openmetrics":
            from ..reports import openmetrics

            return openmetrics.render(report)
        case "markdown":
            from ..reports import markdown

            return markdown.render(report, collected.snapshot)
        case "html":
            from ..reports import machine_page

            return machine_page.render(report, collected.snapshot)
        case _:
            from ..reports import foreign

            return foreign.render(arguments.format, report)


def _text(arguments: argparse.Namespace, collected: Collected, report: Report) -> str:
    from ..invocation import in_place
    from ..reports import terminal

    style = style_for(arguments.output)._asdict()
    elsewhere = arguments.source is not None
    if arguments.quiet:
        return terminal.brief(report, collected.snapshot, **style)
    return terminal.render(
        report,
        collected.snapshot,
        **style,
        restore=collected.restore,
        in_place=in_place,
        elsewhere=elsewhere,
        implied=not elsewhere and arguments.target is None,
        verbose=arguments.verbose,
    )


def _exit_code(diagnosis: Diagnosis, fail_on: str) -> ExitCode:
    from ..reports.results import fails

    if any(fails(result, fail_on) for result in diagnosis.results):
        return ExitCode.PROBLEMS
    outcomes = {result.outcome for result in diagnosis.results}
    return ExitCode.COULD_NOT_LOOK if "could-not-run" in outcomes else ExitCode.HEALTHY


def _selection(words: list[str]) -> list[str]:
    """Codes and areas as the registry writes them; a system stands for its checks' codes.

    Raises UsageError for one that does not exist.
    """
    if not words:
        return []
    from ..checks.registry import all_checks, all_systems, areas

    codes = {check.code for check in all_checks()}
    systems = all_systems()
    chosen = []
    for word in (part for words_ in words for part in words_.split(",") if part):
        if word.upper() in codes:
            chosen.append(word.upper())
        elif word.lower() in areas():
            chosen.append(word.lower())
        elif of_it := [name for name in systems if _is_named_by(word, name)]:
            chosen += sorted({check.code for name in of_it for check in systems[name]})
        else:
            near = did_you_mean(word, [*areas(), *systems, *codes])
            known = "" if near else ": there are " + ", ".join([*areas(), *systems])
            raise UsageError(
                f"{word}: not a code, an area or an acceleration system{near}{known}",
                hint="envcheck explain lists all codes",
            )
    return chosen


def _is_named_by(word: str, system: str) -> bool:
    """Whether a word means that system: "xla", "TF-TRT", "tftrt", and "amp" all kinds of it."""
    word, system = word.lower(), system.lower()
    return system == word or system.startswith(f"{word}-") or system.replace("-", "") == word
