"""Imports that fail because protobuf or numpy does not fit: whether it is too old or too new.

The framework's words say what they miss. What is installed, and what the framework's metadata asks for,
say in which direction to go, so that the remedy asks for another version than the installed one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from ...data.numpy_names import first_numpy, numpy_name
from ...data.packages import TENSORFLOWS
from ...data.versions import parse_version
from ...facts.missing import CannotJudge
from ...facts.target import Distribution, Framework
from ...facts.view import SnapshotView, facts_of
from ...findings.model import Remedy
from ..packages.requirements import marker_environment, requirements
from ..target import installed, pip_install, version_of
from .causes import Explained

_TOO_OLD, _TOO_NEW, _UNFIT = "too old", "too new", "of another version than it needs"


class Needs(NamedTuple):
    """What a framework's words say of a package: how it does not fit, and the versions that do ("")."""

    how: str
    versions: str = ""


class Sign(NamedTuple):
    """Words of a failed import that are about one package's version."""

    pattern: str
    package: str
    needs: Callable[[re.Match[str], Version | None], Needs]
    source: str


def _always(how: str, versions: str = "") -> Callable[[re.Match[str], Version | None], Needs]:
    return lambda _found, _has: Needs(how, versions)


def _generated_code(found: re.Match[str], _has: Version | None) -> Needs:
    generated, running = parse_version(found[1]), parse_version(found[2])
    if generated is None or running is None:
        return Needs(_UNFIT)
    if generated > running:
        return Needs(_TOO_OLD, f">={generated}")
    return Needs(_TOO_NEW, f"<{generated.major + 1}")


def _numpy_name(found: re.Match[str], has: Version | None) -> Needs:
    name = next(group for group in found.groups() if group)
    row = numpy_name(name)
    if row is None or has is None:
        return Needs(_UNFIT)
    if row.added_in and has < Version(row.added_in) and not row.removed_in:
        return Needs(_TOO_OLD, f">={row.added_in}")
    if row.removed_in and has >= Version(row.removed_in):
        return Needs(_TOO_NEW, f"<{row.removed_in}")
    return Needs(_UNFIT)


def _compiled_for(found: re.Match[str], _has: Version | None) -> Needs:
    """By numpy's own numbers, of what was compiled and of what runs: a newer one is higher."""
    compiled, runs = int(found[1], 0), int(found[2], 0)
    if compiled <= runs:
        return Needs(_TOO_NEW)
    first = first_numpy(compiled) if found[1].startswith("0x") else ""
    return Needs(_TOO_OLD, f">={first}" if first else "")


def _numpy_2(_found: re.Match[str], has: Version | None) -> Needs:
    if has is None:
        return Needs(_UNFIT)
    return Needs(_TOO_NEW, "<2") if has.major >= 2 else Needs(_TOO_OLD, ">=2")


SIGNS = (
    Sign(
        r"cannot import name '?builder'? from '?google\.protobuf",
        "protobuf",
        _always(_TOO_OLD, ">=3.20"),
        "tensorflow 2.18.0 with protobuf 3.19.6, observed",
    ),
    Sign(
        r"cannot import name '?runtime_version'? from '?google\.protobuf",
        "protobuf",
        _always(_TOO_OLD, ">=5.26"),
        "protobuf's cross-version runtime guarantee",
    ),
    Sign(
        r"gencode (\d[\d.]{0,20}\d) runtime (\d[\d.]{0,20}\d)",
        "protobuf",
        _generated_code,
        "protobuf's cross-version runtime guarantee",
    ),
    Sign(
        r"Descriptors cannot (?:not )?be created directly"
        r"|cannot import name '?_message'? from '?google\.protobuf",
        "protobuf",
        _always(_TOO_NEW, "<3.21"),
        "upstream TensorFlow 1.15.5 with protobuf 4.24.4, observed",
    ),
    Sign(
        r"'MessageFactory' object has no attribute 'GetPrototype'",
        "protobuf",
        _always(_TOO_NEW, "<6"),
        "tensorflow 2.18.0 with protobuf 6.33.0, observed",
    ),
    Sign(
        r"module 'numpy' has no attribute '(\w+)'|cannot import name '(\w+)' from 'numpy'"
        r"|No module named 'numpy\.(\w+)",
        "numpy",
        _numpy_name,
        "numpy's release notes (numpy_names.csv)",
    ),
    Sign(
        r"compiled against A[BP]I version (0x[0-9a-fA-F]{1,8}) but this version of numpy is"
        r" (0x[0-9a-fA-F]{1,8})",
        "numpy",
        _compiled_for,
        "numpy's own message",
    ),
    Sign(
        r"numpy\.dtype size changed.{0,80}?Expected (\d{1,4}) from C header, got (\d{1,4}) from",
        "numpy",
        _compiled_for,
        "numpy's own message",
    ),
    Sign(
        r"compiled using NumPy 1|_ARRAY_API not found|numpy\.core\.(?:multiarray|umath) failed to import"
        r"|numpy\.dtype size changed",
        "numpy",
        _numpy_2,
        "numpy's release notes, 2.0.0",
    ),
)


