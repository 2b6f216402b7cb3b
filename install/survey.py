"""What an installation looks at: the machine, its Pythons, the public index; afterwards the new version."""

from __future__ import annotations

import os
import sysconfig
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from .. import collection
from ..collection import Collected
from ..facts.snapshot import MACHINE_SECTIONS, Snapshot
from .catalogue.model import PUBLIC
from .network.public_index import PublicIndex, public_index
from .pythons import finding
from .pythons.interpreter import Interpreter
from .request import Request

T = TypeVar("T")

# What an installation does not change, and a campaign of micro-kernels does not start from.
_UNCHANGED = ("pci", "kernel", "nvidia_smi", "cuda", "containers")


class SurveyedMachine(msgspec.Struct, frozen=True, kw_only=True):
    """``public`` is None for an installation that asks no index."""

    snapshot: Snapshot
    interpreters: list[Interpreter]
    obtainable: list[str]  # minor versions of Python that uv could get
    public: PublicIndex | None


def collecting() -> Future[Collected]:
    """The Snapshot, which takes the longest."""
    # msgspec 0.22 crashes where two threads meet a type for the first time: here there is one.
    msgspec.json.Decoder(Snapshot)
    # Nothing of it is written or sent anywhere, and refusals name real paths.
    return background(lambda: collection.collect(redact=False))


def look(request: Request, collected: Future[Collected]) -> SurveyedMachine:
    """All of it side by side. Only from the main thread; collected: the Snapshot that is under way.

    Raises UsageError for a --python or an index that is none, CouldNotLook where the collector fails.
    """
    # Not safe in threads the first time: python/cpython issue 92452, met here when two look for uv at once.
    sysconfig.get_config_vars()
    public = None if request.offline else background(lambda: public_for(request))
    obtainable = None if request.offline else background(finding.obtainable)
    interpreters = finding.interpreters(request.python)
    return SurveyedMachine(
        obtainable=[] if obtainable is None else obtainable.result(),
        public=None if public is None else public.result(),
        interpreters=interpreters,
        snapshot=collected.result().snapshot,
    )


def public_for(request: Request) -> PublicIndex:
    """The one that the request names, whatever pip and uv say, else theirs."""
    given = [index.removeprefix(f"{PUBLIC}=") for index in request.indexes]
    named = [index for index in given if index.startswith(("https://", "http://"))]
    return PublicIndex(url=named[-1], origin="--index") if named else public_index(os.environ)


def background(ask: Callable[[], T]) -> Future[T]:
    """Ask in a thread that does not keep an interrupted envcheck from ending.

    It may start programs: it waits for their end, and so never takes one along.
    """
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:  # noqa: BLE001 - raised again where it is asked for
            answer.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return answer


class VerifyOptions(NamedTuple):
    """How the doctor looks at a new version, and what that must show."""

    look: Callable[[Path], Collected]  # raises CouldNotLook
    must_pass: list[str]  # codes without which the stack is not installed
    allow_no_gpu: bool  # what could not be judged for want of a GPU is no reason against it


def unchanged(machine: Snapshot) -> Snapshot:
    """Of what was seen before an installation, that which need not be looked at again after it."""
    document = machine.machine
    others = {name: None for name in MACHINE_SECTIONS if name not in _UNCHANGED}
    return msgspec.structs.replace(machine, machine=msgspec.structs.replace(document, **others))
