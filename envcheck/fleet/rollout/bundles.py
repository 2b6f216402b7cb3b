"""The bundles of a roll-out: one for each group of machines, kept: the next run goes on with the same."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...install import pylock
from ...install.bundle.index import LOCK, NAME
from ...install.export.elsewhere import ElsewhereShop, index_of, stack_text
from ...install.lockfile import Lockfile
from ...install.request import Request
from ...install.transaction import record
from .planning import Fitting


class Bundled(NamedTuple):
    """A group with its bundle's place, and what it holds."""

    fitting: Fitting
    place: Path
    lock: Lockfile


def prepare(
    fitting: Fitting, request: Request, folder: Path, shop: ElsewhereShop, upgrade: bool
) -> Bundled:
    """Where the group's bundle is or will be, and what it holds. Nothing is fetched but what an index says.
    A bundle that an equal request has made for such machines is taken again, unless ``upgrade`` says not
    to. Raises EnvcheckError."""
    place = folder / _key(fitting, request)
    if upgrade:
        shutil.rmtree(place, ignore_errors=True)
    written = place / LOCK
    lock = pylock.read(written) if written.is_file() else shop.lock(fitting.choice)
    size = sum(file.size or 0 for file in lock.files)
    group = msgspec.structs.replace(fitting.group, files=len(lock.files), size=size)
    return Bundled(fitting._replace(group=group), place, lock)


def write(bundled: Bundled, shop: ElsewhereShop) -> None:
    """Fetch and write it, where it is not there yet. Raises EnvcheckError."""
    if (bundled.place / NAME).is_file():
        return
    bundled.place.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(bundled.place, ignore_errors=True)
    fitting, place, lock = bundled
    shop.write(place, index_of(lock), fitting.runners, lock, stack_text(fitting.choice))


def _key(fitting: Fitting, request: Request) -> str:
    group = fitting.group
    interpreter = fitting.choice.candidate.interpreter
    inputs = msgspec.json.encode(
        [
            record.inputs(request),
            record.public(request),
            [group.stack, group.release, group.python, group.architecture],
            {minor: one.tags[:1] for minor, one in fitting.runners.items()},
            interpreter.tags[:1] if interpreter else [],
        ]
    )
    name = group.stack.replace("/", "-")
    return f"{name}-{group.release}-{hashlib.sha256(inputs).hexdigest()[:12]}"
