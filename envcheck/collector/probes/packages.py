"""The target's distributions of this field, and whether the files that they recorded are there."""

import errno
import os
import sys

from ..facts import Facts, from_error, unavailable
from ..packaging import distributions, horovod, keras_2, loaded, overwritten

DOCUMENT = "target"
DEADLINE = 20

_FIRST = 20  # missing files that are named
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_HOROVOD = ("horovod", "nvidia-horovod")
_EXTENSIONS = (("tensorflow", "mpi_lib*.so"), ("torch", "mpi_lib*.so"), ("mxnet", "mpi_lib*.so"))


def collect(context):
    facts = Facts(source="metadata in the directories of sys.path")
    sys_path = [entry for entry in context.params.get("sys_path", sys.path) if entry]
    every = distributions.find(sys_path, distributions.EVERY)
    required = distributions.required_by_frameworks(every)
    of_users = distributions.required_by_frameworks(every, distributions.ON_TOP)
    users = {id(one): words for one, words in ((one, keras_2.needs(one)) for one in every) if words}
    lost = overwritten.find(every)
    winners = {distributions.normalize(one["by"]) for each in lost.values() for one in each}
    found = [
        one
        for one in every
        if distributions.RELEVANT.match(one.normalized)
        or one.normalized in required
        or one.normalized in of_users
        or distributions.hangs_on(one, required)
    ]
    seen = {}
    described = []
    for distribution in every:
        known = id(distribution) in users or id(distribution) in lost
        if distribution in found or known or distribution.normalized in winners:
            first = seen.setdefault(distribution.normalized, distribution.location)
            fact = describe(distribution, shadowed=first != distribution.location)
            fact["keras_2"] = users.get(id(distribution), "")
            fact["overwritten"] = lost.get(id(distribution), [])
            described.append(fact)
    facts.put("distributions", described)
    facts.put("required", required, "Requires-Dist of the frameworks, and of what they require")
    facts.put("horovod_extensions", horovod_extensions(found), "files of the horovod distribution")
    return facts


def describe(distribution, shadowed):
    """A Distribution's facts."""
    fact = {
        "name": distribution.name,
        "normalized": distribution.normalized,
        "version": distribution.version,
        "location": distribution.location,
        "summary": " ".join(distribution.values("summary")[:1])[:200],
        "shadowed": shadowed,
    }
    for name, function in (
        ("installer", lambda one: one.file("INSTALLER").strip()[:100]),
        ("requires", distributions.requirements),
    ):
        try:
            fact[name] = function(distribution)
        except OSError as error:
            fact[name] = from_error(error)
    try:
        fact["files"], missing, cut, fact["compiled"] = check_files(distribution)
    except (OSError, ValueError) as error:
        fact["files"] = from_error(error)
    else:
        fact["cut_off"] = cut[:_FIRST]
        fact["missing_count"] = len(missing)
        # Shared libraries first: without a header nobody stumbles.
        fact["missing"] = sorted(missing, key=lambda path: ".so" not in path)[:_FIRST]
    return fact


def check_files(distribution):
    """(how many files it recorded, those not on disk, libraries cut off, how many libraries). No byte code.

    An editable installation records no code: what is compiled lies elsewhere.

    Raises OSError where nothing was recorded, ValueError where the record cannot be read.
    """
    count = libraries = 0
    code = False
    missing, cut = [], []
    base = distribution.location
    for path, _hash in distributions.recorded(distribution):
        if path.endswith(".pyc") or "__pycache__" in path:
            continue
        count += 1
        libraries += ".so" in os.path.basename(path)
        code = code or path.endswith("/__init__.py")
        try:
            place = os.path.join(base, path)
            os.stat(place)
            if ".so" in path and loaded.is_cut_off(place):
                cut.append(path)
        except OSError as error:
            if error.errno in _GONE:
                missing.append(path)
        except ValueError:
            missing.append(path)  # no file can have such a name
    compiled = libraries if code else unavailable("absent", "RECORD has none of its code")
    return count, missing, cut, compiled


def horovod_extensions(found):
    """For which frameworks the horovod that would be imported has its extension's .so."""
    for distribution in found:
        if distribution.normalized in _HOROVOD:
            home = os.path.join(distribution.location, "horovod")
            return [
                horovod.extension(framework, os.path.join(home, framework), pattern)
                for framework, pattern in _EXTENSIONS
            ]
    return unavailable("absent", "no horovod distribution")
