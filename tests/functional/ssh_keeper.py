"""Keeps hosts with sshd in namespaces, as PID 1 of a namespace of its own: with it, all of them end.

Started by ssh_hosts.py as root: ``unshare --fork --kill-child --pid --mount python ssh_keeper.py``. Its input
is a line of JSON (what ``ssh_hosts._keeper`` writes), then lines "kill NAME"; its first line of output
names the hosts' processes. It ends with its input.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import shutil
import signal
import socket
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

LIBC = ctypes.CDLL(None, use_errno=True)
RDONLY, NOSUID, NODEV, REMOUNT, BIND, REC, PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
NEWNS, NEWUTS, NEWIPC, NEWPID, NEWNET = 0x20000, 0x4000000, 0x8000000, 0x20000000, 0x40000000
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PROGRAMS = ("usr/sbin/sshd", "usr/bin/sudo", "usr/lib/openssh", "usr/libexec/sudo", "usr/lib/sudo")

LIES = {
    "garbage": "cat >/dev/null; echo 'no JSON, but {\"schema\": 1 a line that begins like it'",
    "flood": "cat >/dev/null; head -c 100000000 /dev/zero | tr '\\0' x",
    "escapes": "cat >/dev/null; printf '\\033[2J\\033]0;owned\\007\\033[31m{\"well\": true}\\r\\n\\233\\n'",
    "sleeping": "exec sleep 100000",
}


def _check(result: int, *what: object) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), " ".join(map(str, what)))


def mount(source: str, target: Path | str, kind: str = "", flags: int = 0, data: str = "") -> None:
    words = [os.fsencode(word) or None for word in (source, str(target), kind)]
    _check(LIBC.mount(*words, flags, data.encode() or None), "mount", kind, target)


def bind(source: Path, target: Path, *, writable: bool = False) -> None:
    """The same file or directory, there, too."""
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    mount(str(source), target, flags=BIND | REC)
    if not writable:
        mount("none", target, flags=BIND | REMOUNT | RDONLY)


def unshare(flags: int) -> None:
    _check(LIBC.unshare(flags), "unshare")


def ip(*lines: str) -> None:
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True, check=True)


def main() -> None:
    spec: dict[str, Any] = json.loads(sys.stdin.readline())
    network, world = spec["network"], Path(spec["scratch"]) / "world"
    outside = os.open("/proc/self/ns/net", os.O_RDONLY)
    unshare(NEWNET)
    ip("link set lo up", "link add br0 type bridge forward_delay 0", "link set br0 up")
    pid = os.fork()  # the bridge's way out, which only the outer network can make
    if pid == 0:
        _check(LIBC.setns(outside, NEWNET), "setns")
        link = spec["link"]
        lines = (f"link add {link} type veth peer name up0 netns 1",
                 f"addr add {network}.1/24 dev {link}", f"link set {link} up")  # fmt: skip
        process = subprocess.run(
            ["ip", "-batch", "-"], input="\n".join(lines), text=True, check=False
        )
        os._exit(process.returncode)
    if os.waitpid(pid, 0)[1]:
        sys.exit("no way to the outer network")
    os.close(outside)
    ip("link set up0 master br0", "link set up0 up")
    mount("none", "/", flags=REC | PRIVATE)
    mount("tmpfs", world, "tmpfs", data="mode=755")
    layer = world / "layer"
    _furnish(layer, spec)
    started = {}
    for host in spec["hosts"]:
        if host["kind"] != "dead":
            started[host["name"]] = _start(host, world, layer, spec)
    batch = []
    for number, (pid, _go) in enumerate(started.values()):
        batch += [f"link add v{number} type veth peer name eth0 netns {pid}",
                  f"link set v{number} master br0", f"link set v{number} up"]  # fmt: skip
    ip(*batch)
    for _pid, go in started.values():
        os.write(go, b"g")
        os.close(go)
    print(json.dumps({name: pid for name, (pid, _go) in started.items()}), flush=True)
    for line in sys.stdin:  # "kill NAME"
        with suppress(ProcessLookupError):
            os.kill(started[line.split()[1]][0], signal.SIGKILL)


def _furnish(layer: Path, spec: dict[str, Any]) -> None:
    """What all hosts have in common, over this machine's root."""
    programs = Path(spec["programs"])
    names = [
        *PROGRAMS,
        *(str(p.relative_to(programs)) for p in programs.glob("usr/lib/*/libwrap.so*")),
    ]
    for name in names:
        if programs != Path("/") and (programs / name).exists():
            (layer / name).parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if (programs / name).is_dir() else shutil.copy2
            copy(programs / name, layer / name)
    with suppress(OSError):
        (layer / "usr/bin/sudo").chmod(0o4755)
    (layer / "etc/ssh").mkdir(parents=True)
    (layer / "etc/pam.d").mkdir()
    texts = {
        "passwd": "root:x:0:0:root:/root:/bin/bash\nop:x:4242:4242::/home/op:/bin/bash\n"
        "sshd:x:4243:65534::/run/sshd:/usr/sbin/nologin\nnobody:x:65534:65534::/:/usr/sbin/nologin\n",
        "group": "root:x:0:\ntty:x:5:\nshadow:x:42:\nop:x:4242:\nnogroup:x:65534:\n",
        "shadow": f"root:*:19000:0:99999:7:::\nop:{spec['shadow']}:19000:0:99999:7:::\n",
        "sudoers": "Defaults !lecture\nroot ALL=(ALL) ALL\nop ALL=(ALL) ALL\n",
        "pam.d/sudo": "auth required pam_unix.so\naccount required pam_unix.so\n"
        "session required pam_permit.so\n",
        "pip.conf": "",
        "resolv.conf": "",
        "ssh/sshd_config": spec["sshd_config"],
        "ssh/authorized_keys": spec["public_key"],
        "ssh/host_key": spec["host_key"],
    }  # fmt: skip
    for name, text in texts.items():
        (layer / "etc" / name).write_text(text)
    for name in ("shadow", "sudoers", "ssh/host_key"):
        (layer / "etc" / name).chmod(0o400)


