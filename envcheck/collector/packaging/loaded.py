"""The files behind an import: those that an error names, with their owners, and those that come first."""

import os
import re
import struct
import sys
from functools import lru_cache

from .. import files
from ..cuda import loader_search
from . import distributions

_FILES = 8
_NAMED = re.compile(r"(/[^\s:'\"()]{1,1000})")
_LIBRARY = os.path.dirname(os.path.realpath(os.__file__))  # the standard library's directory
# Of the standard library, and needed by no framework.
_UNUSED = frozenset("test tests this antigravity idlelib turtle turtledemo tkinter lib2to3".split())
_SUFFIX = re.compile(r"(?:\.cpython-[\w-]+|\.abi3)?\.(?:py|so)\Z")


def is_cut_off(path):
    """Whether a shared library ends before its own section headers do, or is empty. Raises OSError."""
    with files.open_regular(path) as file:
        head = file.read(64)
        size = os.fstat(file.fileno()).st_size
    if not head:
        return True
    if head[:4] != b"\x7fELF" or len(head) < 6:
        return False
    wide, order = head[4:5] == b"\x02", ">" if head[5:6] == b"\x02" else "<"
    try:
        (start,) = struct.unpack_from(order + ("Q" if wide else "I"), head, 40 if wide else 32)
        each, count = struct.unpack_from(order + "HH", head, 58 if wide else 46)
    except struct.error:
        return True
    return start + each * count > size


def of_error(error, environ):
    """ErrorFiles: those that the message names, then those of the traceback from its end."""
    named = [path for path in _NAMED.findall(str(error)) if os.path.isfile(path)]
    traced = []
    while error is not None and len(traced) < 50:
        step, here = error.__traceback__, []
        while step is not None:
            here.append(step.tb_frame.f_code.co_filename)
            step = step.tb_next
        traced += reversed(here)
        error = error.__cause__ or error.__context__
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    traced = [path for path in traced if os.path.isfile(path) and not path.startswith(own)]
    paths = sorted(set(named + traced), key=(named + traced).index)[:_FILES]
    every = distributions.find(sys.path, distributions.EVERY) if paths else []
    return [_error_file(path, path in named, every, environ) for path in paths]


def _error_file(path, named, every, environ):
    fact = {"path": path, "named": named, "brought_by": _brought_by(path, environ)}
    try:
        fact["cut_off"] = is_cut_off(path)
    except OSError:
        pass
    owner = next((one for one in every if owns(one, path)), None)
    if owner is not None:
        fact.update(distribution=owner.name, distribution_version=owner.version)
    return fact


def owns(distribution, path):
    """Whether a distribution's RECORD names this file."""
    home = os.path.realpath(distribution.location)
    real = os.path.realpath(path)
    if not real.startswith(home + os.sep):
        return False
    wanted = os.path.relpath(real, home)
    try:
        return any(name == wanted for name, _hash in distributions.recorded(distribution, wanted))
    except (OSError, ValueError):
        return False


def _brought_by(path, environ):
    if path in re.split(r"[\s:]+", environ.get("LD_PRELOAD", "")):
        return "LD_PRELOAD"
    folder = os.path.dirname(path)
    if folder in [entry.rstrip("/") for entry in loader_search.search_path(environ) if entry]:
        return "LD_LIBRARY_PATH"
    entries = [entry.rstrip("/") for entry in environ.get("PYTHONPATH", "").split(":") if entry]
    below = any((path + "/").startswith(entry + "/") for entry in entries)
    return "PYTHONPATH" if below else ""


def shadows(name, cwd, environ, imported):
    """Shadows: modules of a project's directory that hide the installed ones, or the standard library's.

    name: the framework. cwd: where the user's programs start. imported: whether the import succeeded; then
    only what it uses counts.
    """
    theirs = {
        os.path.realpath(entry) for entry in environ.get("PYTHONPATH", "").split(":") if entry
    }
    user = getattr(sys.modules.get("site"), "USER_SITE", None)
    user = os.path.realpath(user) if user else None
    safe = getattr(sys.flags, "safe_path", False) or environ.get("PYTHONSAFEPATH")
    is_place = cwd and not safe and not os.path.exists(os.path.join(cwd, "__init__.py"))
    places = ([os.path.realpath(cwd)] if is_place else []) + [
        os.path.realpath(e) for e in sys.path if e
    ]
    found = []
    for index, place in enumerate(places):
        if place in theirs:
            by = "PYTHONPATH"
        elif index == 0 and is_place:
            by = "cwd"
        elif place == user:
            by = "user-site"
        elif "-packages" in place or place.startswith(_LIBRARY) or place in places[:index]:
            continue
        else:
            by = "sys.path"
        for module in _modules(place):
            used = module == name or module in sys.modules or not (imported or by == "cwd")
            if used and module not in _UNUSED and not _is_frozen(module):
                hides = _hidden(module, place, places[index + 1 :])
                if hides:
                    found.append(
                        {"module": module, "file": _file(place, module), "hides": hides, "by": by}
                    )
    return found[:20]


def _hidden(module, place, later):
    """The file of that module further down on the path, which is not the same distribution's; or None."""
    file = _file(place, module)
    if file is None:
        return None
    hidden = next(filter(None, (_file(entry, module) for entry in later if entry != place)), None)
    if hidden is None or os.path.realpath(hidden) == os.path.realpath(file):
        return None
    own = hidden.startswith(_LIBRARY) and "-packages" not in hidden
    return hidden if own or module not in _installed_in(place) else None


def _is_frozen(module):
    """Whether Python takes it from itself, wherever else it lies."""
    try:
        import _imp

        return bool(_imp.is_builtin(module) or _imp.is_frozen(module))
    except (ImportError, AttributeError):
        return False


@lru_cache(maxsize=None)
def _names(place):
    return files.names(place)[:5000]


def _modules(place):
    return sorted(
        {_SUFFIX.sub("", name) for name in _names(place) if "." not in _SUFFIX.sub("", name)}
    )


def _file(place, module):
    """The file that an import of the module takes in a directory; None for none, or a namespace."""
    whole = os.path.join(place, module)
    endings = [name for name in _names(place) if name.startswith(module + ".")]
    paths = [whole + "/__init__.py"] if module in _names(place) else []
    paths += [os.path.join(place, name) for name in endings if _SUFFIX.sub("", name) == module]
    return next(filter(os.path.isfile, paths), None)


@lru_cache(maxsize=None)
def _installed_in(place):
    """The names of the modules that distributions of the same directory brought."""
    names = set()
    for one in distributions.find([place], distributions.EVERY):
        names.add(one.normalized.replace("-", "_"))
        try:
            names.update(
                _SUFFIX.sub("", path.partition("/")[0]) for path, _ in distributions.recorded(one)
            )
        except (OSError, ValueError):
            continue
    return frozenset(names)
