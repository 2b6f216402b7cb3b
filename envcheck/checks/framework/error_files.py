"""Imports that fail in a file which the error names: whose file it is, what brought it, and what is wrong."""

from __future__ import annotations

import re

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from ...facts.target import ErrorFile
from ..declared import declared_causes
from ..packages.requirements import marker_environment, requirements, together
from ..reading import Framework, SnapshotView, fact, known
from ..target import (
    installed_if_known,
    owner_of,
    pip_install,
    pip_restore,
    variables_if_known,
    version_of,
)
from ..verdicts import Remedy, word
from .causes import Explained

CAUSE = declared_causes(__name__)
BROUGHT = CAUSE["file-brought-by-variable"]
DAMAGED = CAUSE["package-file-damaged"]
OTHER_NUMPY = CAUSE["built-for-another-numpy"]
ADDRESS_SPACE = CAUSE["address-space-limit"]
CAUSES = (BROUGHT, DAMAGED, OTHER_NUMPY, ADDRESS_SPACE)

NO_MEMORY = re.compile(
    r"(?i)failed to map segment|cannot allocate memory|MemoryError|bad_alloc|memory allocation|out of memory"
)
_DAMAGED = re.compile(r"file too short|invalid ELF header|wrong ELF class|ELF load command")
_NUMPY = re.compile(
    r"numpy\.\w+ size changed|compiled using NumPy 1|_ARRAY_API not found|multiarray failed to import"
    r"|compiled against A[BP]I version"
)


def explain_files(view: SnapshotView, facts: Framework, words: str) -> Explained | None:
    """None where the error's files say nothing about its cause."""
    line = (words.strip().splitlines() or [""])[0][:300]
    mib = limited_to(view)
    if mib and NO_MEMORY.search(words):
        advice = Remedy(ADDRESS_SPACE.remedy, ["ulimit -S -v unlimited"])
        return Explained(ADDRESS_SPACE, "", line, {"mib": mib}, advice)
    named = [one for one in facts.error_files if one.named]
    brought = next((one for one in named if one.brought_by.startswith("LD_")), None)
    if brought is not None:
        return _brought(view, brought, line)
    owned = next((one for one in named if known(one.distribution)), None)
    if owned is not None and (owned.cut_off or _DAMAGED.search(words)):
        name, version = known(owned.distribution) or "", known(owned.distribution_version) or ""
        params = {"file": owned.path, "package": f"{name} {version}"}
        commands = [pip_restore(view, name, version)]
        return Explained(
            DAMAGED, "", line, params, Remedy(DAMAGED.remedy.format(**params), commands)
        )
    return _of_another_numpy(view, facts, line) if _NUMPY.search(words) else None


def limited_to(view: SnapshotView) -> int | None:
    """MiB of memory that a process may use; None where there is no limit, or none is known."""
    limit = fact(view.machine.host, "address_space_kib")
    return None if limit is None or limit < 0 else limit // 1024


def _brought(view: SnapshotView, file: ErrorFile, line: str) -> Explained:
    name, folder = file.brought_by, file.path.rpartition("/")[0]
    entries = re.split("[:;]", variables_if_known(view).get(name, ""))
    rest = [one for one in entries if one and one.rstrip("/") not in (folder, file.path)]
    command = "export " + word(f"{name}={':'.join(rest)}") if rest else f"unset {name}"
    params = {"variable": name, "file": file.path}
    return Explained(BROUGHT, "", line, params, Remedy(BROUGHT.remedy.format(**params), [command]))


def _of_another_numpy(view: SnapshotView, facts: Framework, line: str) -> Explained | None:
    """The error is of the package whose file imports numpy; numpy's own files are always in between."""
    packages = installed_if_known(view)
    numpy, owner = packages.get("numpy"), owner_of(packages, facts.name)
    owners = [known(one.distribution) for one in facts.error_files]
    culprit = next((name for name in owners if name and canonicalize_name(name) != "numpy"), None)
    one = packages.get(canonicalize_name(culprit or ""))
    has = version_of(numpy)
    if one is None or has is None or one is owner:
        return None
    probe = view.target.interpreter
    environment = marker_environment(probe.facts) if probe and probe.facts else {}
    every = [each for part in packages.values() for each in requirements(part, environment)]
    wanted = together(one.normalized, SpecifierSet(), every)
    commands = [f"{pip_install(view, f'{one.name}{wanted}')} --upgrade"]
    built = "NumPy 1" if has.major > 1 else "another numpy"
    params = {
        "package": f"{one.name} {one.version}",
        "name": one.name,
        "built": built,
        "has": str(has),
    }
    return Explained(
        OTHER_NUMPY, "", line, params, Remedy(OTHER_NUMPY.remedy.format(**params), commands)
    )
