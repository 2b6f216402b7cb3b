"""What a user may ask of one start, beyond what was installed; and each option's value, checked."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...exit_codes import NotStarted
from ..engines.command import Mount


class Options(NamedTuple):
    """All but the variables are of containers alone."""

    env: Sequence[tuple[str, str | None]] = ()  # None: as the caller has it
    volume: Sequence[Mount] = ()
    engine_arg: Sequence[str] = ()

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
