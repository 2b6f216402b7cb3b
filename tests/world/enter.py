"""Runs envcheck in a made-up machine: name spaces of its own, a root file system of its own, no network."""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import cli
import pynvml
from processes import PATIENCE

from .contents import Content, File, Library, Link
from .libraries import built
from .machine import LIB, Machine, tree

REPOSITORY = Path(__file__).resolve().parents[2]
HOST = "/.host"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PROGRAMS = ("sh", "cat", "sleep")
SPACES = 0x10000000 | 0x00020000 | 0x20000000 | 0x40000000 | 0x04000000 | 0x08000000 | 0x02000000
_NEWUSER = 0x10000000
_BIND, _REC, _PRIVATE, _REMOUNT, _READ_ONLY = 0x1000, 0x4000, 0x40000, 0x20, 0x1
_FLAGS = {"noexec": 0x8, "ro": 0}  # the latter once everything is written
_DETACH = 2
_PDEATHSIG = 1
_PIVOT_ROOT = 155  # on x86-64
PROCESSES = 1200  # of which a run may start that many
_libc = ctypes.CDLL(None, use_errno=True)


class NoNamespaces(Exception):
    """This machine lets nobody make such a machine: the sentence says why."""


class Ended:
    """What one run of the command line came to."""

    def __init__(self, code: int, stdout: bytes, stderr: bytes, seconds: float) -> None:
        self.code, self.stdout, self.stderr, self.seconds = code, stdout, stderr, seconds


def run(machine: Machine, argv: list[str], timeout: float = PATIENCE) -> Ended:
    """``envcheck ARGV`` on that machine. Raises NoNamespaces, TimeoutError."""
    prepare()
    libraries = {path: built(c) for path, c in tree(machine).items() if isinstance(c, Library)}
    started = time.monotonic()
    with contextlib.ExitStack() as stack:
        root = stack.enter_context(tempfile.TemporaryDirectory(prefix="envcheck-machine-"))
        streams = [stack.enter_context(tempfile.TemporaryFile(buffering=0)) for _ in range(3)]
        child = os.fork()
        if child == 0:
            _outer(machine, Path(root), libraries, argv, [stream.fileno() for stream in streams])
        status = cli._ended(child, timeout)
        if status is None:
            raise TimeoutError(f"{machine.name}: no end within {timeout:g} s")
        out, err = (os.pread(s.fileno(), os.fstat(s.fileno()).st_size, 0) for s in streams[1:])
    code = os.waitstatus_to_exitcode(status)
    if code in (125, 126):
        raise NoNamespaces(err.decode("utf-8", "replace").strip())
    return Ended(code, out, err, time.monotonic() - started)


def _outer(
    machine: Machine, root: Path, libraries: dict[str, Path], argv: list[str], streams: list[int]
) -> None:
    """In the first child: the name spaces, then their first process."""
    code = 125
    try:
        _libc.prctl(_PDEATHSIG, signal.SIGKILL)
        user, group = os.geteuid(), os.getegid()
        for name, value in machine.limits.items():  # in a name space nobody may raise one
            resource.setrlimit(getattr(resource, name), (value, value))
        _check(_libc.unshare(SPACES), "unshare")
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
        child = os.fork()
        if child == 0:
            _first(machine, root, libraries, argv, streams)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except (OSError, ValueError) as error:
        os.write(streams[2], f"no such machine can be made here: {error}\n".encode())
    finally:
        os._exit(code if code >= 0 else 128 - code)


def _first(
    machine: Machine, root: Path, libraries: dict[str, Path], argv: list[str], streams: list[int]
) -> None:
    """Process 1 of the made-up machine."""
    code = 126
    try:
        _libc.prctl(_PDEATHSIG, signal.SIGKILL)
        _mount(None, "/", None, _REC | _PRIVATE)
        _mount("root", root, "tmpfs", options="size=900g,mode=755")
        _furnish(machine, root, libraries)
        os.chdir(root)
        _check(
            _libc.syscall(_PIVOT_ROOT, b".", b"."), "pivot_root"
        )  # in a chroot nobody may unshare
        _check(_libc.umount2(b".", _DETACH), "umount")
        os.chdir("/")
        with contextlib.suppress(OSError):
            _check(_libc.sethostname(b"gpu-07", 6), "sethostname")
        _start_services(machine)
        child = os.fork()
        if child == 0:
            _inside(machine, argv, streams)
        while True:
            ended, status = os.wait()
            if ended == child:
                code = os.waitstatus_to_exitcode(status)
                break
    except Exception as error:
        os.write(streams[2], f"the made-up machine could not be set up: {error}\n".encode())
    finally:
        os._exit(code if code >= 0 else 128 - code)


