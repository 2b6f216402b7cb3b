"""Why XLA compiled nothing: what its words, its files and the variables say."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from packaging.version import Version

from ...data.capabilities import capability
from ...data.versions import parse_version
from ...facts.acceleration import SystemTrial
from ...facts.base import known
from ...facts.missing import CannotJudge
from ...facts.target import FRAMEWORKS, Framework
from ...facts.view import SnapshotView
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
_OLD_PTXAS = re.compile(r"Unsupported \.version (\d+\.\d+); current version is '?(\d+\.\d+)")
_NO_LIBDEVICE = re.compile(r"libdevice not found|Can't find libdevice|libdevice\.10\.bc")
_NO_PTXAS = re.compile(
    r"ptxas not found|[Cc]ould(?:n't| not) (?:find (?:a suitable version of )?|invoke )ptxas|No PTX"
    r" compilation provider"
)
_OLD_DRIVER = re.compile(r"UNSUPPORTED_PTX_VERSION|unsupported toolchain")
_NO_CODE = re.compile(r"NO_BINARY_FOR_GPU|no kernel image is available|CUDA_ERROR_INVALID_PTX")
_CUDA = re.compile(r"\b(CUDA_ERROR_\w{1,60}|CUDNN_STATUS_\w{1,60})")
TAKEN = re.compile(
    r"(?i)busy or unavailable|CUDA_ERROR_DEVICE_UNAVAILABLE|CUDA_ERROR_OUT_OF_MEMORY|RESOURCE_EXHAUSTED"
)
# What keeps clusters from being made, in the words of TF_XLA_FLAGS.
SWITCHES_OFF = re.compile(
    r"--(tf_xla_auto_jit=(?:-\d+|single-gpu\(-\d+\))|tf_xla_min_cluster_size=\d{3,9}"
    r"|tf_xla_clustering_fuel=\d{1,2}|tf_xla_ops_to_cluster=[^\s]+)(?=\s|$)"
)


class NotCompiled(NamedTuple):
    """Why nothing was compiled: the end of a sentence, the line that says so, and what to do."""

    says: str
    words: str
    remedy: Remedy


def cause_of(view: SnapshotView, seen: Seen, words: list[str]) -> NotCompiled | None:
    """The first cause that these lines bear out, those that name their remedy best first."""
    facts, tools = compilers(view, seen)
    found = unknown_flag(view, words)
    if found is not None or facts is None:
        return found
    for pattern, explain in (
        (NO_CHIP, _no_chip),
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


def compilers(view: SnapshotView, seen: Seen) -> tuple[Framework | None, XlaTools | None]:
    facts = framework(view, seen.run.framework)
    try:
        return facts, None if facts is None else xla_tools(facts)
    except CannotJudge:
        return facts, None


def unknown_flag(view: SnapshotView, words: list[str]) -> NotCompiled | None:
    for line in words:
        told = _NO_FLAG.search(line)
        if told is not None:
            name, flag = told[1], told[2]
            return NotCompiled(
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
) -> NotCompiled:
    chip = told[1] or f"sm_{told[2].replace('.', '')}"
    digits = re.sub(r"\D", "", chip)
    row = capability(f"{digits[:-1]}.{digits[-1]}")
    first = parse_version(row.first_cuda) if row is not None else None
    return NotCompiled(
        f"{version_of_ptxas(tools)} does not know {chip}",
        told.string,
        _bring_newer(view, facts, tools, first),
    )


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
    view: SnapshotView, facts: Framework, tools: XlaTools | None, told: re.Match[str]
) -> NotCompiled:
    built = parse_version(known(facts.built_cuda) or "")
    return NotCompiled(
        f"{version_of_ptxas(tools)} knows PTX up to {told[2]}, and XLA writes {told[1]}",
        told.string,
        _bring_newer(view, facts, tools, built),
    )


def _missing(
    says: str,
) -> Callable[[SnapshotView, Framework, XlaTools | None, re.Match[str]], NotCompiled]:
    def explain(
        view: SnapshotView, facts: Framework, tools: XlaTools | None, told: re.Match[str]
    ) -> NotCompiled:
        remedy = (
            Remedy(
                "Name a toolkit that has both to XLA.",
                ["export XLA_FLAGS=--xla_gpu_cuda_data_dir=/usr/local/cuda"],
            )
            if tools is None
            else bring_tools(view, facts, tools)
        )
        return NotCompiled(says, told.string, remedy)

    return explain


def _old_driver(
    view: SnapshotView, facts: Framework, tools: XlaTools | None, told: re.Match[str]
) -> NotCompiled:
    version = known(driver_version(view)[0])
    built = known(facts.built_cuda)
    return NotCompiled(
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
) -> NotCompiled:
    return NotCompiled(
        "it makes no code that runs on this GPU",
        told.string,
        Remedy(f"Take a {FRAMEWORKS[facts.name]} that was built for this GPU (see FRM-004)."),
    )


def _cuda_error(
    view: SnapshotView, facts: Framework, tools: XlaTools | None, told: re.Match[str]
) -> NotCompiled:
    return NotCompiled(f"CUDA answers {told[1]}", told.string, ask_again(view, facts.name))


def _by_files(view: SnapshotView, facts: Framework, tools: XlaTools | None) -> NotCompiled | None:
    """Where no line says why: a ptxas that is older than the GPU, or a file that is not there."""
    if tools is None:
        return None
    missing = [] if tools.libdevice else ["libdevice.10.bc"]
    if tools.search.ptxas and not tools.ptxas:
        missing.insert(0, "ptxas")
    if missing:
        verb = "are" if len(missing) > 1 else "is"
        return NotCompiled(
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
    return NotCompiled(
        f"{version_of_ptxas(tools)} does not know {chip}",
        "",
        _bring_newer(view, facts, tools, first),
    )


def switched_off(view: SnapshotView, seen: Seen, off: re.Pattern[str] | None) -> NotCompiled | None:
    """The variable that switches it off."""
    try:
        given = variables(view)
    except CannotJudge:
        return None
    if seen.run.framework == "jax":
        value = given.get("JAX_DISABLE_JIT", "")
        if value.lower() in ("1", "true", "yes", "on", "y", "t"):
            remedy = Remedy("Unset it.", ["unset JAX_DISABLE_JIT"])
            return NotCompiled(f"JAX_DISABLE_JIT={value} switches it off", "", remedy)
        return None
    told = off.search(given.get("TF_XLA_FLAGS", "")) if off is not None else None
    if told is None:
        return None
    flag = f"--{told[1]}"
    remedy = Remedy(
        "Take it out of the variable.",
        [_without_flag(view, "TF_XLA_FLAGS", flag.partition("=")[0])],
    )
    return NotCompiled(f"TF_XLA_FLAGS={flag} switches it off", "", remedy)


def no_reason(view: SnapshotView, seen: Seen) -> NotCompiled:
    return NotCompiled("it gives no reason", "", ask_again(view, seen.run.framework))


def unknown_cause(view: SnapshotView, seen: Seen, trial: SystemTrial) -> NotCompiled:
    why = failed(seen, trial).rstrip(".")[:200]
    return NotCompiled(why, "", ask_again(view, seen.run.framework))


def ask_again(view: SnapshotView, name: str) -> Remedy:
    code = {
        "jax": "import jax; print(jax.jit(lambda x: x + 1)(1.0))",
        "tensorflow": "import tensorflow as tf; print(tf.function(lambda x: x + 1, jit_compile=True)(1.0))",
    }[name]
    return Remedy(
        "Ask it again with all that it has to say.",
        [f"TF_CPP_MIN_LOG_LEVEL=0 {python(view)} -c {word(code)}"],
    )


def everywhere(view: SnapshotView, seen: Seen, what: str) -> str:
    try:
        flags = variables(view).get("TF_XLA_FLAGS", "")
    except CannotJudge:
        flags = ""
    why = f" (TF_XLA_FLAGS={flags})" if "auto_jit" in flags else ""
    return (
        f"{seen.title}: {what} compiles here with it switched off, too{why}: there is nothing to hold it "
        "against"
    )
