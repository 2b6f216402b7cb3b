"""The check on the process that imports a framework: whether it survives that."""

from __future__ import annotations

import re

from ..driver.hang import silent
from ..reading import FRAMEWORKS, Framework, Probe, Skip, SnapshotView
from ..target import python, variables_if_known
from ..verdicts import Passed, Unjudged, Verdict, Verdicts, about, check, fail, warn, word
from .causes import SIGNALS
from .error_files import NO_MEMORY, limited_to

_DIES = "the framework crashes or hangs"
_KILLED = (
    "Importing {framework} and asking for its GPUs kills the process (signal {signal}): {why}."
)
_OTHER_CPU = "Use a CPU with these instructions, or a build without them."
_MORE_MEMORY = "Give it more memory (the container's limit counts)."
_SEE_WHERE = "See in which library it crashes, and install that again."
_AVX = "tensorflow's requirement of AVX since 1.6"
ILLEGAL_INSTRUCTION = fail("illegal-instruction", _DIES, _KILLED, _OTHER_CPU, source=_AVX)
KILLED = fail("killed", _DIES, _KILLED, _MORE_MEMORY)
CRASHED = fail("crashed", _DIES, _KILLED, _SEE_WHERE)
STUCK = fail(
    "stuck-in-kernel",
    _DIES,
    "The process that asked {framework} for its GPUs hangs in the kernel and cannot be killed.",
    "See the kernel's log, then reboot.",
    "sudo dmesg | tail -50",
    "sudo reboot",
)
UNKNOWN_FLAG = fail(
    "unknown-flag",
    _DIES,
    "{variable} holds {flags}, which this {framework} does not know: XLA ends the process.",
    "Take it out of {variable}.",
)
LIMITED = fail(
    "address-space-limit",
    _DIES,
    "Importing {framework} ends the process: it may use only {mib} MiB of memory (ulimit -v).",
    "Lift the limit where it is set: the shell's start files, limits.conf, the batch system.",
    "ulimit -S -v unlimited",
)
_FLAGS = re.compile(r"Unknown flags? in (?P<variable>\w*XLA_FLAGS): (?P<flags>\S.{0,200})")
SLOW = warn(
    "no-answer-in-time",
    "importing {framework} took longer than {seconds} s",
    "Importing {framework} and asking it for its GPUs took longer than the {seconds} s that it was given: it"
    " hangs, or is slow.",
    "Give it longer once (--deadline). If it does not end then either, import it by hand: after a minute its"
    " stack shows where it waits. In Python's own files it is the disk or a network mount; in the driver it"
    " is a GPU, and the kernel's log says which.",
)


@check(
    "FRM-007",
    title="The framework's process survives",
    causes=[ILLEGAL_INSTRUCTION, KILLED, CRASHED, UNKNOWN_FLAG, LIMITED, STUCK, SLOW],
    about="Importing a framework and asking it for its GPUs loads hundreds of megabytes of native code. If"
    " that code crashes there is no Python error: the process dies by a signal.",
    sources=("signal(7)",),
    follows=("HOST-002", "DRV-010", "PKG-001", "PKG-017", "ENV-011"),
)
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
        return STUCK.found(
            subjects, [view.evidence(f"target.{name}.stuck", shown)], framework=title
        )
    if probe.outcome == "ok":
        return Passed(f"{title} answered in {probe.seconds:.1f} s")
    words = [view.evidence(f"target.{name}", one) for one in (probe.reason, probe.evidence) if one]
    again = f"{python(view)} -X faulthandler -c 'import {name}'"
    if silent(probe) and not any(map(silent, (view.machine.nvml, view.machine.cuda))):
        return SLOW.found(
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
        return UNKNOWN_FLAG.found(
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
        return LIMITED.found(subjects, words, framework=title, mib=mib)
    signal = re.search(r"signal (\d+)", probe.reason)
    if probe.outcome != "crashed" or signal is None:
        return Unjudged("could-not-run", f"{title}: {probe.reason or probe.outcome}", subjects)
    number = int(signal[1])
    cause, look = {
        4: (ILLEGAL_INSTRUCTION, ["grep -o -w -m1 -e avx -e avx2 /proc/cpuinfo"]),
        9: (KILLED, ["sudo dmesg | grep -i oom"]),
    }.get(number, (CRASHED, []))
    if cause is CRASHED and variables_if_known(view).get("LD_LIBRARY_PATH"):
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
