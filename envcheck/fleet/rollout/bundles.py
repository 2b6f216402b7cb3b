"""The bundles of a roll-out: one for each group of machines, kept: the next run goes on with the same."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import NamedTuple

import msgspec

from ... import __version__
from ...install import pylock
from ...install.bundle.index import LOCK, NAME, BundleIndex
from ...install.export.bundle_parts import index_of, stack_text
from ...install.export.elsewhere import ElsewhereShop
from ...install.fit.models import Choice
from ...install.lockfile import Lockfile
from ...install.request import Request
from ...install.transaction import record
from .model import FitGroup
from .planning import Fitting


class Bundled(NamedTuple):
    """A group with its bundle's place, and the words of `envcheck install` there."""

    fitting: Fitting
    group: FitGroup
    place: Path
    lock: Lockfile | None
    arguments: list[str]

    @property
    def written(self) -> bool:
        return (self.place / NAME).is_file()


def prepare(
    fitting: Fitting,
    request: Request,
    folder: Path,
    shop: ElsewhereShop,
    *,
    upgrade: bool = False,
) -> Bundled:
    """Where the group's bundle is or will be, and what it holds. Nothing is fetched but what an index says.

    A bundle that an equal request has made for such machines is taken again, unless ``upgrade`` says not to.
    Raises EnvcheckError.
    """
    place = folder / _key(fitting, request)
    if upgrade:
        shutil.rmtree(place, ignore_errors=True)
    lock = None
    if request.mode == "wheel":
        there = place / LOCK
        lock = pylock.read(there) if there.is_file() else shop.lock(_wheels(fitting))
    files = lock.files if lock else []
    group = msgspec.structs.replace(
        fitting.group, files=len(files), size=sum(file.size or 0 for file in files)
    )
    return Bundled(fitting, group, place, lock, _arguments(fitting, request))


def write(bundled: Bundled, shop: ElsewhereShop) -> None:
    """Fetch and write it, where it is not there yet. Raises EnvcheckError."""
    if bundled.written:
        return
    bundled.place.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(bundled.place, ignore_errors=True)
    fitting, lock = bundled.fitting, bundled.lock
    if lock is not None:
        text = stack_text(_wheels(fitting))
        index = index_of(lock)
        shop.write(bundled.place, index, fitting.runners, lock, text)
    else:
        shop.write(bundled.place, _index_of_image(bundled.group), fitting.runners)


def _key(fitting: Fitting, request: Request) -> str:
    group = fitting.group
    tags = {minor: one.tags[:1] for minor, one in fitting.runners.items()}
    interpreter = fitting.choice.candidate.interpreter
    inputs = msgspec.json.encode(
        [
            record.inputs(request),
            record.public(request),
            [group.stack, group.release, group.python, group.architecture, group.image],
            tags,
            interpreter.tags[:1] if interpreter else [],
        ]
    )
    name = group.stack.replace("/", "-")
    return f"{name}-{group.release}-{hashlib.sha256(inputs).hexdigest()[:12]}"


def _wheels(fitting: Fitting) -> Choice:
    choice = fitting.choice
    assert choice.candidate.interpreter is not None, "an image has none"
    return choice  # type: ignore[return-value]  # with an interpreter it is one of wheels


def _index_of_image(group: FitGroup) -> BundleIndex:
    return BundleIndex(
        envcheck=__version__,
        mode="container",
        stack=group.stack,
        release=group.release,
        image=group.image,
        architecture=group.architecture,
        created_at="",
        pythons=[],
        files={},
    )


def _arguments(fitting: Fitting, request: Request) -> list[str]:
    """BUNDLE stands for its place on the machine."""
    words = ["--mode", request.mode]
    if request.mode == "container":
        group = fitting.group
        named = (
            ["--image", request.image]
            if request.image
            else [group.stack, "--release", group.release]
        )
        words += named + (["--engine", request.engine] if request.engine else [])
        words += [word for host in request.allow_insecure for word in ("--allow-insecure", host)]
    else:
        words += ["--offline", "BUNDLE"]
    return words + (["--allow-no-gpu"] if request.allow_no_gpu else [])
