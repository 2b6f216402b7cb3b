"""Imports that fail because of another package: protobuf or numpy of the wrong version, or a missing module.

The framework's words name the package. What is installed, and what the framework's metadata requires,
decide whether it is too old or too new, so that the remedy asks for another version than the installed one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from ...data import table
from ...data.numpy_names import first_numpy, numpy_name
from ...data.versions import parse_version
from ...facts.target import Distribution, Framework
from ...facts.view import SnapshotView
from ...findings.model import Remedy
from ..packages.requirements import marker_environment, requirements
from ..target import installed_if_known, owner_of, pip_install, python_version, version_of
from .causes import Explained, import_fails

_FITS = "Install a {package} that fits."
TOO_OLD = import_fails("package-too-old", "{package}{has} is too old for it{needs}", _FITS)
TOO_NEW = import_fails("package-too-new", "{package}{has} is too new for it{needs}", _FITS)
UNFIT = import_fails(
    "package-unfit",
    "{package}{has} is of another version than it needs{needs}",
    "Install it again, with the versions that it requires.",
)
MISSING = import_fails(
    "module-not-installed",
    "the module {module}, which it needs, is not installed",
    "Install the package that brings it.",
)
REMOVED = import_fails(
    "module-removed",
    "it needs the module {module}, which Python does not have after {until}",
    "Use Python {until} or older, or a release of the framework for this Python.",
)
HALF = import_fails(
    "half-installed",
    "its own module {module} is missing: only a part of it is installed, or something else of its name"
    " comes first",
    "Install it again over itself; see that no file or folder of that name lies where Python is started.",
)
CAUSES = (TOO_OLD, TOO_NEW, UNFIT, MISSING, REMOVED, HALF)


class Needs(NamedTuple):
    """What a framework's words say of a package: "old", "new" or "", and the versions that fit."""

    how: str = ""
    versions: str = ""


Judge = Callable[[re.Match[str], Version | None], Needs]


class Sign(NamedTuple):
    """Words of a failed import that are about one package's version."""

    pattern: str
    package: str
    needs: Needs | Judge
    source: str


def _generated_code(found: re.Match[str], _has: Version | None) -> Needs:
    generated, running = parse_version(found[1]), parse_version(found[2])
    if generated is None or running is None:
        return Needs()
    if generated > running:
        return Needs("old", f">={generated}")
    return Needs("new", f"<{generated.major + 1}")


def _numpy_name(found: re.Match[str], has: Version | None) -> Needs:
    row = numpy_name(next(group for group in found.groups() if group))
    if row is None or has is None:
        return Needs()
    if row.added_in and has < Version(row.added_in) and not row.removed_in:
        return Needs("old", f">={row.added_in}")
    if row.removed_in and has >= Version(row.removed_in):
        return Needs("new", f"<{row.removed_in}")
    return Needs()


def _compiled_for(found: re.Match[str], _has: Version | None) -> Needs:
    """By numpy's own numbers, of the one it was compiled for and the one that runs: newer is higher."""
    compiled, runs = int(found[1], 0), int(found[2], 0)
    if compiled <= runs:
        return Needs("new")
    first = first_numpy(compiled) if found[1].startswith("0x") else ""
    return Needs("old", f">={first}" if first else "")


def _numpy_2(_found: re.Match[str], has: Version | None) -> Needs:
    if has is None:
        return Needs()
    return Needs("new", "<2") if has.major >= 2 else Needs("old", ">=2")