def explain_versions(view: SnapshotView, framework: Framework, words: str) -> Explained | None:
    """What a failed import's words say about protobuf or numpy; None where they are about neither."""
    for sign in SIGNS:
        found = re.search(sign.pattern, words)
        if found is not None:
            line = next((line for line in words.splitlines() if found[0] in line), found[0])
            return _explained(view, framework, sign, found, line)
    return None


def _explained(
    view: SnapshotView, framework: Framework, sign: Sign, found: re.Match[str], line: str
) -> Explained:
    packages = _installed(view)
    package = packages.get(sign.package)
    has = None if package is None else version_of(package)
    needs = sign.needs(found, has)
    asked = _asked(view, packages, framework.name, sign.package)
    wanted = SpecifierSet(needs.versions)
    if has is not None and asked and not asked.contains(has, prereleases=True):
        needs, wanted = Needs(_direction(asked, has)), asked
    elif has is not None and needs.versions and wanted.contains(has, prereleases=True):
        needs, wanted = Needs(_UNFIT), SpecifierSet()  # the words are about something else, too
    elif needs.versions and asked:
        wanted &= _beyond(needs.versions, asked)
    version = f" {package.version}" if package is not None else ""
    says = f"{sign.package}{version} is {needs.how} for it"
    says += f" (it needs {sign.package}{wanted})" if wanted else ""
    return Explained(says, line.strip()[:300], _remedy(view, packages, framework, sign, wanted))


def _remedy(
    view: SnapshotView,
    packages: dict[str, Distribution],
    framework: Framework,
    sign: Sign,
    wanted: SpecifierSet,
) -> Remedy:
    if wanted:
        command = pip_install(view, f"{sign.package}{wanted}")
        return Remedy(f"Install a {sign.package} that fits.", [command])
    owner = _owner(packages, framework.name)
    if owner is None:
        return Remedy(f"Install a {sign.package} that fits the framework.")
    again = pip_install(view, f"{owner.name}=={owner.version}", sign.package)
    return Remedy(
        "Install it again, with what it asks for.", [f"{again} --force-reinstall --no-cache-dir"]
    )


def _beyond(versions: str, asked: SpecifierSet) -> SpecifierSet:
    """What is asked for, less the lower bounds that ``versions``, one lower bound, goes beyond."""
    bound = versions.removeprefix(">=")
    if bound == versions:
        return asked
    return SpecifierSet(
        ",".join(
            str(one)
            for one in asked
            if one.operator != ">=" or Version(one.version) > Version(bound)
        )
    )


def _direction(asked: SpecifierSet, has: Version) -> str:
    lower = any(one.operator in (">=", ">", "~=") and not one.contains(has, True) for one in asked)
    return _TOO_OLD if lower else _TOO_NEW


def _installed(view: SnapshotView) -> dict[str, Distribution]:
    try:
        return installed(view)
    except CannotJudge:
        return {}


def _owner(packages: dict[str, Distribution], framework: str) -> Distribution | None:
    names = TENSORFLOWS if framework == "tensorflow" else (framework,)
    return next((one for name, one in packages.items() if name in names), None)


def _asked(
    view: SnapshotView, packages: dict[str, Distribution], framework: str, package: str
) -> SpecifierSet:
    """The versions of a package that the framework's own metadata asks for; empty where it does not."""
    owner = _owner(packages, framework)
    try:
        interpreter = facts_of(view.target.interpreter, "the target's interpreter")
    except CannotJudge:
        return SpecifierSet()
    asked = SpecifierSet()
    for one in [] if owner is None else requirements(owner, marker_environment(interpreter)):
        if canonicalize_name(one.name) == package:
            asked &= one.specifier
    return asked
