"""Other packages' probes: files of the standard library of Python 3.6, run as envcheck's own probes are."""

import importlib
import json

from . import files
from .probes import NotAProbe, Probe

PACKAGE = "envcheck.collector.foreign_probes"  # in a single file, which may bring such probes along
SOURCE_LIMIT = 1 << 20  # bytes
FACTS_LIMIT = 1 << 20  # bytes of one probe's facts as JSON
DEPTH = 30  # of lists and objects in each other
_CONSTANTS = ("DOCUMENT", "DEADLINE", "IMPORTS", "IN_CONTAINER")


def find(named):
    """([Probe], {name: why it cannot be run}) of {name: path}, and of what this single file brings along."""
    probes, refused = [], {}
    for name, path, source in _sources(named):
        try:
            probes.append(Probe(name, constants(source()), path))
        except (NotAProbe, OSError, ValueError) as error:
            refused[name] = str(error)
    return probes, refused


def constants(source):
    """{name: value} of a probe's constants, read from its source (bytes). Raises NotAProbe."""
    import ast  # here, as below: most machines have no such probe

    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotAProbe("it is no Python that this interpreter reads: %s" % error)
    found = {}
    for node in tree.body:
        name = getattr(node.targets[0], "id", "") if isinstance(node, ast.Assign) else ""
        if name in _CONSTANTS:
            try:
                found[name] = ast.literal_eval(node.value)
            except ValueError:
                raise NotAProbe("its %s is not a plain value" % name)
    if not any(isinstance(node, ast.FunctionDef) and node.name == "collect" for node in tree.body):
        raise NotAProbe("it has no function collect(context)")
    return found


def bounded(section):
    """The section of such a probe; one whose facts are too large or too deep counts as crashed."""
    facts = section.get("facts")
    if _is_deeper(facts, DEPTH):
        why = "its facts are nested more than %d deep" % DEPTH
    elif len(json.dumps(facts)) > FACTS_LIMIT:
        why = "its facts are larger than %d bytes" % FACTS_LIMIT
    else:
        return section
    return {"outcome": "crashed", "seconds": section["seconds"], "reason": why}


def _sources(named):
    """(name, what a process imports, a function that reads the source) of each."""
    for name, path in sorted(named.items()):
        yield name, path, lambda path=path: files.read(path, SOURCE_LIMIT)
    try:
        brought = importlib.import_module(PACKAGE).__path__
    except ImportError:
        return
    import pkgutil

    for _finder, name, _package in pkgutil.iter_modules(brought):
        yield name, PACKAGE + "." + name, lambda name=name: pkgutil.get_data(PACKAGE, name + ".py")


def _is_deeper(value, most):
    if not isinstance(value, (dict, list)):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return most == 0 or any(_is_deeper(item, most - 1) for item in inner)
