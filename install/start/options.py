"""What a user may ask of one start, beyond what was installed; and each option's value, checked."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...exit_codes import NotStarted
from ..engines.command import Mount

_SIZE = re.compile(r"(?P<number>[0-9]{1,9})(?P<unit>[bkmgt]?)(?:i?b)?", re.IGNORECASE)
_PORT = re.compile(r"(?:[0-9A-Fa-f.:\[\]]+:)?[0-9]{1,5}(?:/tcp|/udp)?")
_BYTES = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class Options(NamedTuple):
    """All but the variables are of containers alone."""

    env: Sequence[tuple[str, str | None]] = ()  # None: as the caller has it
    volume: Sequence[Mount] = ()
    network: str = ""
    shm_size: int = 0  # MiB; 0: as installed
    no_gpu: bool = False
    gpus: str = ""  # "0,1", UUIDs, "all"; "": as installed
    device: Sequence[str] = ()  # "/dev/fuse", "/dev/fuse:/dev/fuse:rwm"
    port: Sequence[str] = ()  # as --publish has them: "8888:8888"
    entrypoint: str | None = None  # "": none
    engine_arg: Sequence[str] = ()

    def refuse(self, why: str, *names: str) -> None:
        """Raises NotStarted for the first of these options ("network") that was asked for."""
        for name in names:
            value = getattr(self, name)
            if value or (name == "entrypoint" and value is not None):
                raise NotStarted(f"--{name.replace('_', '-')}: {why}")

    def own_variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Of a process of this machine, which has the caller's variables already."""
        found = {k: environ.get(k) if v is None else v for k, v in self.env}
        return {name: value for name, value in found.items() if value is not None}


def variable(word: str) -> tuple[str, str | None]:
    """``NAME=VALUE``; None for a ``NAME`` alone, whose value is the caller's. Raises NotStarted."""
    name, equals, value = word.partition("=")
    if not name or "\0" in word:
        raise NotStarted(f"--env {word!r}: this is not a variable", hint="--env NAME=VALUE")
    return name, value if equals else None


def mount(word: str) -> Mount:
    """``FROM:TO``, ``FROM:TO:ro``; FROM may be relative, and hold colons. Raises NotStarted."""
    spec, _, last = word.rpartition(":")
    if last not in ("ro", "rw"):
        spec = word
    source, colon, target = spec.rpartition(":/")
    if not colon or not source or ":" in target:
        raise NotStarted(
            f"--volume {word!r}: is not FROM:TO, FROM:TO:ro or FROM:TO:rw",
            hint="--volume /data:/data:ro; TO is an absolute path in the container",
        )
    source = os.path.abspath(os.path.expanduser(source))  # noqa: PTH100, PTH111 - links stay
    if not os.path.exists(source):  # noqa: PTH110
        raise NotStarted(f"--volume {word!r}: {source} does not exist")
    return Mount(source=source, target="/" + target, read_only=last == "ro")


def port(word: str) -> str:
    """ "8888" as "8888:8888"; "8080:80", "127.0.0.1:8888:8888/tcp" as they are. Raises NotStarted.

    The engine checks the numbers.
    """
    if not _PORT.fullmatch(word):
        raise NotStarted(
            f"--port {word!r}: this is not a port",
            hint="--port 8888, --port 8080:80 (here:in the container), --port 127.0.0.1:8888:8888",
        )
    return word if ":" in word else f"{word.partition('/')[0]}:{word}"


def device(word: str) -> str:
    """ "/dev/fuse", "/dev/fuse:/dev/fuse:rwm", or a CDI device's name. Raises NotStarted."""
    path = word.partition(":")[0]
    if not (os.path.exists(path) if path.startswith("/") else "/" in word and "=" in word):  # noqa: PTH110
        raise NotStarted(
            f"--device {word!r}: there is no such device",
            hint="--device /dev/fuse, or a CDI device such as nvidia.com/gpu=0",
        )
    return word


def mebibytes(size: str) -> int:
    """ "8g" → 8192, rounded up. Raises NotStarted."""
    found = _SIZE.fullmatch(size)
    count = int(found["number"]) * _BYTES[found["unit"].lower()] if found else 0
    if not count:
        raise NotStarted(f"--shm-size {size!r}: is not a size", hint="--shm-size 8g, or 512m")
    return -(-count // (1 << 20))