def _start(host: dict[str, Any], world: Path, layer: Path, spec: dict[str, Any]) -> tuple[int, int]:
    """Its PID, and where to write once it has its network."""
    told, tell = os.pipe()
    waits, go = os.pipe()
    child = os.fork()
    if child == 0:
        unshare(NEWNS | NEWUTS | NEWIPC | NEWPID | NEWNET)
        inner = os.fork()
        if inner:
            os.write(tell, str(inner).encode())
            os._exit(0)
        os.close(go)
        os.close(tell)
        _become(host, world / host["name"], layer, spec, waits)
    os.waitpid(child, 0)
    os.close(tell)
    os.close(waits)
    pid = int(os.read(told, 20) or 0)
    os.close(told)
    return pid, go


def _become(
    host: dict[str, Any], place: Path, layer: Path, spec: dict[str, Any], waits: int
) -> NoReturn:
    try:
        os.setsid()
        log = os.open(Path(spec["scratch"]) / "logs" / host["name"], os.O_CREAT | os.O_WRONLY)
        null = os.open(os.devnull, os.O_RDONLY)
        for number, descriptor in enumerate((null, log, log)):
            os.dup2(descriptor, number)
        LIBC.sethostname(host["name"].encode(), len(host["name"]))
        root = _root(host, place, layer, spec["home_binds"])
        os.read(waits, 1)
        ip("link set lo up", f"addr add {host['address']}/24 dev eth0", "link set eth0 up")
        _enter(root, host)
        if host["kind"] == "closed":
            signal.pause()
        if host["kind"] == "hung":
            with socket.create_server(("0.0.0.0", 22), backlog=100):
                signal.pause()
        os.execve("/usr/sbin/sshd", ["/usr/sbin/sshd", "-D", "-e"], {"PATH": PATH})
    except BaseException as error:
        print("keeper:", repr(error), file=sys.stderr, flush=True)
    os._exit(1)


