"""The check on the process that imports a framework: whether it survives that."""

from __future__ import annotations

import re

from ..declared import declared_causes
from ..driver.hang import silent
from ..reading import FRAMEWORKS, Framework, Probe, Skip, SnapshotView
from ..target import python, variables_if_known
from ..verdicts import Passed, Unjudged, Verdict, Verdicts, about, check, word
from .causes import SIGNALS
from .error_files import NO_MEMORY, limited_to

CAUSE = declared_causes(__name__)

_FLAGS = re.compile(r"Unknown flags? in (?P<variable>\w*XLA_FLAGS): (?P<flags>\S.{0,200})")


@check("FRM-007")
def survives(view: SnapshotView) -> Verdicts:
    asked = {name: getattr(view.target, name) for name in FRAMEWORKS}
    if not any(asked.values()):
        raise Skip("no TensorFlow, PyTorch or JAX was found in the target")
    for name, probe in asked.items():
        if probe is not None:
            yield _outcome(view, name, probe)


def _outcome(view: SnapshotView, name: str, probe: Probe[Framework]) -> Verdict:
    title = FRAMEWORKS[name]
    subjects = about("framework", title)
    if probe.stuck:
        shown = "; ".join(f"{process.command}, state {process.state}" for process in probe.stuck)
        return CAUSE["stuck-in-kernel"].found(
            subjects, [view.evidence(f"target.{name}.stuck", shown)], framework=title
        )
    if probe.outcome == "ok":
        return Passed(f"{title} answered in {probe.seconds:.1f} s")
    words = [view.evidence(f"target.{name}", one) for one in (probe.reason, probe.evidence) if one]
    again = f"{python(view)} -X faulthandler -c 'import {name}'"
    if silent(probe) and not any(map(silent, (view.machine.nvml, view.machine.cuda))):
        return CAUSE["no-answer-in-time"].found(
            subjects,
            words,
            commands=_where_it_hangs(view, name),
            framework=title,
            seconds=f"{probe.seconds:.0f}",
        )
    flags = _FLAGS.search(probe.evidence)
    if flags is not None:
        variable = flags["variable"]
        there = variables_if_known(view).get(variable, "").split()
        rest = " ".join(one for one in there if one not in flags["flags"].split())
        command = f"export {word(f'{variable}={rest}')}" if rest else f"unset {variable}"
        return CAUSE["unknown-flag"].found(
            subjects,
            [view.evidence(f"target.{name}", flags[0])],
            commands=[command],
            framework=title,
            variable=variable,
            flags=flags["flags"],
        )
    mib = limited_to(view)
    if mib and NO_MEMORY.search(probe.evidence):
        words.append(view.evidence("machine.host.address_space_kib"))
        return CAUSE["address-space-limit"].found(subjects, words, framework=title, mib=mib)
    signal = re.search(r"signal (\d+)", probe.reason)
    if probe.outcome != "crashed" or signal is None:
        return Unjudged("could-not-run", f"{title}: {probe.reason or probe.outcome}", subjects)
    number = int(signal[1])
    cause, look = {
        4: (CAUSE["illegal-instruction"], ["grep -o -w -m1 -e avx -e avx2 /proc/cpuinfo"]),
        9: (CAUSE["killed"], ["sudo dmesg | grep -i oom"]),
    }.get(number, (CAUSE["crashed"], []))
    if cause is CAUSE["crashed"] and variables_if_known(view).get("LD_LIBRARY_PATH"):
        look = [f"env -u LD_LIBRARY_PATH {again}"]  # whether one of its libraries crashes
    return cause.found(
        subjects,
        words,
        commands=[*look, again],
        framework=title,
        signal=number,
        why=SIGNALS.get(number, "the reason is not known"),
    )


def _where_it_hangs(view: SnapshotView, name: str) -> list[str]:
    script = f"import faulthandler; faulthandler.dump_traceback_later(60); import {name}"
    return [
        "envcheck doctor --deadline 600",
        f"{python(view)} -c '{script}'",
        f"py-spy dump --native --pid $(pgrep -n -f 'import {name}')"
        "  # from another terminal, where py-spy is installed",
        f'df -hT "$({python(view)} -c "import sys; print(sys.prefix)")"',
        "sudo dmesg | grep -iE 'nvrm|xid|nfs|blocked for more than'",
    ]
