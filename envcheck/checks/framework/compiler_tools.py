"""Checks on what XLA needs to compile for a GPU: ptxas and libdevice, where this framework looks for them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from packaging.version import Version

from ...data.packages import tensorflow_build
from ...data.versions import parse_version
from ...data.xla_tools import XlaSearch, xla_search
from ...facts.base import known
from ...facts.evidence import Evidence
from ...facts.missing import NotKnown, Skip
from ...facts.target import FRAMEWORKS, CompilerTool, Framework
from ...facts.view import SnapshotView, need
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.shell import word
from ...findings.subjects import about, about_file
from ..driver_state import NO_GPUS_THERE
from ..registry import check
from ..target import each_framework, need_gpus, pip_install, sees_gpus, variables
from .trials import ran, said

_BEFORE = (*NO_GPUS_THERE, "FRM-001", "FRM-002", "FRM-003", "FRM-004", "FRM-005", "FRM-007")
_LACKS = re.compile(
    r"libdevice not found at|Can't find libdevice directory|ptxas not found|[Cc]ould(?:n't| not) find (?:a"
    r" suitable version of )?ptxas|Couldn't invoke ptxas|No PTX compilation provider"
)
_REFUSES = re.compile(
    r"Unsupported \.version (\d+\.\d+); current version is '(\d+\.\d+)'|using ptxas 8\.x"
)


class XlaTools(NamedTuple):
    """A framework's ptxas and libdevice: those in its reach, first come first taken, and all there are."""

    search: XlaSearch
    ptxas: list[CompilerTool]
    libdevice: list[CompilerTool]
    all: list[CompilerTool]


def xla_tools(facts: Framework) -> XlaTools:
    title = FRAMEWORKS[facts.name]
    if facts.name == "torch":
        raise Skip("PyTorch compiles with a ptxas of its own")
    if known(facts.cuda_build) is False:
        raise Skip(f"{title} was built without CUDA")
    if not sees_gpus(facts):
        raise Skip(f"{title} sees no GPU to compile for")
    found = need(facts.compiler_tools, "where ptxas and libdevice lie")
    # JAX's XLA is jaxlib's, which had versions of its own up to jax 0.4.
    own = facts.settings.get("jaxlib", "") if facts.name == "jax" else ""
    version = parse_version(own or known(facts.version) or "")
    search = xla_search(facts.name, version) if version else None
    if version is not None and (version.local or "").startswith("nv"):
        search = xla_search("tensorflow", Version("2.14"))
    if search is None:
        raise NotKnown(
            f"where {title} {version or ''} looks for ptxas and libdevice".replace("  ", " ")
        )
    return XlaTools(
        search,
        [one for one in _in_reach(found, "ptxas", search.ptxas) if _bears(search, one)],
        _in_reach(found, "libdevice", search.libdevice),
        found,
    )


def _in_reach(found: list[CompilerTool], kind: str, places: tuple[str, ...]) -> list[CompilerTool]:
    return [one for place in places for one in found if (one.kind, one.place) == (kind, place)]


def _bears(search: XlaSearch, tool: CompilerTool) -> bool:
    """Later versions pass over a ptxas that is too old for anything, and take the next one."""
    version = parse_version(known(tool.version) or "")
    oldest = search.oldest_ptxas if search.as_new_as_build else None
    return version is None or oldest is None or version >= oldest


@check(
    "FRM-008",
    title="XLA finds ptxas and libdevice",
    problem="XLA does not find ptxas or libdevice",
    about=(
        "XLA compiles for the GPU with two files of the CUDA toolkit: ptxas and libdevice.10.bc. It looks "
        "for them where XLA_FLAGS=--xla_gpu_cuda_data_dir says, in the toolkit's directory that the "
        "framework was built with, in /usr/local/cuda, later ones in the nvidia-cuda-nvcc wheel, and for "
        "ptxas on PATH; conda's cudatoolkit brings neither to where it looks. Without them JAX computes "
        "nothing on the GPU, and Keras, whose optimizers are compiled from TensorFlow 2.11 on, stops with "
        '"libdevice not found at ./libdevice.10.bc": a failure. A warning in an older TensorFlow, where XLA '
        "is asked for or its log misses them."
    ),
    sources=(
        "tensorflow#58681, #56927, #35423, #33375; jax#989",
        "xla, cuda_root_path.cc, nvptx_libdevice_path.cc (xla_tools.csv)",
    ),
    follows=_BEFORE,
)
def tools_found(view: SnapshotView) -> Iterator[Verdict]:
    need_gpus(view)

    def judge(facts: Framework) -> Iterator[Verdict]:
        title = FRAMEWORKS[facts.name]
        if ran(facts, "xla"):
            yield Passed(f"{title}: XLA compiled for the GPU")
            return
        tools = xla_tools(facts)
        missing = [] if tools.libdevice else ["libdevice.10.bc"]
        if tools.search.ptxas and not tools.ptxas:
            missing.insert(0, "ptxas")
        logged = next((line for line in said(facts) if _LACKS.search(line)), "")
        if not missing:
            first = [one[0].path for one in (tools.ptxas, tools.libdevice) if one]
            yield Passed(f"{title}: {', '.join(first)}")
            return
        if not (tools.search.always or logged or _asks_for_xla(view, facts)):
            yield Passed(
                f"{title} finds no {' and no '.join(missing)}, and compiles only when asked to"
            )
            return
        failed = any(
            one.name == "xla" and one.outcome == "failed" for one in known(facts.trials) or []
        )
        fails = failed or (
            tools.search.always and ("libdevice.10.bc" in missing or facts.name == "jax")
        )
        yield Finding(
            "fail" if fails else "warn",
            f"XLA in {title} {known(facts.version) or ''} finds no {' and no '.join(missing)}: "
            f"{_effect(facts, fails)}.",
            subjects=about("framework", title),
            evidence=[
                view.evidence(f"target.{facts.name}.compiler_tools", _where(tools, missing)),
                *(
                    [Evidence(f"target.{facts.name}.log", logged, f"{title}'s log")]
                    if logged
                    else []
                ),
            ],
            remedy=bring_tools(view, facts, tools),
            headline=f"XLA finds no {' and no '.join(missing)}",
        )

    yield from each_framework(view, judge)


