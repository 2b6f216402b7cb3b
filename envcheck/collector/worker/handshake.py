"""The first word with a target: is there a Python at all, which one, and what is in reach of it."""

import os

from ..facts import Facts, unavailable
from . import messages

OLDEST = (3, 6)
_SANE = 4 << 20  # bytes of an answer

# Runs in whatever the target's interpreter is, as `python -c SCRIPT`: Python 2.7 must get through it too,
# to say how old it is. It answers as a worker does, and leaves by os._exit, so that no exit handler can
# spoil an answer that is out.
SCRIPT = """\
import os, sys
path = list(sys.path)  # PYTHONPATH may hold a json.py; what it does to the target, others tell
if not sys.flags.ignore_environment:
    theirs = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [entry for entry in path if entry not in theirs]
import json
sys.path[:] = path
answer = {"version": sys.version.split()[0].rstrip("+")}
def libc():
    try:
        return os.confstr("CS_GNU_LIBC_VERSION")
    except (AttributeError, OSError, ValueError):
        pass
    try:
        with open("/proc/self/maps") as maps:
            return "musl" if "ld-musl" in maps.read() else None
    except (OSError, ValueError):
        return None
def find(name):
    from importlib.util import find_spec
    try:
        spec = find_spec(name)
    except Exception:
        return None
    if spec is None:
        return None
    return spec.origin or "namespace"
if sys.version_info >= (3, 6):
    site = sys.modules.get("site")
    base = getattr(sys, "base_prefix", sys.prefix)
    answer.update({
        "implementation": sys.implementation.name,
        "executable": sys.executable,
        "prefix": sys.prefix,
        "base_prefix": base,
        "virtualenv": sys.prefix != base,
        "conda": os.path.isdir(os.path.join(sys.prefix, "conda-meta")),
        "machine": os.uname()[4],
        "bits": 64 if sys.maxsize > 2 ** 32 else 32,
        "libc": libc(),
        "sys_path": [entry for entry in sys.path if entry],
        "pip": bool(find("pip")),
        "managed": sys.prefix == base and os.path.isfile(
            os.path.join(os.path.dirname(os.__file__), "EXTERNALLY-MANAGED")),
        "user_site": bool(site) and getattr(site, "USER_SITE", None) in sys.path,
        "frameworks": dict((name, find(name)) for name in ("tensorflow", "torch", "jax")
                           if find(name)),
    })
text = ("\\n@envcheck " + json.dumps({"result": answer, "of": "handshake"}) + "\\n").encode("ascii")
while text:
    text = text[os.write(1, text):]
os._exit(0)
"""

_IMPLEMENTATIONS = {"cpython": "CPython", "pypy": "PyPy", "graalpy": "GraalPy"}
_NARROW = {"x86_64": "i686", "aarch64": "armv8l"}  # what a 32-bit interpreter on such a kernel is
_TYPES = {"sys_path": list, "frameworks": dict}
_TYPES.update(
    dict.fromkeys(("implementation", "executable", "prefix", "base_prefix", "machine"), str)
)


def parse(stdout):
    """The answer (dict) in what the script printed (bytes). Raises ValueError where there is none."""
    found = [
        message["result"]
        for message in messages.read(stdout[-_SANE:].splitlines())
        if message.get("of") == "handshake" and "result" in message
    ]
    if not found:
        raise ValueError("no handshake in its output")
    answer = found[-1]
    try:
        known = _TYPES if version_of(answer) >= OLDEST else {}
        right = all(isinstance(answer.get(key), kind) for key, kind in known.items())
        right = right and all(isinstance(entry, str) for entry in answer.get("sys_path", ()))
    except (ValueError, TypeError, KeyError, AttributeError):
        right = False
    if not right:
        raise ValueError("a broken handshake in its output")
    return answer


def version_of(answer):
    """(major, minor) of an answer's Python."""
    major, minor = answer["version"].split(".")[:2]
    return int(major), int(minor)