def _root(host: dict[str, Any], place: Path, layer: Path, binds: list[str]) -> Path:
    """An overlay of this machine's root, of which it has its own /tmp, homes, /run, and one Python."""
    upper, work, root = place / "upper", place / "work", place / "root"
    for folder in (upper / "usr/bin", work, root, upper / "etc"):
        folder.mkdir(parents=True)
    (upper / "etc/hostname").write_text(host["name"] + "\n")
    (upper / "etc/hosts").write_text(f"127.0.0.1 localhost\n127.0.1.1 {host['name']}\n")
    _one_python(host, upper)
    data = f"lowerdir={layer}:/,upperdir={upper},workdir={work}"
    mount("overlay", root, "overlay", data=data)
    (root / ".old").mkdir()
    mount("proc", root / "proc", "proc")
    mount("sysfs", root / "sys", "sysfs", RDONLY)
    _devices(root / "dev")
    small = "size=64k," if host["kind"] == "full" else ""
    for name, mode in (
        ("tmp", "1777"),
        ("run", "755"),
        ("root", "711"),
        ("home", "755"),
        ("var/tmp", "1777"),
    ):
        (root / name).mkdir(exist_ok=True)
        size = "" if name == "run" else small
        mount("tmpfs", root / name, "tmpfs", data=f"{size}mode={mode}")
    (root / "run/sshd").mkdir(mode=0o755)
    (root / "home/op").mkdir(mode=0o700)
    os.chown(root / "home/op", 4242, 4242)
    for path in [*binds, *host["binds"]]:
        bind(Path(path), root / path.lstrip("/"), writable=False)
    if small:
        for name in ("tmp", "root", "home", "var/tmp"):
            with suppress(OSError), (root / name / "ballast").open("wb", buffering=0) as file:
                while True:
                    file.write(bytes(4096))
    return root


def _one_python(host: dict[str, Any], upper: Path) -> None:
    own = host["python"]
    for folder in ("usr/bin", "usr/local/bin"):
        for path in Path("/", folder).glob("python*"):
            if path.resolve() != Path(own or "/nowhere"):
                (upper / folder).mkdir(parents=True, exist_ok=True)
                os.mknod(upper / folder / path.name, stat.S_IFCHR, 0)  # a whiteout
    python = upper / "usr/bin/python3"
    if program := host["program"] or LIES.get(host["kind"]):
        python.unlink(missing_ok=True)
        python.write_text(f"#!/bin/sh\n{program}\n")
        python.chmod(0o755)
    elif own:
        for name in {"python3", Path(own).name}:
            if Path("/usr/bin", name).resolve() != Path(own):
                # A link would have an environment look for its library in /usr/lib.
                (upper / "usr/bin" / name).unlink(missing_ok=True)
                (upper / "usr/bin" / name).write_text(f'#!/bin/sh\nexec {own} "$@"\n')
                (upper / "usr/bin" / name).chmod(0o755)


def _devices(dev: Path) -> None:
    mount("tmpfs", dev, "tmpfs", data="mode=755")
    for name in ("null", "zero", "full", "random", "urandom", "tty"):
        bind(Path("/dev", name), dev / name, writable=True)
    for name in ("pts", "shm"):
        (dev / name).mkdir()
    mount("devpts", dev / "pts", "devpts", data="newinstance,ptmxmode=0666,mode=620,gid=5")
    mount("tmpfs", dev / "shm", "tmpfs", data="mode=1777")
    for name, target in (("ptmx", "pts/ptmx"), ("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"),
                         ("stdout", "/proc/self/fd/1"), ("stderr", "/proc/self/fd/2")):  # fmt: skip
        (dev / name).symlink_to(target)


def _enter(root: Path, host: dict[str, Any]) -> None:
    os.chdir(root)
    _check(LIBC.syscall(PIVOT_ROOT[platform.machine()], b".", b".old"), "pivot_root")
    os.chroot(".")
    os.chdir("/")
    _check(LIBC.umount2(b"/.old", 2), "umount")
    Path("/.old").rmdir()
    if host["environment"]:
        words = " ".join(f'{name}="{value}"' for name, value in host["environment"].items())
        with Path("/etc/ssh/sshd_config").open("a") as file:
            file.write(f"SetEnv {words}\n")
    if host["command"]:
        with Path("/etc/ssh/sshd_config").open("a") as file:
            file.write(f"ForceCommand {host['command']}\n")


if __name__ == "__main__":
    main()
