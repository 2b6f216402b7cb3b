"""Checks on XLA: what was to be compiled was compiled, ran, and gives what it gives without XLA."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from packaging.version import Version

from ...data.capabilities import capability
from ...data.versions import parse_version
from ...facts.acceleration import SystemTrial
from ...facts.base import known
from ...facts.evidence import Evidence
from ...facts.missing import CannotJudge
from ...facts.target import FRAMEWORKS, Framework
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Remedy, Unjudged, Verdict
from ...findings.shell import word
from ..driver_state import driver_version
from ..framework.compiler_tools import XlaTools, bring_tools, newer_ptxas, xla_tools
from ..registry import check
from ..system_commands import on_system
from ..target import framework, python, variables
from .common import NO_FRAMEWORK, Seen, each_run, failed, number

# A sum of 32 values of 32 bits is off by less than 32 roundings of 2**-24 in either order, and functions such
# as exp and sin by a few more; what is wrong is wrong by far more than this.
_BOUND = 1e-4
_NO_FLAG = re.compile(r"Unknown flags? in (\w*XLA_FLAGS): (--[\w-]+)")
_NO_CHIP = re.compile(
    r"Value '(sm_\d+\w?)' is not defined for option 'gpu-name'|ptxas does not support CC (\d+\.\d+)"
)
_OLD_PTXAS = re.compile(r"Unsupported \.version (\d+\.\d+); current version is '?(\d+\.\d+)")
_NO_LIBDEVICE = re.compile(r"libdevice not found|Can't find libdevice|libdevice\.10\.bc")
_NO_PTXAS = re.compile(
    r"ptxas not found|[Cc]ould(?:n't| not) (?:find (?:a suitable version of )?|invoke )ptxas|No PTX"
    r" compilation provider"
)
_OLD_DRIVER = re.compile(r"UNSUPPORTED_PTX_VERSION|unsupported toolchain")
_NO_CODE = re.compile(r"NO_BINARY_FOR_GPU|no kernel image is available|CUDA_ERROR_INVALID_PTX")
_CUDA = re.compile(r"\b(CUDA_ERROR_\w{1,60}|CUDNN_STATUS_\w{1,60})")
_TAKEN = re.compile(
    r"(?i)busy or unavailable|CUDA_ERROR_DEVICE_UNAVAILABLE|CUDA_ERROR_OUT_OF_MEMORY|RESOURCE_EXHAUSTED"
)
_WITHOUT_XLA = re.compile(r"(?i)not (?:built|compiled) with XLA|XLA_\w{1,20} is not registered")
# What keeps clusters from being made, in the words of TF_XLA_FLAGS.
_OFF = re.compile(
    r"--(tf_xla_auto_jit=(?:-\d+|single-gpu\(-\d+\))|tf_xla_min_cluster_size=\d{3,9}"
    r"|tf_xla_clustering_fuel=\d{1,2}|tf_xla_ops_to_cluster=[^\s]+)(?=\s|$)"
)


class _NotCompiled(NamedTuple):
    """Why nothing was compiled: the end of a sentence, the line that says so, and what to do."""

    says: str
    words: str
    remedy: Remedy


@check(
    "ACC-007",
    title="XLA",
    problem="XLA is on and compiles nothing",
    about=(
        "A small function is compiled by XLA, as tf.function(jit_compile=True), TensorFlow 1's "
        "tf.xla.experimental.compile or jax.jit do it, and run beside itself uncompiled. It is engaged where "
        "XLA wrote down a module that it compiled (in JAX: where Python runs once for two calls), without "
        "XLA none, and both give the same to 1 in 10,000. A failure where nothing is compiled, where "
        "compiling stops with an error or ends the process, or where the results differ; the cause is looked "
        "for in what XLA logs, in ptxas and libdevice, and in the variables that it reads."
    ),
    sources=(
        "jax.disable_jit, tf.function and XLA's debug options in their documentation",
        "tensorflow#58681, #35423; jax#25344, #6799; openxla/xla#5932; tensorflow/serving#1821",
    ),
    follows=(*NO_FRAMEWORK, "FRM-008", "FRM-009"),
    systems=("xla",),
)
def xla_compiles(view: SnapshotView) -> Iterator[Verdict]:
    def judge(seen: Seen) -> Iterator[Verdict]:
        name = "jit" if seen.run.framework == "jax" else "jit_compile"
        yield _judged(view, seen, seen.trial(name), "XLA", _compiled, None)

    yield from each_run(view, "xla", judge, absent="the target has neither TensorFlow nor JAX")


@check(
    "ACC-008",
    title="XLA clustering",
    problem="XLA's auto-clustering is on and clusters nothing",
    about=(
        "A small graph is run with TensorFlow's auto-clustering on (tf.config.optimizer.set_jit, "
        "global_jit_level) and off. It is engaged where the graph that ran has clusters (_XlaCompile, "
        "_XlaRun), XLA compiled a module of them, and neither is there with it off. TensorFlow clusters for "
        "GPUs alone unless TF_XLA_FLAGS holds --tf_xla_cpu_global_jit, with which it is run where there is "
        "no GPU. A failure where there is no cluster, no module, or another result: "
        "TF_XLA_FLAGS=--tf_xla_auto_jit=-1, a smallest cluster size that no graph has, or what keeps XLA "
        "from compiling at all."
    ),
    sources=(
        "TensorFlow's documentation of XLA and of TF_XLA_FLAGS",
        "seen with TensorFlow 1.15.5, 2.15.1 and 2.21.0 on a CPU",
    ),
    follows=(*NO_FRAMEWORK, "FRM-008", "FRM-009", "ACC-007"),
    systems=("xla",),
)
def xla_clusters(view: SnapshotView) -> Iterator[Verdict]:
    def judge(seen: Seen) -> Iterator[Verdict]:
        trial = seen.trial("auto-clustering")
        yield _judged(view, seen, trial, "XLA's auto-clustering", _clustered, _OFF)

    yield from each_run(
        view, "xla", judge, absent="the target has no TensorFlow", framework="tensorflow"
    )


def _compiled(trial: SystemTrial) -> bool:
    """It left a module; in a JAX that does not show any, Python ran less often than it was called."""
    runs = trial.evidence.get("python_runs")
    if isinstance(runs, int):
        return runs < number(trial, "calls")
    return number(trial, "modules") > 0


def _clustered(trial: SystemTrial) -> bool:
    return number(trial, "clusters") > 0 and number(trial, "modules") > 0


def _judged(
    view: SnapshotView,
    seen: Seen,
    trial: SystemTrial | None,
    what: str,
    engaged: Callable[[SystemTrial], bool],
    off: re.Pattern[str] | None,
) -> Verdict:
    """off: what in TF_XLA_FLAGS switches it off."""
    control = next(iter(seen.controls), None)
    words = _words(seen, trial)
    if trial is None or trial.outcome in ("out-of-memory", "timeout", "not-supported"):
        return _without(view, seen, trial, what, words)
    if trial.outcome != "ok":
        if any(_WITHOUT_XLA.search(line) for line in words):
            why = f"not applicable: {seen.title} is built without XLA"
            return Unjudged("skipped", why, seen.subjects)
        if any(_TAKEN.search(line) for line in words):
            why = f"{seen.title}, {trial.name}: the GPU or its memory is taken"
            return Unjudged("could-not-run", why, seen.subjects)
        cause = _cause(view, seen, words) or _unknown(view, seen, trial)
        verb = "ends the process" if trial.outcome == "crashed" else "compiles nothing"
        return _finding(seen, trial, what, verb, cause)
    if not engaged(trial):
        switched = _switched_off(view, seen, off) or _cause(view, seen, words)
        verb = (
            "marks clusters and compiles none of them"
            if number(trial, "clusters")
            else "compiles nothing"
        )
        return _finding(seen, trial, what, verb, switched or _silent(view, seen))
    if control is None or control.outcome != "ok":
        why = f"{seen.title}: what runs without XLA did not run: {failed(seen, control)}"
        return Unjudged("could-not-run", why, seen.subjects)
    if engaged(control):
        return Unjudged("could-not-run", _everywhere(view, seen, what), seen.subjects)
    if "difference" not in trial.evidence:
        why = f"{seen.title}, {trial.name}: its result was not held against another"
        return Unjudged("could-not-run", why, seen.subjects)
    if not _difference(trial) <= _BOUND:
        return _finding(seen, trial, what, "computes something else", _differs(trial))
    return Passed(_told(view, seen, trial, words))


def _words(seen: Seen, trial: SystemTrial | None) -> list[str]:
    """What may say why: the trial's own words first."""
    own = [] if trial is None else [trial.reason]
    return [line for line in (*own, seen.run.reason, *seen.run.log) if line]


