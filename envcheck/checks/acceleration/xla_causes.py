"""Why XLA compiled nothing: what its log, its files and the variables show."""

from __future__ import annotations

import re
from typing import NamedTuple

from ...data.capabilities import capability
from ...data.versions import parse_version
from ..declared import declared_causes
from ..driver_state import driver_version
from ..framework.compiler_tools import (
    XlaTools,
    bring_tools,
    newer_ptxas,
    version_of_tool,
    xla_tools,
)
from ..reading import FRAMEWORKS, Framework, SnapshotView, known, or_else
from ..system_commands import on_system
from ..target import framework, python, variables, variables_if_known
from ..verdicts import Cause, Params, Remedy, word
from .common import Seen

CAUSE = declared_causes(__name__)

_NO_FLAG = re.compile(r"Unknown flags? in (\w*XLA_FLAGS): (--[\w-]+)")
TAKEN = re.compile(
    r"(?i)busy or unavailable|CUDA_ERROR_DEVICE_UNAVAILABLE|CUDA_ERROR_OUT_OF_MEMORY|RESOURCE_EXHAUSTED"
)
# What keeps clusters from being made, in the words of TF_XLA_FLAGS.
_SWITCHES_OFF = re.compile(
    r"--(tf_xla_auto_jit=(?:-\d+|single-gpu\(-\d+\))|tf_xla_min_cluster_size=\d{3,9}"
    r"|tf_xla_clustering_fuel=\d{1,2}|tf_xla_ops_to_cluster=[^\s]+)(?=\s|$)"
)


UNKNOWN_CHIP = CAUSE["ptxas-too-old-for-gpu"]
NO_FILES = CAUSE["no-compiler-files"]
OLD_DRIVER = CAUSE["driver-too-old"]
NO_CODE = CAUSE["no-code-for-gpu"]
FAILS = CAUSE["fails"]
DIFFERS = CAUSE["wrong-result"]
CAUSES = (
    CAUSE["unknown-flag"],
    UNKNOWN_CHIP,
    CAUSE["ptxas-too-old-for-xla"],
    NO_FILES,
    OLD_DRIVER,
    NO_CODE,
    CAUSE["switched-off"],
    FAILS,
    DIFFERS,
)
# Words of a log, the first that match: groups are the parameters of the causes.
_EXPLAINED = (
    (re.compile(r"Value '(?P<chip>sm_\d+\w?)' is not defined for option 'gpu-name'"), UNKNOWN_CHIP),
    (re.compile(r"ptxas does not support CC (?P<chip>\d+\.\d+)"), UNKNOWN_CHIP),
    (
        re.compile(
            r"Unsupported \.version (?P<written>\d+\.\d+); current version is '?(?P<newest>\d+\.\d+)"
        ),
        CAUSE["ptxas-too-old-for-xla"],
    ),
    (re.compile(r"libdevice not found|Can't find libdevice|libdevice\.10\.bc"), NO_FILES),
    (
        re.compile(
            r"(?P<ptxas>ptxas not found|No PTX compilation provider"
            r"|[Cc]ould(?:n't| not) (?:find (?:a suitable version of )?|invoke )ptxas)"
        ),
        NO_FILES,
    ),
    (re.compile(r"UNSUPPORTED_PTX_VERSION|unsupported toolchain"), OLD_DRIVER),
    (re.compile(r"NO_BINARY_FOR_GPU|no kernel image is available|CUDA_ERROR_INVALID_PTX"), NO_CODE),
    (re.compile(r"\b(?P<error>CUDA_ERROR_\w{1,60}|CUDNN_STATUS_\w{1,60})"), FAILS),
)


class NotCompiled(NamedTuple):
    """Why nothing was compiled. params: as Cause.found takes them. line: of a log, that shows it."""

    cause: Cause
    params: Params
    line: str = ""


def cause_of(view: SnapshotView, seen: Seen, lines: list[str]) -> NotCompiled | None:
    """The first cause that these lines show, those that name their remedy best first."""
    found = unknown_flag(view, lines)
    facts = framework(view, seen.run.framework)
    if found is not None or facts is None:
        return found
    for pattern, cause in _EXPLAINED:
        for line in lines:
            match = pattern.search(line)
            if match is not None:
                return NotCompiled(cause, _params(view, facts, cause, match.groupdict()), line)
    return None


