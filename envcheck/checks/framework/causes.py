"""What frameworks' own words mean: why an import failed, and why no GPU was found."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ...data import table
from ...data.sonames import component_of, sonames
from ..installing import conda_install
from ..reading import Framework, SnapshotView, fact, known
from ..system_commands import on_system
from ..target import about_framework, pip, pip_install, python, title_of
from ..verdicts import Cause, Evidence, Finding, Param, Remedy, Subject, fail, word


class KnownMessage(NamedTuple):
    """A pattern in a framework's words, and the cause that it stands for.

    pattern: its named groups are the cause's parameters. says: the end of the cause's sentence.
    commands: templates of the same parameters, of the framework's directory {home}, and of {check}, which
    tries it again; "pip …" is run by the target's pip, "{conda} …" by conda where that made the environment,
    "{install}" installs the library, and "{update}" updates the driver.
    """

    pattern: str
    says: str
    commands: tuple[str, ...]
    cause: Cause


class Explained(NamedTuple):
    """A cause that a framework's words show; line: those words. advice: what to do on this machine."""

    cause: Cause
    says: str
    line: str
    params: Mapping[str, Param]
    advice: Remedy

    def found(self, facts: Framework, evidence: Iterable[Evidence], **params: Param) -> Finding:
        given = {"framework": title_of(facts), **self.params, **params}
        return Finding(self.cause, given, about_framework(facts), list(evidence), self.advice)


def found(
    view: SnapshotView,
    cause: Cause,
    facts: Framework,
    *evidence: str | Evidence,
    subjects: Sequence[Subject] = (),
    **params: Any,
) -> Finding:
    """The cause, found on a framework; evidence: fields of its facts, or others beside them.

    {framework} and {version} of its templates are filled in.
    """
    shown = [
        view.evidence(f"target.{facts.name}.{one}") if isinstance(one, str) else one
        for one in evidence
    ]
    given = {"framework": title_of(facts), "version": known(facts.version) or "", **params}
    return cause.found([*about_framework(facts), *subjects], shown, **given)


IMPORT_FOLLOWS = ("HOST-002", "PKG-001", "PKG-002", "FRM-007", "LIB-009", "ENV-011")
# What else explains some of FRM-001's causes: an overwritten library, a requirement that is not met.
_EXPLAINED = {"libraries-mixed": ["PKG-021"], "required-too-old": ["PKG-009"]}
_EXPLAINED["required-too-new"] = _EXPLAINED["required-too-old"]
_EXPLAINED["jaxlib-of-another-release"] = ["PKG-017"]


def import_fails(key: str, says: str, remedy: str = "", source: str = "") -> Cause:
    """A cause of FRM-001."""
    headline = "{framework} does not import: " + says
    follows = [*IMPORT_FOLLOWS, *_EXPLAINED.get(key, [])]
    return fail(key, headline, f"{headline}.", remedy, source=source, follows=follows)


def sees_too_few(key: str, says: str, remedy: str = "", source: str = "") -> Cause:
    """A cause of FRM-002."""
    headline = "{framework} sees {seen} of {expected}"
    why = " that CUDA sees, so it trains on {instead}: " + f"{says}."
    sentence = "{framework} sees {seen} of the {expected}" + why
    return fail(key, headline, sentence, remedy, source=source)


def signs(code: str, make: Callable[[str, str, str, str], Cause]) -> tuple[KnownMessage, ...]:
    """The messages of framework_messages.csv that explain what a check found, in the table's order."""
    return tuple(
        KnownMessage(
            row["pattern"],
            row["says"],
            tuple(filter(None, row["commands"].split(" ;; "))),
            make(row["cause"], row["says"], row["remedy"], row["source"]),
        )
        for row in table("framework_messages")
        if row["check"] == code
    )


IMPORT = signs("FRM-001", import_fails)
NO_GPU = signs("FRM-002", sees_too_few)