def _effect(facts: Framework, fails: bool) -> str:
    if facts.name == "jax":
        return "JAX computes nothing on the GPU"
    if fails:
        return "what Keras or jit_compile compiles stops with an error"
    return "what it compiles fails, or is left to the driver"


def _where(tools: XlaTools, missing: list[str]) -> str:
    searched = tools.search.ptxas if missing == ["ptxas"] else tools.search.libdevice
    told = f"none in {', '.join(searched)}"
    aside = [one.path for one in tools.all if one.place == "aside"]
    return told + (f"; aside: {', '.join(aside[:3])}" if aside else "")


def _asks_for_xla(view: SnapshotView, facts: Framework) -> bool:
    values = variables(view)
    asked = ("tf_xla_auto_jit", "tf_xla_cpu_global_jit")
    return any(flag in values.get("TF_XLA_FLAGS", "") for flag in asked) or facts.settings.get(
        "xla", "false"
    ) not in ("false", "")


def bring_tools(view: SnapshotView, facts: Framework, tools: XlaTools) -> Remedy:
    """What is there is named to XLA; else NVIDIA's wheel, which holds both, or conda's package."""
    there = _whole_toolkit(tools, known(facts.built_cuda) or "")
    if there is not None:
        return Remedy("Name the toolkit that is there to XLA.", [_flag(there)])
    interpreter = view.target.interpreter
    conda = None if interpreter is None else interpreter.facts
    if conda is not None and conda.kind == "conda":
        beside = next(
            (one for one in tools.all if one.path == f"{conda.prefix}/lib/libdevice.10.bc"), None
        )
        if beside is not None and tools.ptxas:
            return Remedy(
                "Put conda's libdevice where XLA looks.",
                [
                    f"mkdir -p {word(conda.prefix)}/lib/nvvm/libdevice",
                    f"ln -s {word(beside.path)} {word(conda.prefix)}/lib/nvvm/libdevice/",
                    _flag(f"{conda.prefix}/lib"),
                ],
            )
        nvcc = f"cuda-nvcc={_minor(facts)}" if _minor(facts) else "cuda-nvcc"
        return Remedy(
            "Install conda's nvcc, which brings both, and name the environment to XLA.",
            [
                f"conda install -y -p {word(conda.prefix)} -c nvidia {nvcc}",
                _flag(conda.prefix),
            ],
        )
    commands = [pip_install(view, *_wheels(facts))]
    if "wheel" not in tools.search.libdevice:
        commands.append(_flag(_wheel_root(facts)))
    return Remedy(
        "Install NVIDIA's wheel, which brings both, where this version looks for them.", commands
    )


def _whole_toolkit(tools: XlaTools, cuda: str) -> str | None:
    """The root of a toolkit with both files that this XLA does not look into by itself."""
    libdevice = {one.root for one in tools.all if one.kind == "libdevice"}
    built = parse_version(cuda)
    roots = [
        (version, one.root)
        for one in tools.all
        if one.kind == "ptxas" and one.place != "PATH" and one.root in libdevice
        if (version := parse_version(known(one.version) or "")) is not None
        if tools.search.oldest_ptxas is None or version >= tools.search.oldest_ptxas
        if built is None
        or not tools.search.as_new_as_build
        or version.release[:2] >= built.release[:2]
    ]
    return max(roots)[1] if roots else None


def _flag(root: str) -> str:
    return f"export XLA_FLAGS=--xla_gpu_cuda_data_dir={word(root)}"


def _minor(facts: Framework) -> str:
    version = parse_version(known(facts.built_cuda) or "")
    return f"{version.major}.{version.minor}" if version else ""