def _without(
    view: SnapshotView, seen: Seen, trial: SystemTrial | None, what: str, words: list[str]
) -> Verdict:
    """Of a trial that was not reached, took too long, or cannot be made in this version."""
    if trial is not None and trial.outcome == "not-supported":
        return Unjudged("skipped", f"not applicable: {seen.title}: {trial.reason}", seen.subjects)
    died = next((one for one in seen.run.trials if one.outcome == "crashed"), None)
    cause = _flags(view, words) if trial is None and died is not None else None
    if cause is not None and died is not None:
        return _finding(seen, died, what, "ends the process", cause)
    why = failed(seen, trial)
    name = f", {trial.name}" if trial is not None else ""
    return Unjudged("could-not-run", f"{seen.title}{name}: {why}", seen.subjects)


def _finding(seen: Seen, trial: SystemTrial, what: str, verb: str, cause: _NotCompiled) -> Finding:
    evidence = seen.evidence(trial, *seen.controls)
    if cause.words and cause.words not in trial.reason:
        evidence.append(Evidence(f"{seen.path}.log", cause.words, "its standard error"))
    return Finding(
        "fail",
        f"{what} is on in {seen.title} and {verb}{seen.where}: {cause.says}.",
        seen.subjects,
        evidence,
        cause.remedy,
        headline=f"{what} is on and {verb}: {cause.says}",
    )