# Why a process died, by signal number.
SIGNALS = {
    4: "its code uses instructions that this CPU does not have (AVX, in most wheels)",
    6: "it gave up by itself",
    7: "memory that it had mapped could not be read: a full /dev/shm, or a damaged disk",
    9: "it was killed, as the kernel does when memory runs out",
    11: "a library crashed",
}


def explain(
    view: SnapshotView, facts: Framework, known_signs: Iterable[KnownMessage], lines: Iterable[str]
) -> Explained | None:
    """The first cause of the signs, in their order, of which one of the lines is a sign."""
    lines = list(lines)
    for sign in known_signs:
        for line in lines:
            found = re.search(sign.pattern, line)
            if found is not None:
                params = {name: value or "" for name, value in found.groupdict().items()}
                commands = _commands(view, facts, sign, params)
                says, remedy = sign.says.format(**params), sign.cause.remedy.format(**params)
                text = line.strip()[:300]
                return Explained(sign.cause, says, text, params, Remedy(remedy, commands))
    return None


def _commands(
    view: SnapshotView, facts: Framework, sign: KnownMessage, params: dict[str, str]
) -> list[str]:
    commands: list[str] = []
    quoted = {name: word(value) for name, value in params.items()}
    quoted["home"] = word((known(facts.file) or "").rpartition("/")[0] or ".")
    quoted["check"] = try_again(view, facts)
    for command in sign.commands:
        if command == "{update}":
            commands += on_system(view, "update-driver")
        elif command == "{install}":
            library, cuda = params["library"], known(facts.built_cuda) or ""
            commands.append(install_library(view, library, cuda))
        elif command.startswith("{conda} "):
            if fact(view.target.interpreter, "kind") == "conda":
                commands.append(conda_install(view, f"-c conda-forge {command[8:]}"))
        elif command.startswith("pip "):
            commands.append(pip(view, command.removeprefix("pip ").format(**quoted)))
        else:
            commands.append(command.format(**quoted))
    return commands


_STEPS = {
    "tensorflow": "import tensorflow as tf; print(tf.linalg.matmul(tf.ones((8, 8)), tf.ones((8, 8))))",
    "torch": 'import torch; x = torch.ones(8, 8, device="cuda"); print(x @ x)',
    "jax": "import jax.numpy as np; print(np.ones((8, 8)) @ np.ones((8, 8)))",
}


def try_again(view: SnapshotView, facts: Framework) -> str:
    """The command that makes a framework compute a product on its GPU."""
    return f"{python(view)} -c '{_STEPS[facts.name]}'"


def install_library(view: SnapshotView, soname: str, cuda: str = "") -> str:
    """The command that installs a library by its SONAME, or that looks for it.

    cuda: the CUDA version that the library's user was built with, or "".
    """
    wheel = wheel_of(soname, cuda)
    return (
        pip_install(view, wheel)
        if wheel
        else f"ldconfig -p | grep -F {word(soname.partition('.so.')[0] or soname)}"
    )


# Of the CUDA majors that have wheels the minor whose files a table has.
_LAST_MINOR = {"11": "11.8", "12": "12.5", "13": "13.0"}


def wheel_of(soname: str, cuda: str) -> str:
    """The requirement of NVIDIA's wheel that holds a library; "" if there is none for that CUDA."""
    version = soname.partition(".so.")[2]
    part = component_of(soname)
    major = cuda.partition(".")[0]
    if part is None or (part == "cudnn" and version in ("", "5", "6", "7")):
        return ""
    if not major and part in ("cublas", "cuda-runtime", "nvjitlink"):
        major = version.partition(".")[0]
    if major not in _LAST_MINOR:
        return ""
    listed = sonames(_LAST_MINOR[major]).get(soname.partition(".so")[0], soname)
    if version and listed != soname:
        return ""  # that of an older minor: CUDA 11.0's libcusolver.so.10
    pinned = f"=={version}.*" if part == "cudnn" else ""
    # The wheels for CUDA 13 have no suffix, except for libraries with a version of their own.
    suffix = "" if major == "13" and part not in ("cudnn", "nccl") else f"-cu{major}"
    return f"nvidia-{part}{suffix}{pinned}"
