"""Imports that fail because of another package: protobuf or numpy of the wrong version, or a missing module.

The framework's words name the package. What is installed, and what the framework's metadata requires,
decide whether it is too old or too new, so that the remedy asks for another version than the installed one.
"""

from __future__ import annotations

import re

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from ...data import table
from ...data.sonames import component_of, provider
from ..declared import declared_causes
from ..packages.requirements import marker_environment, requirements
from ..reading import Distribution, Framework, SnapshotView, fact
from ..target import (
    installed_if_known,
    of_component,
    owner_of,
    pip_install,
    python_version,
    version_of,
)
from ..verdicts import Remedy
from .causes import Explained

CAUSE = declared_causes(__name__)

MISSING = CAUSE["module-not-installed"]
REMOVED = CAUSE["module-removed"]
HALF = CAUSE["half-installed"]
# Of a package that the table does not know; a file of its name in its place is no matter of versions.
_LACKS = re.compile(
    r"(?<!initialized )module '(\w{1,80})[\w.]{0,200}' has no attribute"
    r"|cannot import name '\w{1,200}' from '(\w{1,80})"
)
_UNDEFINED = re.compile(
    r"undefined symbol: ([^\s,]{1,300})(?:, version (\S{1,80}))?"
    r"|(?<!\w)symbol (\w{1,300}),? version (\S{1,80}) not defined"
)
OTHER_PYTHON = CAUSE["another-python-needed"]
CAUSES = (
    CAUSE["library-of-another-version"],
    OTHER_PYTHON,
    CAUSE["package-too-old"],
    CAUSE["package-too-new"],
    CAUSE["required-too-old"],
    CAUSE["required-too-new"],
    CAUSE["package-unfit"],
    MISSING,
    REMOVED,
    HALF,
)


def explain_versions(view: SnapshotView, facts: Framework, words: str) -> Explained | None:
    """What a failed import's words say about another package's version; None where they say nothing.

    A pattern's group is the version of numpy's C interface that a module was compiled for.
    """
    for sign in table("version_messages"):
        found = re.search(sign["pattern"], words)
        if found is not None:
            line = next((line for line in words.splitlines() if found[0] in line), found[0])
            fits = sign["fits"]
            if found.groups():
                api = int(found[1], 16)
                rows = (row for row in table("numpy_api") if int(row["api"], 16) == api)
                fits = next((f">={row['first_numpy']}" for row in rows), "")
            if sign["package"] == "python":
                version = fact(view.target.interpreter, "version") or ""
                params = {"needs": f" {fits}", "has": version}
                advice = Remedy(OTHER_PYTHON.remedy, [])
                return Explained(OTHER_PYTHON, "", line.strip()[:300], params, advice)
            return _explained(view, facts, sign["package"], fits, line.strip()[:300])
    if library := _of_another_version(view, facts, words):
        return library
    lacks = _LACKS.search(words)
    package = canonicalize_name(lacks[1] or lacks[2]) if lacks else ""
    packages = installed_if_known(view)
    if lacks and package in packages and packages[package] is not owner_of(packages, facts.name):
        return _explained(view, facts, package, "", lacks[0])
    return None


def _of_another_version(view: SnapshotView, facts: Framework, words: str) -> Explained | None:
    """A symbol that a library lacks, whose wheel is not of the version that the framework requires."""
    found = _UNDEFINED.search(words)
    if found is None:
        return None
    symbol, version = found[1] or found[3], found[2] or found[4] or ""
    part = component_of(provider(symbol, version))
    packages = installed_if_known(view)
    owner = owner_of(packages, facts.name)
    for one in of_component(packages, part) if part else []:
        wanted, has = _required(view, owner, one.normalized), version_of(one)
        if wanted and has is not None and has not in _all(wanted):
            params = {
                "symbol": symbol,
                "package": one.name,
                "has": f" {one.version}",
                "needs": f" ({one.name}{wanted})",
            }
            advice = Remedy(
                f"Install {one.name} of a release that fits.",
                [pip_install(view, f"{one.name}{wanted}")],
            )
            return Explained(CAUSE["library-of-another-version"], "", found[0], params, advice)
    return None


def _explained(
    view: SnapshotView, facts: Framework, package: str, fits: str, line: str
) -> Explained:
    packages = installed_if_known(view)
    owner, installed = owner_of(packages, facts.name), packages.get(package)
    has = version_of(installed)
    required = _required(view, owner, package)
    either = (one for one in (required, SpecifierSet(fits)) if one)
    wanted = next((one for one in either if has is None or has not in _all(one)), SpecifierSet())
    stated = wanted is required
    if not stated:
        # The version that is here fulfils what is required: its lower bounds say no more.
        lower = ">=" if fits.startswith(">=") else ""
        wanted &= SpecifierSet(",".join(str(one) for one in required if one.operator != lower))
    params = {
        "package": package,
        "has": "" if installed is None else f" {installed.version}",
        "needs": f" (it needs {package}{wanted})" if wanted else "",
    }
    if wanted:
        commands = [pip_install(view, f"{package}{wanted}")]
        old = _is_old(wanted, has)
        cause = (
            (CAUSE["required-too-old"] if old else CAUSE["required-too-new"])
            if stated
            else (CAUSE["package-too-old"] if old else CAUSE["package-too-new"])
        )
    else:
        again = [] if owner is None else [f"{owner.name}=={owner.version}", package]
        options = "--force-reinstall --no-cache-dir"
        commands = [f"{pip_install(view, *again)} {options}"] if again else []
        cause = CAUSE["package-unfit"]
    return Explained(cause, "", line, params, Remedy(cause.remedy.format(**params), commands))


def _all(wanted: SpecifierSet) -> SpecifierSet:
    return SpecifierSet(str(wanted), prereleases=True)


def _is_old(wanted: SpecifierSet, has: Version | None) -> bool:
    """Whether a version is below one of the lower bounds; where it is not known, whether there is one."""
    bounds = [one for one in wanted if one.operator in (">=", ">", "~=")]
    return any(has is None or not one.contains(has, True) for one in bounds)


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
    owner = owner_of(installed_if_known(view), facts.name)
    if module.startswith(f"{facts.name}."):
        if owner is None:
            return None
        again = pip_install(view, f"{owner.name}=={owner.version}")
        commands = [f"{again} --force-reinstall --no-deps --no-cache-dir", f"ls -d {facts.name}*"]
        return Explained(HALF, "", found[0], {"module": module}, Remedy(HALF.remedy, commands))
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


def _is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")
