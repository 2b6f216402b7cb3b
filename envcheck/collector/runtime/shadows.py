"""Keeps a user's PYTHONPATH from lending the collector its modules, and leaves it to the target."""

import os
import sys

_PACKAGE = "envcheck"


class hidden(object):  # noqa: N801  (used as `with hidden():`)
    """While it lasts, PYTHONPATH's directories are not on sys.path."""

    def __enter__(self):
        self._path = list(sys.path)
        self._folders = folders()
        self._before = set(sys.modules) if self._folders else set()
        if self._folders:
            sys.path[:] = [entry for entry in sys.path if entry not in self._folders]

    def __exit__(self, *problem):
        if not self._folders:
            return
        sys.path[:] = self._path
        theirs = _modules_in(self._folders) - {_PACKAGE}
        for name in set(sys.modules) - self._before:
            if name.partition(".")[0] in theirs:
                del sys.modules[name]


def folders():
    """PYTHONPATH's directories as they stand in sys.path: a set, mostly empty."""
    value = os.environ.get("PYTHONPATH", "")
    if not value or sys.flags.ignore_environment:
        return set()
    found = set()
    for entry in value.split(os.pathsep):
        found.add(entry)
        try:
            found.add(os.path.abspath(entry))
        except OSError:
            pass  # relative to a directory that is gone
    return found


def _modules_in(places):
    """The names of the top-level modules that lie in these directories."""
    names = set()
    for place in places:
        try:
            names.update(entry.partition(".")[0] for entry in os.listdir(place or "."))
        except OSError:
            pass
    return names
