"""What a user may ask of one start, beyond what was installed."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...exit_codes import NotStarted
from ..engines.command import Mount

_SIZE = re.compile(r"(?P<number>[0-9]{1,9})(?P<unit>[bkmgt]?)(?:i?b)?", re.IGNORECASE)
_PORT = re.compile(
    r"(?P<address>(?:[0-9.]{7,15}|\[[0-9A-Fa-f:.]{2,45}\]):(?=[0-9]{1,5}:))?"
    r"(?:(?P<here>[0-9]{1,5}):)?(?P<inside>[0-9]{1,5})(?P<kind>/tcp|/udp)?"
)
_BYTES = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class Options(NamedTuple):
    """As the command line has them. All but the environment are of containers alone."""

    environment: Sequence[str] = ()  # "NAME=VALUE", or "NAME"
    volumes: Sequence[str] = ()
    network: str = ""
    shm_size: str = ""
    gpus: bool = True
    devices: Sequence[str] = ()
    ports: Sequence[str] = ()
    entrypoint: str | None = None  # "": none
    engine_arguments: Sequence[str] = ()

    def refuse(self, why: str, *unfit: str) -> None:
        """Raises NotStarted for the first of these options ("--network") that was asked for."""
        asked = {
            "--volume": self.volumes,
            "--network": self.network,
            "--shm-size": self.shm_size,
            "--no-gpu": not self.gpus,
            "--device": self.devices,
            "--port": self.ports,
            "--entrypoint": self.entrypoint is not None,
            "--engine-arg": self.engine_arguments,
        }
        for option in unfit:
            if asked[option]:
                raise NotStarted(f"{option}: {why}")


def variables(words: Sequence[str]) -> dict[str, str | None]:
    """``NAME=VALUE``; None for a ``NAME`` alone, whose value is the caller's. Raises NotStarted."""
    found: dict[str, str | None] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name or "\0" in word:
            raise NotStarted(f"--env {word!r}: this is not a variable", hint="--env NAME=VALUE")
        found[name] = value if equals else None
    return found


def own_variables(words: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """The same for a process of this machine, which has the caller's variables already."""
    found = {k: environ.get(k) if v is None else v for k, v in variables(words).items()}
    return {name: value for name, value in found.items() if value is not None}


def mount(word: str) -> Mount:
    """``FROM:TO``, ``FROM:TO:ro``; FROM may be relative, and hold colons. Raises NotStarted."""
    spec, _, last = word.rpartition(":")
    read_only = last == "ro"
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
    return Mount(source=source, target="/" + target, read_only=read_only)


def port(word: str) -> str:
    """``8888``, ``8080:80`` (here:in the container), ``127.0.0.1:8888:8888/tcp``. Raises NotStarted."""
    found = _PORT.fullmatch(word)
    if not found or any(
        int(n) not in range(1, 65536) for n in (found["here"] or "1", found["inside"])
    ):
        raise NotStarted(
            f"--port {word!r}: is not a port",
            hint="--port 8888, --port 8080:80 (here:in the container), --port 127.0.0.1:8888:8888",
        )
    here = found["here"] or found["inside"]
    return f"{found['address'] or ''}{here}:{found['inside']}{found['kind'] or ''}"


def mebibytes(size: str) -> int:
    """ "8g" → 8192, rounded up. Raises NotStarted."""
    found = _SIZE.fullmatch(size)
    count = int(found["number"]) * _BYTES[found["unit"].lower()] if found else 0
    if not count:
        raise NotStarted(f"--shm-size {size!r}: is not a size", hint="--shm-size 8g, or 512m")
    return -(-count // (1 << 20))