def _cause(view: SnapshotView, seen: Seen, words: list[str]) -> _NotCompiled | None:
    """The first cause that these lines bear out, those that name their remedy best first."""
    facts, tools = _compilers(view, seen)
    found = _flags(view, words)
    if found is not None or facts is None:
        return found
    for pattern, explain in (
        (_NO_CHIP, _no_chip),
        (_OLD_PTXAS, _old_ptxas),
        (_NO_LIBDEVICE, _missing("libdevice.10.bc is not found")),
        (_NO_PTXAS, _missing("ptxas is not found")),
        (_OLD_DRIVER, _old_driver),
        (_NO_CODE, _no_code),
        (_CUDA, _cuda_error),
    ):
        for line in words:
            told = pattern.search(line)
            if told is not None:
                return explain(view, facts, tools, told)
    return _by_files(view, facts, tools) if seen.run.device == "gpu" else None


def _compilers(view: SnapshotView, seen: Seen) -> tuple[Framework | None, XlaTools | None]:
    facts = framework(view, seen.run.framework)
    try:
        return facts, None if facts is None else xla_tools(facts)
    except CannotJudge:
        return facts, None


def _flags(view: SnapshotView, words: list[str]) -> _NotCompiled | None:
    for line in words:
        told = _NO_FLAG.search(line)
        if told is not None:
            name, flag = told[1], told[2]
            return _NotCompiled(
                f"{name} holds {flag}, which this build does not know",
                line,
                Remedy("Take it out of the variable.", [_without_flag(view, name, flag)]),
            )
    return None


def _without_flag(view: SnapshotView, name: str, flag: str) -> str:
    given = variables(view).get(name, "").split()
    rest = [one for one in given if one.partition("=")[0] != flag]
    if not rest or len(rest) == len(given):
        return f"unset {name}"
    left = " ".join(rest)
    return f"export {word(f'{name}={left}')}"


def _no_chip(
    view: SnapshotView, facts: Framework, tools: XlaTools | None, told: re.Match[str]
) -> _NotCompiled:
    chip = told[1] or f"sm_{told[2].replace('.', '')}"
    digits = re.sub(r"\D", "", chip)
    row = capability(f"{digits[:-1]}.{digits[-1]}")
    first = parse_version(row.first_cuda) if row is not None else None
    return _NotCompiled(
        f"{_ptxas(tools)} does not know {chip}",
        told.string,
        _bring_newer(view, facts, tools, first),
    )