def _inside(machine: Machine, argv: list[str], streams: list[int]) -> None:
    """The command line's process."""
    environment = {"PATH": PATH, "HOME": "/root", "USER": "root", "LANG": "C.UTF-8"}
    if machine.user:
        _check(_libc.unshare(_NEWUSER), "unshare")
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text("1000 0 1")
        Path("/proc/self/gid_map").write_text("1000 0 1")
        environment |= {"HOME": "/home/ann", "USER": "ann"}
    if machine.allowed_cpus:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: machine.allowed_cpus])
    cli._become(argv, environment | machine.environment, Path("/"), streams)


def _furnish(machine: Machine, root: Path, libraries: dict[str, Path]) -> None:
    files = {**_ground(), **tree(machine)}
    for path in ("/lib", "/bin", "/sbin", "/lib64"):
        _write(root / path[1:], files.pop(path), None)
    _made(root / "tmp").chmod(0o1777)
    for point, options in [("/dev/shm", machine.shm), *machine.mounts]:
        words = [word for word in options.split(",") if word not in _FLAGS]
        flags = sum(_FLAGS.get(word, 0) for word in options.split(","))
        _mount("tmpfs", _made(_below(root, point)), "tmpfs", flags, ",".join(words))
    for path, content in files.items():
        if not path.startswith("/proc/"):
            _write(_below(root, path), content, libraries.get(path))
    _mount("proc", _made(root / ".proc"), "proc")
    _furnish_proc(
        root, {path: content for path, content in files.items() if path.startswith("/proc/")}
    )
    for path, inside in _bound().items():
        _mount(path, _made(_below(root, inside)), None, _BIND | _REC)
    if machine.cgroup2:
        _mount("cgroup2", _made(_below(root, "/sys/fs/cgroup")), "cgroup2")
    for name in ("null", "zero", "urandom", "random", "full"):
        node = root / "dev" / name
        node.touch()
        _mount(f"/dev/{name}", node, None, _BIND)
    for point, options in machine.mounts:
        if "ro" in options.split(","):
            _mount(None, _below(root, point), None, _REMOUNT | _BIND | _READ_ONLY)


def _furnish_proc(root: Path, files: dict[str, Content]) -> None:
    """A folder in place of /proc: the machine's own files, and links to what the kernel really says."""
    for path, content in files.items():
        _write(root / path[1:], content, None)
    for folder in ["/proc", *sorted({str(Path(path).parent) for path in files})]:
        real = root / ".proc" / folder[6:]
        names = [e.name for e in real.iterdir() if not e.name.isdigit()] if real.is_dir() else []
        for name in names:
            place = root / folder[1:] / name
            if not os.path.lexists(place):
                place.symlink_to(f"/.proc/{folder[6:]}/{name}")
    for number in range(1, PROCESSES):
        (root / f"proc/{number}").symlink_to(f"/.proc/{number}")


def _below(root: Path, path: str) -> Path:
    """The place below the new root; /lib, /bin and the like lead to /usr."""
    head, _slash, rest = path.lstrip("/").partition("/")
    if rest and head in ("lib", "bin", "sbin", "lib64"):
        head = "usr/" + head
    return root / head / rest if rest else root / head


def _write(place: Path, content: Content, library: Path | None) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_symlink() or place.exists():
        place.unlink()
    if isinstance(content, Link):
        place.symlink_to(content.to)
        return
    if library is not None:
        shutil.copyfile(library, place)
        place.chmod(0o755)
        return
    data = content.content if isinstance(content, File) else content
    assert isinstance(data, str | bytes), place
    place.write_bytes(data.encode() if isinstance(data, str) else data)
    if isinstance(content, File):
        place.chmod(content.mode)
    elif data[:2] in ("#!", b"#!"):
        place.chmod(0o755)


