"""Asks the collector for a Snapshot: core's side of the wall."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from . import json_text, nvidia_ml_py, plugins, scratch
from .collector.runtime import process
from .collector.worker import PACKAGE, messages
from .exit_codes import CouldNotLook, UsageError

if TYPE_CHECKING:  # the facts' types are imported while the collector works
    from .facts.bench import BenchRow, LeftOut
    from .facts.snapshot import Snapshot

# The collector bounds every probe; this bounds the collector.
DEADLINE = 300.0
# Seconds more with micro-kernels: it starts none after 900 s, and the last of them may take this long.
KERNELS = 900.0 + 300.0
SYSTEMS = 600.0 + 420.0  # the same with acceleration systems
BEYOND_PROBES = 60.0  # seconds, where a deadline for every probe was given
GRACE = 2.0  # seconds for the collector to end what it started
ENGINE_GRACE = 15.0  # the same where a container is part of it

LIMIT = 64 * 1024 * 1024  # bytes of its answer

_START = PACKAGE + ("from envcheck.collector.main import main\nsys.exit(main(sys.argv[2:]))\n")
_REFUSED = 2

Progress = Callable[[list[str], int, int], None]
Events = Callable[[dict[str, Any]], None]


class Kernels(msgspec.Struct, frozen=True, kw_only=True):
    """What to run on the GPUs: the fields of the collector's Options, which says what they mean."""

    products: bool = True
    levels: list[str] = []
    modes: list[str] = []
    systems: list[str] = []
    gpus: list[int] = []
    busy_ok: bool = False


class BenchWork(msgspec.Struct, frozen=True, kw_only=True):
    """Rows for the collector to run."""

    asked: list[str]  # the command line's WHAT
    options: list[str] = []  # of the command line, which are shown with the result
    rows: list[BenchRow]
    repetitions: int = 5
    seconds: float = 2.0  # of a repetition, about
    warm_up: float | None = None  # seconds at most; None: as is usual on a GPU, and on a CPU
    busy_ok: bool = False  # on GPUs that are in use, too
    left_out: list[LeftOut] = []  # by the plan, which is shown with the result


class SoakWork(msgspec.Struct, frozen=True, kw_only=True):
    """What all GPUs are to do, and for how long."""

    seconds: float
    gpus: list[int] = []  # nvidia-smi's indices; none: all
    busy_ok: bool = False
    cublas: bool = False  # by the target's cuBLAS, where it has one; else by the driver alone
    required: bool = False  # by the target's cuBLAS or not at all
    minute: float = 60.0  # seconds of a record
    memory_mib: int | None = None  # that patterns fill on each GPU; None: most of it


class Enough(Exception):
    """Raised by whoever hears events: the work is to end with what it has, as after Ctrl-C."""