_GUARANTEE = "protobuf's cross-version runtime guarantee"
SIGNS = (
    Sign(
        r"cannot import name '?builder'? from '?google\.protobuf",
        "protobuf",
        Needs("old", ">=3.20"),
        "tensorflow 2.18.0 with protobuf 3.19.6, observed",
    ),
    Sign(
        r"cannot import name '?runtime_version'? from '?google\.protobuf",
        "protobuf",
        Needs("old", ">=5.26"),
        _GUARANTEE,
    ),
    Sign(
        r"gencode (\d[\d.]{0,20}\d) runtime (\d[\d.]{0,20}\d)",
        "protobuf",
        _generated_code,
        _GUARANTEE,
    ),
    Sign(
        r"Descriptors cannot (?:not )?be created directly"
        r"|cannot import name '?_message'? from '?google\.protobuf",
        "protobuf",
        Needs("new", "<3.21"),
        "upstream TensorFlow 1.15.5 with protobuf 4.24.4, observed",
    ),
    Sign(
        r"'MessageFactory' object has no attribute 'GetPrototype'",
        "protobuf",
        Needs("new", "<6"),
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


def explain_versions(view: SnapshotView, facts: Framework, words: str) -> Explained | None:
    """What a failed import's words say about protobuf or numpy; None where they are about neither."""
    for sign in SIGNS:
        found = re.search(sign.pattern, words)
        if found is not None:
            line = next((line for line in words.splitlines() if found[0] in line), found[0])
            return _explained(view, facts, sign, found, line.strip()[:300])
    return None


def _explained(
    view: SnapshotView, facts: Framework, sign: Sign, found: re.Match[str], line: str
) -> Explained:
    packages = installed_if_known(view)
    owner, package = owner_of(packages, facts.name), packages.get(sign.package)
    has = version_of(package)
    needs = sign.needs if isinstance(sign.needs, Needs) else sign.needs(found, has)
    required = _required(view, owner, sign.package)
    how, wanted = needs.how, SpecifierSet(needs.versions)
    if has is not None and required and not required.contains(has, prereleases=True):
        how, wanted = _direction(required, has), required
    elif has is not None and needs.versions and wanted.contains(has, prereleases=True):
        how, wanted = "", SpecifierSet()  # the words are about something else, too
    elif needs.versions and required:
        wanted &= _beyond(needs.versions, required)
    params = {
        "package": sign.package,
        "has": "" if package is None else f" {package.version}",
        "needs": f" (it needs {sign.package}{wanted})" if wanted else "",
    }
    if wanted:
        text, commands = _FITS, [pip_install(view, f"{sign.package}{wanted}")]
    elif owner is None:
        text, commands = "Install a {package} that fits the framework.", []
    else:
        again = pip_install(view, f"{owner.name}=={owner.version}", sign.package)
        text, commands = UNFIT.remedy, [f"{again} --force-reinstall --no-cache-dir"]
    cause = {"old": TOO_OLD, "new": TOO_NEW}.get(how, UNFIT)
    return Explained(cause, "", line, params, Remedy(text.format(**params), commands))


def _beyond(versions: str, required: SpecifierSet) -> SpecifierSet:
    """``required`` without the lower bounds that ``versions``, if it is a lower bound, exceeds."""
    if not versions.startswith(">="):
        return required
    bound = Version(versions.removeprefix(">="))
    kept = (one for one in required if one.operator != ">=" or Version(one.version) > bound)
    return SpecifierSet(",".join(map(str, kept)))


def _direction(required: SpecifierSet, has: Version) -> str:
    bounds = (one for one in required if one.operator in (">=", ">", "~="))
    return "old" if any(not one.contains(has, True) for one in bounds) else "new"


def _required(view: SnapshotView, owner: Distribution | None, package: str) -> SpecifierSet:
    """The versions of a package that the framework's own metadata requires; empty for all."""
    probe = view.target.interpreter
    required = SpecifierSet()
    if owner is None or probe is None or probe.facts is None:
        return required
    for one in requirements(owner, marker_environment(probe.facts)):
        if canonicalize_name(one.name) == package:
            required &= one.specifier
    return required


def explain_missing(view: SnapshotView, facts: Framework, words: str) -> Explained | None:
    """None where the words are of no module, or of one whose package has its name."""
    found = re.search(r"No module named '([\w.]{1,200})'", words)
    if found is None:
        return None
    module = found[1]
    if module.startswith(f"{facts.name}."):
        return _half_installed(view, facts, module, found[0])
    row = next((row for row in table("module_packages") if _is_in(module, row["module"])), None)
    if row is None:
        return None
    until, version = row["until_python"], python_version(view)
    removed = bool(until and version and version > tuple(map(int, until.split("."))))
    params = {"module": module, "until": until}
    text = MISSING.remedy if row["package"] else REMOVED.remedy.format(**params)
    commands = [pip_install(view, row["package"])] if row["package"] else []
    cause = REMOVED if removed else MISSING
    return Explained(cause, "", found[0], params, Remedy(text, commands))


def _half_installed(
    view: SnapshotView, facts: Framework, module: str, words: str
) -> Explained | None:
    owner = owner_of(installed_if_known(view), facts.name)
    if owner is None:
        return None
    again = pip_install(view, f"{owner.name}=={owner.version}")
    commands = [f"{again} --force-reinstall --no-deps --no-cache-dir", f"ls -d {facts.name}*"]
    return Explained(HALF, "", words, {"module": module}, Remedy(HALF.remedy, commands))


def _is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")