def _made(place: Path) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    return place


@cache
def _bound() -> dict[str, str]:
    """The host's folders that are seen inside, and where: /usr aside, this Python, envcheck."""
    found = {"/usr": HOST + "/usr"}
    wanted = [
        str(REPOSITORY),
        sys.prefix,
        sys.base_prefix,
        str(Path(sys.executable).resolve().parents[1]),
    ]
    wanted.append(str(Path(pynvml.__file__).parent))
    for path in sorted({os.path.realpath(path) for path in wanted}, key=len):
        inside = any(
            path == above or path.startswith(above + "/") for above in found if above != "/usr"
        )
        if path != "/usr" and not inside:
            found[path] = path
    return found


@cache
def _ground() -> dict[str, Content]:
    """What of the host every machine has: the loader, the C library, what Python needs, a shell."""
    found: dict[str, Content] = {
        **{f"/{name}": Link(f"usr/{name}") for name in ("lib", "bin", "sbin", "lib64")},
        "/var/run": Link("../run"),
    }
    for name in PROGRAMS:
        program = shutil.which(name, path=PATH)
        assert program is not None
        found[f"/usr/bin/{name}"] = Link(HOST + os.path.realpath(program))
    for library in _libraries():
        found[f"{LIB}/{Path(library).name}"] = Link(HOST + os.path.realpath(library))
    loader = "/lib64/ld-linux-x86-64.so.2"
    found["/usr" + loader] = Link(HOST + os.path.realpath(loader))
    base = Path(sys.base_prefix)
    if str(base) == "/usr":
        for path in [*base.glob("bin/python3*"), *base.glob("lib/python3*")]:
            found[str(path)] = Link(HOST + str(path))
    return found


@cache
def _libraries() -> list[str]:
    """The system's libraries that this Python and the shell load, by every name that they have."""
    script = (
        "import ssl, ctypes, sqlite3, json, lzma, bz2, zlib, hashlib, select, socket, uuid, readline\n"
        "print(*{l.split()[-1] for l in open('/proc/self/maps') if '.so' in l}, sep='\\n')"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    real = {path for path in result.stdout.split() if path.startswith(("/usr/lib", "/lib"))}
    found = set()
    for folder in {Path(path).parent for path in real}:
        for path in folder.iterdir():
            if ".so" in path.name and os.path.realpath(path) in real and path.is_file():
                found.add(str(path))
    for name in (
        "libdl.so.2",
        "libpthread.so.0",
        "librt.so.1",
        "libutil.so.1",
        "libgcc_s.so.1",
        "libstdc++.so.6",
    ):
        path = f"{LIB}/{name}"
        if Path(path).exists():
            found.add(path)
    return sorted(found)


def _start_services(machine: Machine) -> None:
    """Programs that do nothing, under these names."""
    for path in machine.services:
        child = os.fork()
        if child == 0:
            for number in range(3):
                os.close(number)
            copy = Path("/.made/programs") / Path(path).name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(os.path.realpath("/usr/bin/sleep"), copy)
            os.execv(copy, [path, "1000"])


@cache  # not in each thread: they share sys.stdout
def prepare() -> None:
    """What is the same for every machine, once. Raises NoNamespaces where there can be none."""
    with contextlib.redirect_stdout(io.StringIO()):  # one of the modules is a script
        cli._import_all()
    if os.uname().machine != "x86_64":
        raise NoNamespaces("the made-up machines are x86-64")
    _ground()
    _bound()


def _mount(
    source: str | None,
    point: str | Path,
    kind: str | None,
    flags: int = 0,
    options: str | None = None,
) -> None:
    place = os.fspath(point)
    words = [None if text is None else os.fsencode(text) for text in (source, place, kind, options)]
    _check(_libc.mount(words[0], words[1], words[2], flags, words[3]), f"mount {place}")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
