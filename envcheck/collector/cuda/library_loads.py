"""Loads NVIDIA's libraries one by one, each as its user would find it, and asks each for its version."""

import os
import re
from collections import namedtuple

from ..facts import is_unavailable, unavailable
from ..worker import forked
from . import dl, elf, libraries

LIMIT = 8.0  # seconds for one library
_NOT_THERE = re.compile(
    r"(?:\A|\s)(?:\S*/)?([^/:\s]+): cannot open shared object file: "
    r"No such file or directory"
)
_CHAIN = 12  # wheels' libraries that one may need before it


# One load to try. target: the SONAME (how="dlopen") or the path (how="wheel") to load.
Load = namedtuple("Load", "library how target")


def load_all(requests, wheels, origins, budget):
    """A Library's facts for each Load, each tried in a process that has loaded none of them before.

    wheels: {file name: path} of the libraries in the target's wheels. Some of those need one another and
    carry no RPATH to where they are; a framework has the needed ones loaded by then, and so has this for
    how="wheel". budget: seconds for all.
    """

    def work(request, tell):
        return _load(request, wheels if request.how == "wheel" else {}, tell)

    answers = forked.each(requests, work, LIMIT, budget, "loaded")
    return [_facts(request, answer, origins) for request, answer in zip(requests, answers)]


def _load(request, wheels, tell):
    """In the child. Whether the process is as it was: nothing was loaded."""
    before = []
    try:
        handle = _open(request.target, wheels, before)
    except dl.LoadError as error:
        tell({"words": str(error)})
        return not before
    name, region = dl.where(handle)
    tell({"name": name, "path": name if region is None else region.path})
    tell(_version(handle, request.library, region, wheels))
    return False


def _version(handle, library, region, wheels):
    """{"version", "version_from"} of a loaded library, after what its functions need has been loaded."""
    part = None
    if region is not None:
        folder, name = os.path.split(region.path)
        part = libraries.forwards_to(library, name)
    if part is not None:
        beside = os.path.join(folder, part)
        try:
            _open(beside if os.path.exists(beside) else part, wheels, [])
        except dl.LoadError as error:
            return {"version": unavailable("error", str(error))}
    return libraries.ask(handle, library, region)


def _open(target, wheels, before):
    """A handle, once the wheels' libraries that it needs are loaded. Raises LoadError."""
    while True:
        try:
            return dl.load(target)
        except dl.LoadError as error:
            lacking = _NOT_THERE.search(str(error))
            needed = wheels.get(lacking.group(1)) if lacking else None
            if needed in (None, target) or needed in before or len(before) >= _CHAIN:
                raise
        before.append(needed)
        _open(needed, wheels, before)


def _facts(request, answer, origins):
    fact = {"name": request.library.name, "how": request.how}
    if request.how == "dlopen":
        fact["soname"] = request.target
    else:
        fact["soname"] = _soname(request.target)
    path = answer.facts.get("path")
    if path is None:
        fact["path"] = answer.failure or _why(request, answer.facts.get("words", ""))
        if request.how == "wheel":
            fact.update(origins.of(request.target))
        return fact
    fact["path"] = path
    fact["version"] = (
        answer.failure or answer.facts.get("version") or unavailable("error", "no answer")
    )
    fact["version_from"] = answer.facts.get("version_from", "")
    fact.update(origins.of(path, answer.facts.get("name", "")))
    return fact


def _why(request, words):
    lacking = _NOT_THERE.search(words)
    itself = lacking is not None and lacking.group(1) == os.path.basename(request.target)
    return unavailable("absent" if itself else "error", words)


def _soname(path):
    try:
        return elf.soname(path) or unavailable("absent", "the file has no SONAME")
    except (OSError, ValueError) as error:
        return unavailable("error", "%s: %s" % (path, error))


def mapped(origins, budget):
    """A Library's facts (how="framework") for each of NVIDIA's that this process has mapped by now."""
    found = []
    for region in dl.mappings():
        library = libraries.known(os.path.basename(region.path))
        if library is not None and all(region.path != other for _, other in found):
            found.append((library, region.path))
    # The asking happens in a forked child too: it must not cost what the framework has reported so far.
    answers = forked.each(found, _ask, LIMIT, budget, "asked for its version")
    described = []
    for (library, path), answer in zip(found, answers):
        fact = {"name": library.name, "how": "framework", "soname": _soname(path), "path": path}
        fact["version"] = (
            answer.failure
            or answer.facts.get("version")
            or unavailable("error", "it could not be asked")
        )
        fact["version_from"] = answer.facts.get("version_from", "")
        if answer.failure is None and is_unavailable(fact["version"]):
            # What did no harm there may be asked here, where CUDA need not bear being forked.
            _ask((library, path), fact.update)
        fact.update(origins.of(path))
        described.append(fact)
    return described


def _ask(item, tell):
    library, path = item
    handle = dl.loaded(path)
    if handle is not None:
        tell(_version(handle, library, dl.where(handle)[1], {}))
    return True