def _ptxas(tools: XlaTools | None) -> str:
    version = parse_version(known(tools.ptxas[0].version) or "") if tools and tools.ptxas else None
    return f"ptxas {version.major}.{version.minor}" if version else "ptxas"


def _bring_newer(
    view: SnapshotView, facts: Framework, tools: XlaTools | None, first: Version | None
) -> Remedy:
    if tools is not None and tools.ptxas and first is not None:
        return newer_ptxas(view, facts, tools, tools.ptxas[0], first)
    least = f" of CUDA {first} or later" if first else ""
    return Remedy(f"Put a ptxas{least} first on PATH.", ["which -a ptxas", "ptxas --version"])


def _old_ptxas(
    view: SnapshotView, facts: Framework, tools: XlaTools | None, told: re.Match[str]
) -> _NotCompiled:
    built = parse_version(known(facts.built_cuda) or "")
    return _NotCompiled(
        f"{_ptxas(tools)} knows PTX up to {told[2]}, and XLA writes {told[1]}",
        told.string,
        _bring_newer(view, facts, tools, built),
    )


def _missing(
    says: str,
) -> Callable[[SnapshotView, Framework, XlaTools | None, re.Match[str]], _NotCompiled]:
    def explain(
        view: SnapshotView, facts: Framework, tools: XlaTools | None, told: re.Match[str]
    ) -> _NotCompiled:
        remedy = (
            Remedy(
                "Name a toolkit that has both to XLA.",
                ["export XLA_FLAGS=--xla_gpu_cuda_data_dir=/usr/local/cuda"],
            )
            if tools is None
            else bring_tools(view, facts, tools)
        )
        return _NotCompiled(says, told.string, remedy)

    return explain


def _old_driver(
    view: SnapshotView, facts: Framework, tools: XlaTools | None, told: re.Match[str]
) -> _NotCompiled:
    version = known(driver_version(view)[0])
    built = known(facts.built_cuda)
    return _NotCompiled(
        f"the driver{f' {version}' if version else ''} is too old for the PTX"
        f"{f' of CUDA {built}' if built else ''}",
        told.string,
        Remedy(
            "Update the driver, or take a build for an older CUDA.",
            on_system(view, "update-driver"),
        ),
    )


def _no_code(
    view: SnapshotView, facts: Framework, tools: XlaTools | None, told: re.Match[str]
) -> _NotCompiled:
    return _NotCompiled(
        "it makes no code that runs on this GPU",
        told.string,
        Remedy(f"Take a {FRAMEWORKS[facts.name]} that was built for this GPU (see FRM-004)."),
    )


def _cuda_error(
    view: SnapshotView, facts: Framework, tools: XlaTools | None, told: re.Match[str]
) -> _NotCompiled:
    return _NotCompiled(f"CUDA answers {told[1]}", told.string, _ask_again(view, facts.name))


def _by_files(view: SnapshotView, facts: Framework, tools: XlaTools | None) -> _NotCompiled | None:
    """Where no line says why: a ptxas that is older than the GPU, or a file that is not there."""
    if tools is None:
        return None
    missing = [] if tools.libdevice else ["libdevice.10.bc"]
    if tools.search.ptxas and not tools.ptxas:
        missing.insert(0, "ptxas")
    if missing:
        verb = "are" if len(missing) > 1 else "is"
        return _NotCompiled(
            f"{' and '.join(missing)} {verb} not found", "", bring_tools(view, facts, tools)
        )
    gpus = known(facts.gpus) or []
    own = known(gpus[0].compute_capability) if gpus else None
    row = capability(own) if own else None
    first = parse_version(row.first_cuda) if row is not None else None
    version = parse_version(known(tools.ptxas[0].version) or "") if tools.ptxas else None
    if first is None or version is None or version >= first:
        return None
    chip = f"sm_{(own or '').replace('.', '')}"
    return _NotCompiled(
        f"{_ptxas(tools)} does not know {chip}", "", _bring_newer(view, facts, tools, first)
    )


