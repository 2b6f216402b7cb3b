"""Checks on what XLA needs to compile for a GPU: ptxas and libdevice, where the framework looks for them."""

from __future__ import annotations

import re
from typing import NamedTuple

from packaging.version import Version

from ...data.tensorflow_wheels import tensorflow_build
from ...data.versions import parse_version
from ...data.xla_tools import XlaSearch, xla_search
from ...facts.target import CompilerTool
from ..declared import declared_causes
from ..reading import Framework, NotKnown, Skip, SnapshotView, known, need
from ..target import framework_version, per_framework, pip_install, sees_gpus, title_of, variables
from ..verdicts import Evidence, Passed, Remedy, Verdict, Verdicts, about_file, check, word
from .causes import explain, found
from .trials import FIRST_STEPS, lines_of, ran

CAUSE = declared_causes(__name__)

_LACKS = re.compile(
    r"libdevice not found at|Can't find libdevice directory|ptxas not found|[Cc]ould(?:n't| not) find (?:a"
    r" suitable version of )?ptxas|Couldn't invoke ptxas|No PTX compilation provider"
)
_REFUSES = re.compile(
    r"Unsupported \.version (\d+\.\d+); current version is '(\d+\.\d+)'|using ptxas 8\.x"
)


class XlaTools(NamedTuple):
    """A framework's ptxas and libdevice: those in its reach (it takes the first), and all there are."""

    search: XlaSearch
    ptxas: list[CompilerTool]
    libdevice: list[CompilerTool]
    all: list[CompilerTool]

    @property
    def missing(self) -> list[str]:
        lacks_ptxas = self.search.ptxas and not self.ptxas
        return (["ptxas"] if lacks_ptxas else []) + ([] if self.libdevice else ["libdevice.10.bc"])


def xla_tools(facts: Framework) -> XlaTools:
    title, version = title_of(facts), framework_version(facts)
    if facts.name == "torch":
        raise Skip("PyTorch compiles with a ptxas of its own")
    if known(facts.cuda_build) is False:
        raise Skip(f"{title} was built without CUDA")
    if not sees_gpus(facts):
        raise Skip(f"{title} sees no GPU to compile for")
    found = need(facts.compiler_tools, "where ptxas and libdevice lie")
    # JAX's XLA is jaxlib's, which had versions of its own up to jax 0.4.
    if facts.name == "jax" and facts.settings.get("jaxlib"):
        version = parse_version(facts.settings["jaxlib"])
    of_nvidia = version is not None and (version.local or "").startswith("nv")
    search = xla_search(facts.name, Version("2.14") if of_nvidia else version) if version else None
    if search is None:
        raise NotKnown(f"where {title} {version or ''} looks for ptxas and libdevice")
    ptxas, libdevice = (
        [one for place in places for one in found if (one.kind, one.place) == (kind, place)]
        for kind, places in (("ptxas", search.ptxas), ("libdevice", search.libdevice))
    )
    # Later versions pass over a ptxas that is too old for anything, and take the next one.
    oldest = search.oldest_ptxas if search.as_new_as_build else None
    ptxas = [one for one in ptxas if oldest is None or (version_of_tool(one) or oldest) >= oldest]
    return XlaTools(search, ptxas, libdevice, found)


def version_of_tool(tool: CompilerTool) -> Version | None:
    return parse_version(known(tool.version) or "")


@check("FRM-008")
@per_framework()
def tools_found(view: SnapshotView, facts: Framework) -> Verdicts:
    if ran(facts, "xla"):
        yield Passed(f"{title_of(facts)}: XLA compiled for the GPU")
        return
    tools = xla_tools(facts)
    yield _missing(view, facts, tools) if tools.missing else _version(view, facts, tools)


def _missing(view: SnapshotView, facts: Framework, tools: XlaTools) -> Verdict:
    title, is_jax = title_of(facts), facts.name == "jax"
    missing = " and no ".join(tools.missing)
    logged = next((line for line in lines_of(facts) if _LACKS.search(line)), "")
    if not (tools.search.always or logged or _asks_for_xla(view, facts)):
        return Passed(f"{title} finds no {missing}, and compiles only when asked to")
    trials = known(facts.trials) or []
    errors = [one.error for one in trials if one.outcome in ("failed", "crashed") and one.error]
    if errors and not logged and explain(view, facts, FIRST_STEPS, errors):
        return Passed(f"{title} finds no {missing}, and fails for another reason")
    fails = any(one.name == "xla" and one.outcome == "failed" for one in trials) or (
        tools.search.always and ("libdevice.10.bc" in tools.missing or is_jax)
    )
    effect = "what it compiles fails, or is left to the driver"
    if is_jax:
        effect = "JAX computes nothing on the GPU"
    elif fails:
        effect = "what Keras or jit_compile compiles stops with an error"
    searched = tools.search.ptxas if tools.missing == ["ptxas"] else tools.search.libdevice
    aside = [one.path for one in tools.all if one.place == "aside"][:3]
    shown = f"none in {', '.join(searched)}" + (f"; aside: {', '.join(aside)}" if aside else "")
    return found(
        view,
        CAUSE["compiler-tools-missing"] if fails else CAUSE["compiler-tools-missing-on-demand"],
        facts,
        view.evidence(f"target.{facts.name}.compiler_tools", shown),
        *_log(facts, logged),
        advice=bring_tools(view, facts, tools),
        missing=missing,
        effect=effect,
    )