def check(result):
    """The answer in a process.Result of the script. Raises ValueError with one sentence saying why not."""
    path = result.argv[0]
    if not result.ok:
        words = result.words_of_python()
        if result.outcome == "exited" and result.code > 0 and not words:
            raise ValueError("%s is not a Python interpreter" % path)
        sentence = "%s cannot be used as a target: it %s" % (path, result.describe())
        raise ValueError(sentence + (" (%s)" % words if words else ""))
    try:
        answer = parse(result.stdout)
    except ValueError:
        raise ValueError("%s is not a Python interpreter: it does not answer as one does" % path)
    if version_of(answer) < OLDEST:
        raise ValueError(
            "%s cannot be used as a target: it is Python %s, and envcheck needs %d.%d or "
            "newer there" % ((path, answer["version"]) + OLDEST)
        )
    return answer


def resolve(path):
    """(interpreter, kind) of what a user names as a target; kind is one of Interpreter.kind's.

    path: an interpreter, a virtual environment or a conda prefix. Raises ValueError with one sentence.
    """
    if not path or "\0" in path:
        raise ValueError(
            "%r is no path: name an interpreter, a virtual environment or a conda prefix" % path
        )
    path = os.path.abspath(path)
    _require(path)
    # No realpath: a virtual environment's python is a link, and is known by where the link stands.
    interpreter, prefix = path, os.path.dirname(os.path.dirname(path))
    if os.path.isdir(path):
        there = [path + name for name in ("/bin/python", "/bin/python3")]
        there = [one for one in there if _runs(one)] or [
            one for one in there if os.path.lexists(one)
        ]
        if not os.access(path, os.R_OK | os.X_OK):
            raise ValueError("%s may not be looked into by this user" % path)
        if not there:
            words = "%s is a directory without a Python: it has neither bin/python nor bin/python3"
            raise ValueError(words % path)
        interpreter, prefix = there[0], path
        _require(interpreter)
    if not _runs(interpreter):
        words = "%s is not a Python interpreter: it is not a program that this user may run"
        raise ValueError(words % interpreter)
    return interpreter, _kind(prefix)


def _runs(path):
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _require(path):
    try:
        os.stat(path)
    except PermissionError:
        raise ValueError("%s may not be looked into by this user" % path)
    except OSError:
        if os.path.islink(path):
            words = "%s is a link to %s, which does not exist"
            raise ValueError(words % (path, os.readlink(path)))
        raise ValueError("%s does not exist" % path)


def _kind(prefix):
    if os.path.isdir(os.path.join(prefix, "conda-meta")):
        return "conda"
    if any(
        os.path.isfile(os.path.join(prefix, mark))
        for mark in ("pyvenv.cfg", "bin/activate_this.py")
    ):
        return "virtualenv"
    return "interpreter"


def _made_by_uv(prefix):
    try:
        with open(os.path.join(prefix, "pyvenv.cfg"), encoding="utf-8", errors="replace") as file:
            return any(line.split("=")[0].strip() == "uv" for line in file.read(_SANE).split("\n"))
    except OSError:
        return False


def facts(handshake, kind, path):
    """The Interpreter facts of an answer. kind, path: what ``resolve`` gave."""
    found = Facts(source="the interpreter itself")
    for name in ("version", "prefix", "base_prefix", "sys_path"):
        found.put(name, handshake[name])
    name, machine = handshake["implementation"], handshake["machine"]
    found.put("executable", handshake["executable"] or path)
    found.put("implementation", _IMPLEMENTATIONS.get(name, name))
    found.put("kind", kind, "files at the target's path")
    narrow = handshake.get("bits") == 32
    found.put("architecture", _NARROW.get(machine, machine) if narrow else machine)
    libc = handshake.get("libc")
    libc = libc if isinstance(libc, str) else unavailable("absent", "not glibc")
    found.put("libc", libc, "os.confstr")
    found.put("user_site", bool(handshake.get("user_site")))
    found.put("pip", bool(handshake.get("pip")))
    found.put("uv", _made_by_uv(handshake["prefix"]), "pyvenv.cfg")
    found.put("externally_managed", bool(handshake.get("managed")), "PEP 668")
    return found