def _params(view: SnapshotView, facts: Framework, cause: Cause, words: dict[str, str]) -> Params:
    """What a line of the log, and the machine, say of a cause."""
    built = known(facts.built_cuda) or ""
    if cause is OLD_DRIVER:
        version = known(driver_version(view)[0])
        return {
            "driver": f" {version}" if version else "",
            "built": f" of CUDA {built}" if built else "",
            "commands": on_system(view, "update-driver"),
        }
    if cause is NO_CODE:
        return {"framework": FRAMEWORKS[facts.name]}
    if cause is FAILS:
        again = _ask_again(view, facts.name)
        return {"why": f"CUDA answers {words['error']}", "advice": again}
    tools = or_else(lambda: xla_tools(facts), None)
    if cause is NO_FILES:
        command = "export XLA_FLAGS=--xla_gpu_cuda_data_dir=/usr/local/cuda"
        advice = Remedy("Name a toolkit that has both to XLA.", [command])
        return {
            "files": "ptxas" if "ptxas" in words else "libdevice.10.bc",
            "advice": advice if tools is None else bring_tools(view, facts, tools),
        }
    return _of_ptxas(view, facts, tools, words)


def _of_ptxas(
    view: SnapshotView, facts: Framework, tools: XlaTools | None, words: dict[str, str]
) -> Params:
    """Of one that is too old: for the GPU where the words name that, else for XLA."""
    first = parse_version(known(facts.built_cuda) or "")
    if "chip" in words:
        digits = re.sub(r"\D", "", words["chip"])
        row = capability(f"{digits[:-1]}.{digits[-1]}")
        first = parse_version(row.first_cuda) if row is not None else None
        words = {"chip": f"sm_{digits}"}
    least = f" of CUDA {first} or later" if first else ""
    advice = Remedy(f"Put a ptxas{least} first on PATH.", ["which -a ptxas", "ptxas --version"])
    version = None
    if tools is not None and tools.ptxas:
        version = version_of_tool(tools.ptxas[0])
        if first is not None:
            advice = newer_ptxas(view, facts, tools, tools.ptxas[0], first)
    ptxas = f"ptxas {version.major}.{version.minor}" if version else "ptxas"
    return {"ptxas": ptxas, "advice": advice, **words}


def unknown_flag(view: SnapshotView, lines: list[str]) -> NotCompiled | None:
    for line in lines:
        match = _NO_FLAG.search(line)
        if match is not None:
            name, flag = match[1], match[2]
            params = {"name": name, "flag": flag, "commands": [_without_flag(view, name, flag)]}
            return NotCompiled(CAUSE["unknown-flag"], params, line)
    return None


def _without_flag(view: SnapshotView, name: str, flag: str) -> str:
    given = variables(view).get(name, "").split()
    rest = [one for one in given if one.partition("=")[0] != flag]
    if not rest or len(rest) == len(given):
        return f"unset {name}"
    return "export " + word(f"{name}={' '.join(rest)}")


def switched_off(view: SnapshotView, seen: Seen, clusters: bool) -> NotCompiled | None:
    """The variable that switches it off. clusters: whether clustering is meant."""
    given = variables_if_known(view)
    match = _SWITCHES_OFF.search(given.get("TF_XLA_FLAGS", "")) if clusters else None
    lazy = given.get("JAX_DISABLE_JIT", "")
    if seen.run.framework == "jax" and lazy.lower() in ("1", "true", "yes", "on", "y", "t"):
        setting, command = f"JAX_DISABLE_JIT={lazy}", "unset JAX_DISABLE_JIT"
    elif match is not None:
        setting = f"TF_XLA_FLAGS=--{match[1]}"
        command = _without_flag(view, "TF_XLA_FLAGS", f"--{match[1].partition('=')[0]}")
    else:
        return None
    return NotCompiled(CAUSE["switched-off"], {"setting": setting, "commands": [command]})


def unknown(view: SnapshotView, seen: Seen, why: str) -> NotCompiled:
    advice = _ask_again(view, seen.run.framework)
    return NotCompiled(FAILS, {"why": why.rstrip(".")[:200], "advice": advice})


def _ask_again(view: SnapshotView, name: str) -> Remedy:
    code = {
        "jax": "import jax; print(jax.jit(lambda x: x + 1)(1.0))",
        "tensorflow": "import tensorflow as tf; print(tf.function(lambda x: x + 1, jit_compile=True)(1.0))",
    }[name]
    command = f"TF_CPP_MIN_LOG_LEVEL=0 {python(view)} -c {word(code)}"
    return Remedy("Run it again with all log lines.", [command])