def _version(view: SnapshotView, facts: Framework, tools: XlaTools) -> Verdict:
    title = title_of(facts)
    logged = next((line for line in lines_of(facts) if _REFUSES.search(line)), "")
    paths = ", ".join(one[0].path for one in (tools.ptxas, tools.libdevice) if one)
    if not tools.ptxas or not (tools.search.ptxas or logged):
        return Passed(f"{title}: {paths}")
    taken = tools.ptxas[0]
    version = parse_version(need(taken.version, f"the version of {taken.path}"))
    if version is None:
        raise NotKnown(f"which version {taken.path} is")
    needed = _needed(facts, tools.search)
    if not logged and version.release[: len(needed.release)] >= needed.release:
        return Passed(f"{title}: {paths}, of CUDA {version}")
    return found(
        view,
        CAUSE["ptxas-too-old"]
        if facts.name == "jax" or logged
        else CAUSE["ptxas-too-old-on-demand"],
        facts,
        view.evidence(f"target.{facts.name}.compiler_tools", f"{taken.path}: {version}"),
        "built_cuda",
        *_log(facts, logged),
        subjects=about_file(taken.path),
        advice=newer_ptxas(view, facts, tools, taken, needed),
        path=taken.path,
        ptxas=str(version),
        needed=str(needed),
    )


def _log(facts: Framework, line: str) -> list[Evidence]:
    source = f"{title_of(facts)}'s log"
    return [Evidence(f"target.{facts.name}.log", line, source)] if line else []


def _asks_for_xla(view: SnapshotView, facts: Framework) -> bool:
    flags = variables(view).get("TF_XLA_FLAGS", "")
    asked = any(flag in flags for flag in ("tf_xla_auto_jit", "tf_xla_cpu_global_jit"))
    return asked or facts.settings.get("xla", "false") not in ("false", "")


def bring_tools(view: SnapshotView, facts: Framework, tools: XlaTools) -> Remedy:
    """Point XLA to what is installed; else install NVIDIA's wheel, which holds both."""
    libdevice = {one.root for one in tools.all if one.kind == "libdevice"}
    roots = [
        (version, one.root)
        for one in tools.all
        if one.kind == "ptxas" and one.place != "PATH" and one.root in libdevice
        if (version := version_of_tool(one)) is not None and version >= _needed(facts, tools.search)
    ]
    if roots:
        return Remedy("Point XLA to the installed toolkit.", [_flag(max(roots)[1])])
    by_flag = [] if "wheel" in tools.search.libdevice else [_flag(_wheel_root(facts))]
    return Remedy(
        "Install NVIDIA's wheel, which brings both, where this version looks for them.",
        [pip_install(view, *_wheels(facts)), *by_flag],
    )


def _flag(root: str) -> str:
    return f"export XLA_FLAGS=--xla_gpu_cuda_data_dir={word(root)}"


def _wheels(facts: Framework) -> list[str]:
    """The wheels with ptxas and libdevice for the CUDA that a framework was built with, or a newer minor.

    For CUDA 10 there are none; a newer ptxas compiles for it, too.
    """
    build = tensorflow_build(known(facts.version) or "") if facts.name == "tensorflow" else None
    pinned = [str(one) for one in build.and_cuda if "cuda-nvcc" in one.name] if build else []
    version = parse_version(known(facts.built_cuda) or "")
    if pinned:
        return pinned
    if version is None or version.major < 12:
        return [f"nvidia-cuda-nvcc-cu{'12' if version is None else '11'}"]
    least = f"=={version.major}.*,>={version.major}.{version.minor}"
    if version.major == 12:
        return [f"nvidia-cuda-nvcc-cu12{least}"]
    return [f"nvidia-cuda-nvcc{least}", f"nvidia-nvvm{least}"]


def _wheel_root(facts: Framework) -> str:
    site = (known(facts.file) or "").rpartition("/")[0].rpartition("/")[0]
    return f"{site or '.'}/nvidia/cuda_nvcc"


def _needed(facts: Framework, search: XlaSearch) -> Version:
    oldest = search.oldest_ptxas or Version("0")
    built = parse_version(known(facts.built_cuda) or "") if search.as_new_as_build else None
    return max(oldest, Version(f"{built.major}.{built.minor}")) if built else oldest


def newer_ptxas(
    view: SnapshotView, facts: Framework, tools: XlaTools, taken: CompilerTool, needed: Version
) -> Remedy:
    newer = [
        one
        for one in tools.all
        if one.kind == "ptxas"
        and (version := version_of_tool(one)) is not None
        and version >= needed
    ]
    folder = newer[0].path.rpartition("/")[0] if newer else f"{_wheel_root(facts)}/bin"
    commands = [] if newer else [pip_install(view, *_wheels(facts))]
    text = "Put a newer one first."
    if taken.place == "XLA_FLAGS":
        text = "Remove --xla_gpu_cuda_data_dir from XLA_FLAGS, and put a newer one first on PATH."
        commands.append("unset XLA_FLAGS")
    onto_path = f'export PATH={word(folder)}:"$PATH"'
    on_path = "PATH" in tools.search.ptxas
    return Remedy(text, [*commands, onto_path if on_path else _flag(folder.rpartition("/")[0])])
