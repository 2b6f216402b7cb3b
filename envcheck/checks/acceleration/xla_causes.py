"""Why XLA compiled nothing: what its log, its files and the variables show."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from packaging.version import Version

from ...data.capabilities import capability
from ...data.versions import parse_version
from ...facts.acceleration import SystemTrial
from ...facts.base import known
from ...facts.missing import CannotJudge
from ...facts.target import FRAMEWORKS, Framework
from ...facts.view import SnapshotView
from ...findings.causes import Cause
from ...findings.model import Remedy
from ...findings.shell import word
from ..driver_state import driver_version
from ..framework.compiler_tools import XlaTools, bring_tools, newer_ptxas, xla_tools
from ..system_commands import on_system
from ..target import framework, python, variables
from .common import Seen, failed

_NO_FLAG = re.compile(r"Unknown flags? in (\w*XLA_FLAGS): (--[\w-]+)")
NO_CHIP = re.compile(
    r"Value '(sm_\d+\w?)' is not defined for option 'gpu-name'|ptxas does not support CC (\d+\.\d+)"
)
TAKEN = re.compile(
    r"(?i)busy or unavailable|CUDA_ERROR_DEVICE_UNAVAILABLE|CUDA_ERROR_OUT_OF_MEMORY|RESOURCE_EXHAUSTED"
)
# What keeps clusters from being made, in the words of TF_XLA_FLAGS.
SWITCHES_OFF = re.compile(
    r"--(tf_xla_auto_jit=(?:-\d+|single-gpu\(-\d+\))|tf_xla_min_cluster_size=\d{3,9}"
    r"|tf_xla_clustering_fuel=\d{1,2}|tf_xla_ops_to_cluster=[^\s]+)(?=\s|$)"
)


def _cause(key: str, why: str, remedy: str = "", commands: tuple[str, ...] = ()) -> Cause:
    headline = "{what} is on and {verb}: " + why
    sentence = "{what} is on in {title} and {verb}{where}: " + why + "."
    return Cause(key, "fail", headline, sentence, remedy, commands)


UNKNOWN_FLAG = _cause(
    "unknown-flag",
    "{name} holds {flag}, which this build does not know",
    "Take it out of the variable.",
)
UNKNOWN_CHIP = _cause("ptxas-too-old-for-gpu", "{ptxas} does not know {chip}")
OLD_PTXAS = _cause(
    "ptxas-too-old-for-xla", "{ptxas} knows PTX up to {newest}, and XLA writes {written}"
)
NO_FILES = _cause("no-compiler-files", "{files} not found")
OLD_DRIVER = _cause(
    "driver-too-old",
    "the driver{driver} is too old for the PTX{built}",
    "Update the driver, or take a build for an older CUDA.",
)
NO_CODE = _cause(
    "no-code-for-gpu",
    "it makes no code that runs on this GPU",
    "Take a {framework} that was built for this GPU (see FRM-004).",
)
CUDA_ERROR = _cause("cuda-error", "CUDA answers {error}")
SWITCHED_OFF = _cause("switched-off", "{setting} switches it off", "Take it out of the variable.")
NO_REASON = _cause("no-reason", "it gives no reason")
FAILS = _cause("fails", "{why}")
DIFFERS = _cause(
    "wrong-result",
    "its result is off by {off:.2g} of the largest value, where {allowed:g} is what rounding explains",
    "Do not trust what it compiles: take a newer release of the framework, and a ptxas of 11.1 or later.",
    ("which -a ptxas", "ptxas --version"),
)
CAUSES = (
    *(UNKNOWN_FLAG, UNKNOWN_CHIP, OLD_PTXAS, NO_FILES, OLD_DRIVER, NO_CODE, CUDA_ERROR),
    *(SWITCHED_OFF, NO_REASON, FAILS, DIFFERS),
)


class NotCompiled(NamedTuple):
    """Why nothing was compiled. line: of a log, that shows it. details: as Cause.found takes them."""

    cause: Cause
    line: str
    details: dict[str, Any]


_Explain = Callable[
    [SnapshotView, Framework, XlaTools | None, re.Match[str]], tuple[Cause, dict[str, Any]]
]


def cause_of(view: SnapshotView, seen: Seen, lines: list[str]) -> NotCompiled | None:
    """The first cause that these lines show, those that name their remedy best first."""
    facts, tools = compilers(view, seen)
    found = unknown_flag(view, lines)
    if found is not None or facts is None:
        return found
    for pattern, explain in _EXPLAINED:
        for line in lines:
            match = pattern.search(line)
            if match is not None:
                cause, details = explain(view, facts, tools, match)
                return NotCompiled(cause, line, details)
    return _by_files(view, facts, tools) if seen.run.device == "gpu" else None


def compilers(view: SnapshotView, seen: Seen) -> tuple[Framework | None, XlaTools | None]:
    facts = framework(view, seen.run.framework)
    try:
        return facts, None if facts is None else xla_tools(facts)
    except CannotJudge:
        return facts, None


def unknown_flag(view: SnapshotView, lines: list[str]) -> NotCompiled | None:
    for line in lines:
        match = _NO_FLAG.search(line)
        if match is not None:
            name, flag = match[1], match[2]
            details = {"name": name, "flag": flag, "commands": [_without_flag(view, name, flag)]}
            return NotCompiled(UNKNOWN_FLAG, line, details)
    return None


def _without_flag(view: SnapshotView, name: str, flag: str) -> str:
    given = variables(view).get(name, "").split()
    rest = [one for one in given if one.partition("=")[0] != flag]
    if not rest or len(rest) == len(given):
        return f"unset {name}"
    left = " ".join(rest)
    return f"export {word(f'{name}={left}')}"


def _no_chip(
    view: SnapshotView, facts: Framework, tools: XlaTools | None, match: re.Match[str]
) -> tuple[Cause, dict[str, Any]]:
    chip = match[1] or f"sm_{match[2].replace('.', '')}"
    digits = re.sub(r"\D", "", chip)
    row = capability(f"{digits[:-1]}.{digits[-1]}")
    first = parse_version(row.first_cuda) if row is not None else None
    advice = _bring_newer(view, facts, tools, first)
    return UNKNOWN_CHIP, {"ptxas": version_of_ptxas(tools), "chip": chip, "advice": advice}


def version_of_ptxas(tools: XlaTools | None) -> str:
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
    view: SnapshotView, facts: Framework, tools: XlaTools | None, match: re.Match[str]
) -> tuple[Cause, dict[str, Any]]:
    advice = _bring_newer(view, facts, tools, parse_version(known(facts.built_cuda) or ""))
    details = {"newest": match[2], "written": match[1], "advice": advice}
    return OLD_PTXAS, {"ptxas": version_of_ptxas(tools), **details}


def _missing(files: str) -> _Explain:
    def explain(
        view: SnapshotView, facts: Framework, tools: XlaTools | None, match: re.Match[str]
    ) -> tuple[Cause, dict[str, Any]]:
        if tools is not None:
            return NO_FILES, {"files": files, "advice": bring_tools(view, facts, tools)}
        command = "export XLA_FLAGS=--xla_gpu_cuda_data_dir=/usr/local/cuda"
        advice = Remedy("Name a toolkit that has both to XLA.", [command])
        return NO_FILES, {"files": files, "advice": advice}

    return explain


def _old_driver(
    view: SnapshotView, facts: Framework, tools: XlaTools | None, match: re.Match[str]
) -> tuple[Cause, dict[str, Any]]:
    version, built = known(driver_version(view)[0]), known(facts.built_cuda)
    return OLD_DRIVER, {
        "driver": f" {version}" if version else "",
        "built": f" of CUDA {built}" if built else "",
        "commands": on_system(view, "update-driver"),
    }


def _no_code(
    view: SnapshotView, facts: Framework, tools: XlaTools | None, match: re.Match[str]
) -> tuple[Cause, dict[str, Any]]:
    return NO_CODE, {"framework": FRAMEWORKS[facts.name]}


def _cuda_error(
    view: SnapshotView, facts: Framework, tools: XlaTools | None, match: re.Match[str]
) -> tuple[Cause, dict[str, Any]]:
    return CUDA_ERROR, {"error": match[1], "advice": ask_again(view, facts.name)}


_EXPLAINED: tuple[tuple[re.Pattern[str], _Explain], ...] = (
    (NO_CHIP, _no_chip),
    (re.compile(r"Unsupported \.version (\d+\.\d+); current version is '?(\d+\.\d+)"), _old_ptxas),
    (
        re.compile(r"libdevice not found|Can't find libdevice|libdevice\.10\.bc"),
        _missing("libdevice.10.bc is"),
    ),
    (
        re.compile(
            r"ptxas not found|[Cc]ould(?:n't| not) (?:find (?:a suitable version of )?|invoke )ptxas|No PTX"
            r" compilation provider"
        ),
        _missing("ptxas is"),
    ),
    (re.compile(r"UNSUPPORTED_PTX_VERSION|unsupported toolchain"), _old_driver),
    (
        re.compile(r"NO_BINARY_FOR_GPU|no kernel image is available|CUDA_ERROR_INVALID_PTX"),
        _no_code,
    ),
    (re.compile(r"\b(CUDA_ERROR_\w{1,60}|CUDNN_STATUS_\w{1,60})"), _cuda_error),
)


def _by_files(view: SnapshotView, facts: Framework, tools: XlaTools | None) -> NotCompiled | None:
    """Where no line shows why: a ptxas that is older than the GPU, or a missing file."""
    if tools is None:
        return None
    missing = [] if tools.libdevice else ["libdevice.10.bc"]
    if tools.search.ptxas and not tools.ptxas:
        missing.insert(0, "ptxas")
    if missing:
        files = f"{' and '.join(missing)} {'are' if len(missing) > 1 else 'is'}"
        return NotCompiled(
            NO_FILES, "", {"files": files, "advice": bring_tools(view, facts, tools)}
        )
    gpus = known(facts.gpus) or []
    own = known(gpus[0].compute_capability) if gpus else None
    row = capability(own) if own else None
    first = parse_version(row.first_cuda) if row is not None else None
    version = parse_version(known(tools.ptxas[0].version) or "") if tools.ptxas else None
    if first is None or version is None or version >= first:
        return None
    chip = f"sm_{(own or '').replace('.', '')}"
    advice = _bring_newer(view, facts, tools, first)
    details = {"ptxas": version_of_ptxas(tools), "chip": chip, "advice": advice}
    return NotCompiled(UNKNOWN_CHIP, "", details)


def switched_off(view: SnapshotView, seen: Seen, off: re.Pattern[str] | None) -> NotCompiled | None:
    """The variable that switches it off."""
    try:
        given = variables(view)
    except CannotJudge:
        return None
    setting, command = "", ""
    if seen.run.framework == "jax":
        value = given.get("JAX_DISABLE_JIT", "")
        if value.lower() in ("1", "true", "yes", "on", "y", "t"):
            setting, command = f"JAX_DISABLE_JIT={value}", "unset JAX_DISABLE_JIT"
    elif off is not None and (match := off.search(given.get("TF_XLA_FLAGS", ""))) is not None:
        flag = f"--{match[1]}"
        setting = f"TF_XLA_FLAGS={flag}"
        command = _without_flag(view, "TF_XLA_FLAGS", flag.partition("=")[0])
    if not setting:
        return None
    return NotCompiled(SWITCHED_OFF, "", {"setting": setting, "commands": [command]})


def no_reason(view: SnapshotView, seen: Seen) -> NotCompiled:
    return NotCompiled(NO_REASON, "", {"advice": ask_again(view, seen.run.framework)})


def unknown_cause(view: SnapshotView, seen: Seen, trial: SystemTrial) -> NotCompiled:
    why = failed(seen, trial).rstrip(".")[:200]
    return NotCompiled(FAILS, "", {"why": why, "advice": ask_again(view, seen.run.framework)})


def ask_again(view: SnapshotView, name: str) -> Remedy:
    code = {
        "jax": "import jax; print(jax.jit(lambda x: x + 1)(1.0))",
        "tensorflow": "import tensorflow as tf; print(tf.function(lambda x: x + 1, jit_compile=True)(1.0))",
    }[name]
    command = f"TF_CPP_MIN_LOG_LEVEL=0 {python(view)} -c {word(code)}"
    return Remedy("Run it again with all log lines.", [command])


def everywhere(view: SnapshotView, what: str) -> str:
    try:
        flags = variables(view).get("TF_XLA_FLAGS", "")
    except CannotJudge:
        flags = ""
    why = f" (TF_XLA_FLAGS={flags})" if "auto_jit" in flags else ""
    return f"{what} compiles here with it switched off, too{why}: there is no control"
