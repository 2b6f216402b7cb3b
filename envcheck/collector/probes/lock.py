"""The lock of an environment that envcheck installed, and what is there of it: versions, since when."""

import os
import re
import sys

from .. import files
from ..facts import Facts, from_error, unavailable
from ..packaging import distributions, toml

DOCUMENT = "target"
DEADLINE = 20

_LIMIT = 8 << 20  # bytes of a lock
_EVERY = re.compile("")
_MOST = 2000  # packages


def collect(context):
    facts = Facts(source="pylock.toml, and metadata in the environment's directories")
    prefix = context.params.get("prefix", sys.prefix)
    sys_path = context.params.get("sys_path", sys.path)
    path = os.path.join(prefix, ".envcheck", "pylock.toml")
    try:
        lock = toml.loads(files.read(path, _LIMIT).decode("utf-8"))
        locked, about = _packages(lock), _about(lock)
    except OSError as error:
        facts.put("packages", from_error(error))
        return facts
    except (ValueError, RecursionError) as error:
        facts.put("packages", unavailable("error", "%s: %s" % (path, error)))
        return facts
    facts.put("path", path)
    for name, value in about.items():
        facts.put(name, value if isinstance(value, str) else unavailable("absent"))
    facts.put("gpu", _own(lock).get("gpu", True) is not False)
    there = _installed(prefix, sys_path)
    facts.put("packages", [_beside(name, locked[name], there.get(name)) for name in sorted(locked)])
    added = sorted(set(there) - set(locked))[:_MOST]
    facts.put(
        "added",
        [
            {"name": n, "version": there[n].version, "since": distributions.since(there[n].home)}
            for n in added
        ],
    )
    return facts


def _packages(lock):
    """{normalised name: version} of a lock. Raises ValueError for what is none of envcheck's."""
    listed = lock.get("packages")
    if not isinstance(listed, list) or len(listed) > _MOST:
        raise ValueError("it has no list of packages")
    found = {}
    for entry in listed:
        name = entry.get("name") if isinstance(entry, dict) else None
        version = entry.get("version") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not isinstance(version, str):
            raise ValueError("a package of it has no name or no version")
        found[distributions.normalize(name)] = version
    return found


def _own(lock):
    tool = lock.get("tool")
    own = tool.get("envcheck") if isinstance(tool, dict) else None
    return own if isinstance(own, dict) else {}


def _about(lock):
    own = _own(lock)
    return {
        "stack": own.get("stack"),
        "release": own.get("release"),
        "created_at": own.get("created-at"),
    }


def _installed(prefix, sys_path):
    """{normalised name: Distribution} of the environment's own directories."""
    home = os.path.realpath(prefix) + os.sep
    own = [entry for entry in sys_path if (os.path.realpath(entry) + os.sep).startswith(home)]
    found = {}
    for one in distributions.find(own, _EVERY):
        found.setdefault(one.normalized, one)
    return found


def _beside(name, version, there):
    about = {"name": name, "version": version}
    if there is None:
        about["found"] = unavailable("absent", "it is not installed")
    else:
        about["found"], about["since"] = there.version, distributions.since(there.home)
    return about