class Work(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the collector does after all probes, and how long it may take."""

    seconds: float
    bench: BenchWork | None = None
    soak: SoakWork | None = None


class Inside(msgspec.Struct, frozen=True, kw_only=True):
    """A container to look into, by `podman run --rm -i … IMAGE` or `podman exec -i ID`."""

    location: str  # "image:REF", "container:ID"
    argv: list[str]  # an absolute path first
    environment: dict[str, str] | None = None  # of argv's process; None: envcheck's own
    # Removes the container where argv's process had to be killed, and could not: `podman rm -f NAME`.
    ending: list[str] = []


class Collected(msgspec.Struct):
    """A Snapshot, and what its tokens stand for on this machine (never written anywhere)."""

    snapshot: Snapshot
    values: dict[str, str]

    def restore(self, text: str) -> str:
        """The text with the real values in the place of their tokens."""
        for token, value in self.values.items():
            text = text.replace(token, value)
        return text


def collect(
    target: str | None = None,
    *,
    inside: Inside | None = None,
    nvidia_smi: str | None = None,
    redact: bool = True,
    deadline: float | None = None,
    kernels: Kernels | None = None,
    progress: Progress | None = None,
    only: Collection[str] = (),
    seen: Snapshot | None = None,
    environment: Mapping[str, str] | None = None,
    work: Work | None = None,
    events: Events | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> Collected:
    """Run the collector in a process of its own.

    target: a path; inside: a container instead. deadline: seconds for every probe, instead of its own.
    kernels: what to run on the GPUs after the probes. only: these probes alone. seen: an unredacted Snapshot
    of this machine and target, whose probes are not run again. environment: further variables.
    progress: called again and again with (names of running probes, done, total). work: what to do then; the
    first Ctrl-C ends it, and keeps what is done. events: called with what the work reports; may raise Enough.
    meanwhile: called once while the collector works, such as to import what the result needs.
    Raises UsageError for a target or file that cannot be looked at, CouldNotLook where no Snapshot came back.
    """
    argv = [sys.executable, "-I", "-S", "-c", _START, str(Path(__file__).parent.parent)]
    argv += ["--parent", str(os.getpid())]
    if nvidia_smi is not None:
        argv += ["--nvidia-smi", nvidia_smi]
    pynvml = nvidia_ml_py.file()
    request: dict[str, Any] = {
        "target": target,
        "no_redact": not redact,
        "deadline": deadline,
        "probes": sorted(only) or None,
        "pynvml": None if pynvml is None else str(pynvml),
        "probe_files": {name: str(file) for name, file in plugins.probe_files().items()},
        "kernels": None if kernels is None else msgspec.to_builtins(kernels),
        "work": None if work is None else _encoded(work),
    }
    env = None if environment is None else {**os.environ, **environment}
    with _files_for(request, inside, seen), _events_of(work) as pipe:
        request["events"] = None if pipe is None else pipe.path
        argv += ["--request", msgspec.json.encode(request).decode()]
        grace = GRACE if inside is None else ENGINE_GRACE
        child = process.Child(
            argv, _bound(deadline, kernels, work), env=env, grace=grace, limit=LIMIT
        )
        with _asking_first(child) if work is not None else nullcontext():
            result = _run(child, progress, events, pipe, meanwhile)
    return _read(result, of_file=nvidia_smi is not None)


def _bound(deadline: float | None, kernels: Kernels | None, work: Work | None) -> float:
    """Seconds for the collector as a whole."""
    bound = DEADLINE if deadline is None else max(DEADLINE, deadline + 2 * BEYOND_PROBES)
    if kernels is not None:
        bound += (KERNELS if kernels.products else 0.0) + (SYSTEMS if kernels.systems else 0.0)
    return bound + (work.seconds if work is not None else 0.0)


@contextmanager
def _files_for(
    request: dict[str, Any], inside: Inside | None, seen: Snapshot | None
) -> Iterator[None]:
    """The files that send the collector into a container, and that name what was seen already."""
    if inside is None and seen is None:
        yield
        return
    with scratch.directory() as folder:
        if seen is not None:
            from .facts import snapshot as snapshots

            known = folder / "seen.json"
            known.write_bytes(snapshots.dump(seen))
            request["seen"] = str(known)
        if inside is not None:
            from . import single_file

            script, file = folder / "collector.py", folder / "inside.json"
            script.write_bytes(single_file.build_script(plugins.probe_files()))
            look = msgspec.to_builtins(inside) | {"script": str(script), "once": True}
            file.write_bytes(msgspec.json.encode(look))
            request["inside"] = str(file)
        yield


@contextmanager
def _events_of(work: Work | None) -> Iterator[Any]:
    """A pipe for the events of work that takes days; None for other work, which tells them on stderr."""
    if work is None or work.soak is None:
        yield None
        return
    from .collector.worker import pipes

    with scratch.directory() as folder:
        pipe = pipes.LinePipe(str(folder))
        try:
            yield pipe
        finally:
            pipe.close()


def _fill_capabilities(machine: dict[str, Any]) -> None:
    """The compute capabilities, which nvidia-smi's files do not have, by the tables."""
    from .data.gpu_names import capability_of

    section = machine["nvidia_smi"]
    gpus = section["facts"].get("gpus")
    for gpu in gpus if isinstance(gpus, list) else ():
        name, architecture = (
            text if isinstance(text := gpu.get(key), str) else ""
            for key in ("name", "architecture")
        )
        found, source = capability_of(name, architecture)
        if found and not isinstance(gpu.get("compute_capability"), str):
            gpu["compute_capability"] = found
            section["sources"]["gpus.compute_capability"] = source


def _encoded(work: Work) -> dict[str, Any]:
    """The work as the collector takes it: every field of a row is there."""
    encoded: dict[str, Any] = msgspec.to_builtins(work)
    if work.bench is not None:
        encoded["bench"]["rows"] = [msgspec.structs.asdict(row) for row in work.bench.rows]
    if work.soak is not None:
        encoded["soak"] = msgspec.structs.asdict(work.soak)
    return encoded


@contextmanager
def _asking_first(child: Any) -> Iterator[None]:
    """The first Ctrl-C asks the collector to end with what it has; the second is one."""

    def ask(_number: int, _frame: Any) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        child.interrupt()

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _run(
    child: Any,
    progress: Progress | None,
    events: Events | None,
    pipe: Any = None,
    meanwhile: Callable[[], object] | None = None,
) -> Any:
    """The collector's process.Result."""
    latest: dict[str, Any] = {}
    waiting = [] if meanwhile is None else [meanwhile]
    enough: list[bool] = []

    def handle(message: dict[str, Any]) -> None:
        if isinstance(message.get("stage"), dict):
            latest.update(message["stage"])
        elif "result" in message and events is not None:
            try:
                events(message["result"])
            except Enough:
                if not enough:  # a second time would be as a second Ctrl-C
                    child.interrupt()
                enough.append(True)

    def watch() -> None:
        lines = [line.encode() for line in child.new_stderr()]
        for message in messages.read(lines + (pipe.lines() if pipe is not None else [])):
            handle(message)
        if progress is not None and latest:
            progress(latest["running"], latest["done"], latest["total"])
        if waiting:
            waiting.pop()()

    process.run_all([child], watch)
    watch()
    return child.result


def _read(result: Any, of_file: bool = False) -> Collected:
    if result.outcome == "exited" and result.code == _REFUSED:
        raise UsageError(_last_words(result).removeprefix("envcheck-collector: "))
    if not result.ok:
        words = _last_words(result)
        raise CouldNotLook(
            f"the collector {result.describe()}, so nothing is known about this machine"
            + (f": {words}" if words else "")
        )
    try:
        whole = json_text.read(result.stdout)
        if of_file:
            _fill_capabilities(whole["snapshot"]["machine"])
        return Collected(_fit(whole["snapshot"]), msgspec.convert(whole["values"], dict[str, str]))
    except (ValueError, KeyError, TypeError) as error:
        raise CouldNotLook(f"the collector's answer could not be read: {error}") from None


def _last_words(result: Any) -> str:
    """The last line that it wrote to stderr for people."""
    lines = result.stderr.decode("utf-8", "replace").strip().splitlines()
    words = [line for line in lines if line and not line.startswith(messages.MARK.decode())]
    return words[-1][-2000:] if words else ""


def _fit(raw: dict[str, Any]) -> Snapshot:
    """The typed Snapshot; a probe whose facts do not fit the schema counts as crashed, and no other."""
    from .facts import snapshot as snapshots

    for name in ("machine", "target"):
        _fit_extensions(raw[name])
    while True:
        try:
            data = msgspec.json.encode(raw)
            found = snapshots.load(data)
            unknown = snapshots.unknown_fields(data, found)
            if unknown:  # of this very version
                raise snapshots.SnapshotError(f"unknown field - at `$.{unknown[0]}`")
            return found
        except snapshots.SnapshotError as error:
            document, section = _place(str(error))
            probe = raw.get(document, {}).get(section) if document else None
            if not isinstance(probe, dict) or "facts" not in probe:
                raise
            raw[document][section] = {
                "outcome": "crashed",
                "seconds": probe.get("seconds", 0.0),
                "reason": f"the probe's facts do not fit the schema: {error}",
            }


def _fit_extensions(document: Any) -> None:
    from .facts.base import Probe

    extensions: Any = document.get("extensions") if isinstance(document, dict) else None
    for name, probe in extensions.items() if isinstance(extensions, dict) else ():
        try:
            msgspec.convert(probe, Probe[dict[str, Any]])
        except msgspec.ValidationError as error:
            extensions[name] = {"outcome": "crashed", "reason": f"no probe's answer: {error}"}


def _place(message: str) -> tuple[str, str]:
    """("machine", "nvml") from a message that ends in "at `$.machine.nvml.facts.gpus[0]`"."""
    parts = message.rpartition("`$.")[2].rstrip("`").split(".")
    return (parts[0], parts[1]) if len(parts) > 2 else ("", "")


def active_environment() -> str | None:
    """The activated virtual environment or conda environment, as the shell tells it."""
    return os.environ.get("VIRTUAL_ENV") or os.environ.get("CONDA_PREFIX") or None