def _wheels(facts: Framework) -> list[str]:
    """The wheels with ptxas and libdevice for the CUDA that a framework was built with, or a newer minor.

    For CUDA 10 there are none; a newer ptxas compiles for it, too.
    """
    build = tensorflow_build(known(facts.version) or "") if facts.name == "tensorflow" else None
    pinned = [str(one) for one in build.and_cuda if "cuda-nvcc" in one.name] if build else []
    if pinned:
        return pinned
    version = parse_version(known(facts.built_cuda) or "")
    if version is None or version.major == 12:
        least = f"=={version.major}.*,>={version.major}.{version.minor}" if version else ""
        return [f"nvidia-cuda-nvcc-cu12{least}"]
    if version.major < 12:
        return ["nvidia-cuda-nvcc-cu11"]
    least = f"=={version.major}.*,>={version.major}.{version.minor}"
    return [f"nvidia-cuda-nvcc{least}", f"nvidia-nvvm{least}"]


def _wheel_root(facts: Framework) -> str:
    site = (known(facts.file) or "").rpartition("/")[0].rpartition("/")[0]
    return f"{site or '.'}/nvidia/cuda_nvcc"


@check(
    "FRM-009",
    title="XLA's ptxas is new enough",
    problem="the ptxas that XLA takes is too old",
    about=(
        "XLA takes the first ptxas that it finds, for most versions the one on PATH, also where the wheels "
        'bring a newer one. One that is older than the PTX that XLA writes stops with "Unsupported .version '
        "8.4; current version is '8.2'\"; one older than 11.1 compiles wrongly without a word. A failure in "
        "JAX, which compiles everything; a warning in TensorFlow."
    ),
    sources=("jax#6799, #10083, #25344, #25718, #25853", "xla_tools.csv"),
    follows=(*_BEFORE, "FRM-008"),
)
def ptxas_new_enough(view: SnapshotView) -> Iterator[Verdict]:
    need_gpus(view)

    def judge(facts: Framework) -> Iterator[Verdict]:
        title = FRAMEWORKS[facts.name]
        if ran(facts, "xla"):
            yield Passed(f"{title}: XLA compiled for the GPU")
            return
        tools = xla_tools(facts)
        logged = next((line for line in said(facts) if _REFUSES.search(line)), "")
        if not tools.search.ptxas and not logged:
            raise Skip(f"this {title} compiles without ptxas")
        taken = tools.ptxas[0] if tools.ptxas else None
        if taken is None:
            raise Skip(f"{title} finds no ptxas")
        version = parse_version(need(taken.version, f"the version of {taken.path}"))
        if version is None:
            raise NotKnown(f"which version {taken.path} is")
        needed = _needed(facts, tools.search)
        if not logged and version.release[: len(needed.release)] >= needed.release:
            yield Passed(f"{title}: {taken.path} {version}")
            return
        always = facts.name == "jax"
        yield Finding(
            "fail" if always or logged else "warn",
            f"XLA in {title} {known(facts.version) or ''} takes {taken.path} of CUDA {version}, and needs "
            f"CUDA {needed}'s or a later one: {'nothing' if always else 'nothing that it is to compile'} "
            "compiles, or it compiles wrongly.",
            subjects=about("framework", title) + about_file(taken.path),
            evidence=[
                view.evidence(f"target.{facts.name}.compiler_tools", f"{taken.path}: {version}"),
                view.evidence(f"target.{facts.name}.built_cuda"),
                *(
                    [Evidence(f"target.{facts.name}.log", logged, f"{title}'s log")]
                    if logged
                    else []
                ),
            ],
            remedy=newer_ptxas(view, facts, tools, taken, needed),
            headline=f"XLA's ptxas ({version}) is older than {title}'s CUDA",
        )

    yield from each_framework(view, judge)


def _needed(facts: Framework, search: XlaSearch) -> Version:
    oldest = search.oldest_ptxas or Version("0")
    built = parse_version(known(facts.built_cuda) or "") if search.as_new_as_build else None
    return max(oldest, Version(f"{built.major}.{built.minor}")) if built else oldest


def newer_ptxas(
    view: SnapshotView, facts: Framework, tools: XlaTools, taken: CompilerTool, needed: Version
) -> Remedy:
    text, commands = "Put a newer one first.", []
    newer = [
        one
        for one in tools.all
        if one.kind == "ptxas"
        and (version := parse_version(known(one.version) or "")) is not None
        and version >= needed
    ]
    folder = newer[0].path.rpartition("/")[0] if newer else f"{_wheel_root(facts)}/bin"
    if not newer:
        commands.append(pip_install(view, *_wheels(facts)))
    if taken.place == "XLA_FLAGS":
        text = "Take --xla_gpu_cuda_data_dir out of XLA_FLAGS, and put a newer one first on PATH."
        commands.append("unset XLA_FLAGS")
    if "PATH" in tools.search.ptxas:
        commands.append(f'export PATH={word(folder)}:"$PATH"')
    else:
        commands.append(_flag(folder.rpartition("/")[0]))
    return Remedy(text, commands)
