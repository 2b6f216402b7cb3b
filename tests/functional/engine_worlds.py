"""What the tests' own podman and docker have in common."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import base_images
import pytest


class Refused(Exception):
    """The engine does not work here, and why."""


@dataclass(frozen=True)
class Engine:
    """made: the images' names, by their kind."""

    made: dict[str, str] = field(default_factory=dict, kw_only=True)

    def image(self, kind: str) -> str:
        """The name of an image of that kind (base_images.KINDS), in this storage."""
        if kind not in self.made:
            self.made[kind] = base_images.make(self, kind)
        return self.made[kind]


def ended(
    done: subprocess.CompletedProcess[bytes], code: int | None
) -> subprocess.CompletedProcess[str]:
    """As text. Raises Refused for another exit code (None: any is well)."""
    output = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    if code is not None and done.returncode != code:
        program, first = Path(done.args[0]).name, done.args[1]
        raise Refused(f"{program} {first}: {done.returncode}: {output[1].strip() or output[0]}")
    return subprocess.CompletedProcess(done.args, done.returncode, *output)


def opened(world: AbstractContextManager[Any]) -> Iterator[Any]:
    """For a fixture: the engine; skips its tests where it does not work."""
    try:
        made = world.__enter__()
    except Refused as error:
        pytest.skip(str(error))
    try:
        yield made
    finally:
        world.__exit__(None, None, None)
