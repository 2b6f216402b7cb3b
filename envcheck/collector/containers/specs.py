"""CDI specifications: block YAML or JSON as `nvidia-ctk cdi generate` writes them, read without a library."""

import errno
import json
import os
import re

from .. import files
from ..facts import Facts, from_error

SPEC_FOLDERS = ("/etc/cdi", "/var/run/cdi", "/run/cdi")  # the CDI specification's defaults
SPEC_LIMIT = 8 << 20
MISSING_LIMIT = 20
LINE_LIMIT = 4096  # characters; a generator's longest line holds one path
_DRIVER_LIBRARY = re.compile(r"/lib(?:cuda|nvidia-ml)\.so\.(\d{3,}\.\d[\d.]*)\Z")
_KEY = re.compile(r"""("[^"]*"|'[^']*'|[^\s"'#:\[\]{},](?:[^:#]*[^\s:#])?)\s*:(?:\s+(.*))?$""")


def specs(context, more=()):
    """A CdiSpec for each specification file. more: directories beside the defaults."""
    found = []
    every = list(SPEC_FOLDERS) + [folder for folder in more if folder.startswith("/")]
    for folder in sorted({os.path.realpath(context.path(folder)) for folder in every}):
        try:
            names = sorted(os.listdir(folder))
        except FileNotFoundError:
            continue
        except OSError:
            if folder not in [os.path.realpath(context.path(one)) for one in SPEC_FOLDERS]:
                continue
            raise
        found += [
            _spec(context, os.path.join(folder, name))
            for name in names
            if name.endswith((".yaml", ".json"))
        ]
    return found


def _spec(context, file_name):
    root = os.path.realpath(context.root)
    facts = Facts()
    facts.put("path", file_name if root == "/" else file_name[len(root) :])
    names = ("kind", "version", "devices", "driver_versions", "missing_paths")
    try:
        text = files.read(file_name, SPEC_LIMIT).decode("utf-8", "replace")
        if not text.strip():
            for name in names:
                facts.missing(name, "absent", "the file is empty")
            return facts.values
        pairs = read_spec(text)
    except (OSError, ValueError, RecursionError) as error:
        for name in names:
            facts.put(name, from_error(error))
        return facts.values
    top = {where[0]: value for where, value in pairs if len(where) == 1}
    for name, key in (("kind", "kind"), ("version", "cdiVersion")):
        if key in top:
            facts.put(name, str(top[key]))
        else:
            facts.missing(name, "error", "no %s in it" % key)
    facts.put(
        "devices",
        [
            str(value)
            for where, value in pairs
            if len(where) == 3 and where[0] == "devices" and where[2] == "name"
        ],
    )
    paths = host_paths(pairs)
    facts.put("driver_versions", _driver_versions(paths))
    missing = [path for path in paths if _is_missing(context.path(path))]
    facts.put("missing_paths", missing[:MISSING_LIMIT])
    facts.put("other_numbers", _other_numbers(context, pairs))
    return facts.values


def read_spec(text):
    """The values of a JSON or block YAML text, each with the keys and item numbers to it.

    A list of ((key or number, ...), value). Raises ValueError for what is neither.
    """
    if text.lstrip().startswith("{"):
        return list(_flatten((), json.loads(text)))
    pairs = read_yaml(text)
    if not pairs:
        raise ValueError("neither JSON nor block YAML")
    return pairs


def _flatten(where, value):
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    else:
        yield where, value
        return
    for key, item in items:
        for pair in _flatten(where + (key,), item):
            yield pair


def read_yaml(text):
    """The scalars of a block YAML text, with the keys and item numbers to each."""
    pairs = []
    open_at = []  # [[column, key or number], ...] on the way to the line that is read
    for line in text.splitlines():
        body = line.strip()
        if not body or body.startswith("#") or body in ("---", "...") or len(body) > LINE_LIMIT:
            continue
        column = len(line) - len(line.lstrip(" "))
        while body == "-" or body.startswith("- "):
            _open_item(open_at, column)
            rest = body[1:].lstrip()
            column += len(body) - len(rest)
            body = rest
        _close(open_at, column)
        match = _KEY.match(body)
        if match:
            open_at.append([column, _scalar(match.group(1))])
            value = _scalar(match.group(2) or "")
        else:
            value = _scalar(body)
        if value:
            pairs.append((tuple(key for _column, key in open_at), value))
    return pairs


def _open_item(open_at, column):
    """Begin a list's next item; a list may stand in the same column as the key that it belongs to."""
    _close(open_at, column + 1)
    if open_at and open_at[-1][0] == column and isinstance(open_at[-1][1], int):
        open_at[-1][1] += 1
    else:
        open_at.append([column, 0])


def _close(open_at, column):
    while open_at and open_at[-1][0] >= column:
        open_at.pop()


def _scalar(text):
    text = text.strip()
    if text[:1] in ("'", '"'):
        end = text.find(text[0], 1)
        return text[1:end] if end > 0 else text[1:]
    return re.split(r"\s#", text, maxsplit=1)[0].rstrip()


def host_paths(pairs):
    """The paths of the host that a specification's edits rest on, in order and once each."""
    items = {}
    for where, value in pairs:
        if len(where) >= 3 and where[-3] in ("deviceNodes", "mounts", "hooks"):
            items.setdefault(where[:-1], {})[where[-1]] = value
    found = {}  # the paths, in order
    for where, item in items.items():
        path = item.get("hostPath")
        if where[-2] != "mounts":
            path = path or item.get("path")  # a mount's other path is the container's
        if isinstance(path, str) and path.startswith("/"):
            found[path] = None
    return list(found)


def _other_numbers(context, pairs):
    """The device nodes that it makes with another major number than the kernel has for that driver."""
    nodes = {}
    for where, value in pairs:
        if len(where) >= 3 and where[-3] == "deviceNodes" and where[-1] in ("path", "major"):
            nodes.setdefault(where[:-1], {})[where[-1]] = str(value)
    lines = [line.split() for line in context.text("/proc/devices").splitlines()]
    kernels = {words[1]: words[0] for words in lines if len(words) == 2}
    found = {}
    for node in nodes.values():
        path, major = node.get("path", ""), node.get("major")
        real = kernels.get(re.sub(r"^/dev/|-tools$", "", path))
        if major and real and major != real:
            found["%s: %s instead of %s" % (path, major, real)] = None
    return list(found)


def _driver_versions(paths):
    """The versions of the driver, as its libraries' names have them, each once."""
    found = {}
    for path in paths:
        match = _DRIVER_LIBRARY.search(path)
        if match:
            found[match.group(1)] = None
    return list(found)


def _is_missing(path):
    try:
        os.stat(path)
    except OSError as error:
        return error.errno in (errno.ENOENT, errno.ENOTDIR)
    return False