def _switched_off(
    view: SnapshotView, seen: Seen, off: re.Pattern[str] | None
) -> _NotCompiled | None:
    """The variable that switches it off."""
    try:
        given = variables(view)
    except CannotJudge:
        return None
    if seen.run.framework == "jax":
        value = given.get("JAX_DISABLE_JIT", "")
        if value.lower() in ("1", "true", "yes", "on", "y", "t"):
            remedy = Remedy("Unset it.", ["unset JAX_DISABLE_JIT"])
            return _NotCompiled(f"JAX_DISABLE_JIT={value} switches it off", "", remedy)
        return None
    told = off.search(given.get("TF_XLA_FLAGS", "")) if off is not None else None
    if told is None:
        return None
    flag = f"--{told[1]}"
    remedy = Remedy(
        "Take it out of the variable.",
        [_without_flag(view, "TF_XLA_FLAGS", flag.partition("=")[0])],
    )
    return _NotCompiled(f"TF_XLA_FLAGS={flag} switches it off", "", remedy)


def _silent(view: SnapshotView, seen: Seen) -> _NotCompiled:
    return _NotCompiled("it gives no reason", "", _ask_again(view, seen.run.framework))


def _unknown(view: SnapshotView, seen: Seen, trial: SystemTrial) -> _NotCompiled:
    why = failed(seen, trial).rstrip(".")[:200]
    return _NotCompiled(why, "", _ask_again(view, seen.run.framework))


def _ask_again(view: SnapshotView, name: str) -> Remedy:
    code = {
        "jax": "import jax; print(jax.jit(lambda x: x + 1)(1.0))",
        "tensorflow": "import tensorflow as tf; print(tf.function(lambda x: x + 1, jit_compile=True)(1.0))",
    }[name]
    return Remedy(
        "Ask it again with all that it has to say.",
        [f"TF_CPP_MIN_LOG_LEVEL=0 {python(view)} -c {word(code)}"],
    )


def _everywhere(view: SnapshotView, seen: Seen, what: str) -> str:
    try:
        flags = variables(view).get("TF_XLA_FLAGS", "")
    except CannotJudge:
        flags = ""
    why = f" (TF_XLA_FLAGS={flags})" if "auto_jit" in flags else ""
    return (
        f"{seen.title}: {what} compiles here with it switched off, too{why}: there is nothing to hold it "
        "against"
    )


def _difference(trial: SystemTrial) -> float:
    """In parts of the largest value; not a number where one of the results has none."""
    share = trial.evidence.get("difference")
    return share if isinstance(share, (int, float)) else float("nan")


def _differs(trial: SystemTrial) -> _NotCompiled:
    return _NotCompiled(
        f"its result is off by {_difference(trial):.2g} of the largest value, where {_BOUND:g} is what "
        "rounding explains",
        "",
        Remedy(
            "Do not trust what it compiles: take a newer release of the framework, and a ptxas of 11.1 or "
            "later.",
            ["which -a ptxas", "ptxas --version"],
        ),
    )


def _told(view: SnapshotView, seen: Seen, trial: SystemTrial, words: list[str]) -> str:
    """ "TensorFlow 2.15.1: 1 cluster, 1 module, 1 fusion; ptxas 12.2.140 (/usr/local/cuda/bin/ptxas)"."""
    names = ("cluster", "module", "fusion")
    counts = [
        f"{number(trial, f'{name}s'):.0f} {name}{'' if number(trial, f'{name}s') == 1 else 's'}"
        for name in names
        if f"{name}s" in trial.evidence and (name != "cluster" or number(trial, "clusters"))
    ]
    if "python_runs" in trial.evidence and not counts:
        counts = ["traced once"]
    said = f"{seen.title}: {', '.join(counts)}{seen.where}"
    if seen.run.device == "cpu":
        return said
    tools = _compilers(view, seen)[1]
    if tools is not None:
        taken = [
            f"{one.kind} {known(one.version) or ''} ({one.path})".replace("  ", " ")
            for one in (*tools.ptxas[:1], *tools.libdevice[:1])
        ]
        said += "".join(f"; {one}" for one in taken)
    by_driver = next((told for line in words if (told := _NO_CHIP.search(line))), None)
    if by_driver is not None:
        said += f"; left to the driver's compiler, {_ptxas(tools)} does not know this GPU"
    return said
