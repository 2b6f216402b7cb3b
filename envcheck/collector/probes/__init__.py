"""The probes, a file each, found by walking this folder; a file's name is its section in the Snapshot.

Each file says DOCUMENT, "machine" or "target"; DEADLINE, in seconds; and has ``collect(context)``, which
returns Facts. A probe of the target that needs a module to be found there names it: IMPORTS. A probe of
the machine that tells something else in a container says IN_CONTAINER = True.

A probe runs in a process of its own. It may fail in any way it likes: what it raises, how it dies, or
that it never answers becomes the probe's outcome.
"""

import json
import os
import re

DOCUMENTS = ("machine", "target")
_CONSTANT = re.compile(r"^(DOCUMENT|DEADLINE|IMPORTS|IN_CONTAINER) = (.+)$", re.MULTILINE)


class NotAProbe(Exception):
    """A file is no probe: one sentence that says what is missing."""


class Probe(object):
    """A probe as the process that starts it sees it."""

    def __init__(self, name, constants, module):
        """constants: {"DOCUMENT", "DEADLINE", …}, from the file. Raises NotAProbe.

        module: what its process imports, a dotted name or a file's path.
        """
        self.name = name
        self.document = constants.get("DOCUMENT")
        self.deadline = constants.get("DEADLINE")
        self.imports = constants.get("IMPORTS")
        self.in_container = constants.get("IN_CONTAINER") is True
        self.module = module
        if self.document not in DOCUMENTS:
            raise NotAProbe('its DOCUMENT is neither "machine" nor "target"')
        number = isinstance(self.deadline, (int, float)) and not isinstance(self.deadline, bool)
        if not number or not 0 < self.deadline <= 120:
            raise NotAProbe("its DEADLINE is not a number of seconds, above 0 and up to 120")


def of(document):
    """{name: Probe} of those that write this document; those that import a framework take longest: first."""
    found = [load(name) for name in _names()]
    found = [probe for probe in found if probe.document == document]
    return {p.name: p for p in sorted(found, key=lambda p: (p.imports is None, p.name))}


def load(name):
    """The Probe of a file in this folder, which only its own process imports. Raises NotAProbe."""
    path = os.path.join(__path__[0], name + ".py")
    source = __loader__.get_data(path).decode("utf-8")  # type: ignore[name-defined]
    if not re.search(r"^def collect\(context\):", source, re.MULTILINE):
        raise NotAProbe("probes/%s.py has no collect(context)" % name)
    constants = {
        key: value == "True" or json.loads(value) for key, value in _CONSTANT.findall(source)
    }
    return Probe(name, constants, __name__ + "." + name)


def _names():
    if os.path.isdir(__path__[0]):
        names = [name[:-3] for name in os.listdir(__path__[0]) if name.endswith(".py")]
        return [name for name in names if name != "__init__"]
    import pkgutil  # here: outside of a zip it takes longer than all probes to be read

    return [name for _finder, name, _package in pkgutil.iter_modules(__path__)]
