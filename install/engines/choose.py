"""Which engine is used: one that works here, not one that is merely on PATH. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ...checks.container.engines import silence
from ...checks.containers import containers_of
from ...checks.driver_state import on_wsl
from ...checks.engine import diagnose
from ...checks.registry import all_checks
from ...checks.system_commands import adapted, on_system
from ...exit_codes import Cannot
from ...facts.base import Unavailable, known
from ...facts.containers import Engine
from ...facts.missing import CannotJudge
from ...facts.snapshot import Snapshot
from ...facts.view import SnapshotView
from ...findings.causes import warn
from ...findings.model import Finding, Remedy
from ..engine import ENGINES, EngineName, Wiring
from . import wiring

_REMOTE = warn(
    "engine-elsewhere",
    "the engine's server is on another machine",
    "{engine}'s server runs elsewhere: its containers do not get this machine's GPUs.",
    "Use the {engine} of this machine.",
)
_FULL = warn(
    "engine-storage-full",
    "the engine's storage is too small",
    "{engine}'s storage in {path} has {free:.1f} GiB free, and the image needs {needed:.1f} GiB.",
    "Remove unused images, or move the storage to a larger file system.",
)
_UNWIRED = warn(
    "engine-without-gpus",
    "the engine has no way to the GPUs",
    "{engine} cannot give a container this machine's GPUs.",
)
_LOCAL = {
    "docker": ["unset DOCKER_HOST", "docker context use default"],
    "podman": ["unset CONTAINER_HOST", "podman system connection list"],
}


class EngineChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The engine that is used."""

    engine: Engine  # the machine's facts about it
    wiring: Wiring = wiring.NONE
    gpus: int = 0  # device nodes that have to be in a container
    remarks: list[str] = []  # engines that were skipped, and what works today and is at risk

    @property
    def name(self) -> EngineName:
        return self.engine.name  # type: ignore[return-value]  # one of ENGINES was looked for

    @property
    def program(self) -> str:
        return self.engine.path

    @property
    def label(self) -> str:
        """ "podman 4.3.1"."""
        version = known(self.engine.server_version) or known(self.engine.version) or ""
        return f"{self.name} {version}".strip()

    @property
    def wired(self) -> str:
        """How the GPUs get in, in words; "" where none is wired."""
        return self.wiring.sentence if self.wiring.kind != "none" else ""


def choose(name: str, snapshot: Snapshot, needed_mib: int = 0) -> EngineChoice:
    """The engine for this machine: the one named, or the first that works, those with GPU wiring first.

    name: "", or one of ENGINES. needed_mib: what the image takes in the engine's storage, MiB. On a machine
    without a GPU the wiring is "none". Raises Cannot, with the commands that repair it.
    """
    engines = _Engines(snapshot, needed_mib)
    refused: list[Finding] = []
    skipped: list[str] = []
    for engine in engines.named(name):
        outcome = engines.judge(engine)
        if isinstance(outcome, EngineChoice):
            return msgspec.structs.replace(outcome, remarks=[*skipped, *outcome.remarks])
        refused.append(outcome)
        skipped.append(f"{engine.name} is skipped: {outcome.message}")
    raise _cannot(name, refused, engines.view)


def answering(name: str, snapshot: Snapshot) -> list[EngineChoice]:
    """Every engine that can start a container, even without GPUs. Raises Cannot where there is none."""
    engines = _Engines(snapshot, 0)
    found: list[EngineChoice] = []
    refused: list[Finding] = []
    for engine in engines.named(name):
        outcome = engines.judge(engine)
        if isinstance(outcome, EngineChoice):
            found.append(outcome)
        elif known(engine.server_version) is not None:
            found.append(EngineChoice(engine=engine))
        else:
            refused.append(outcome)
    if not found:
        raise _cannot(name, refused, engines.view)
    return found


def _cannot(name: str, refused: list[Finding], view: SnapshotView) -> Cannot:
    if refused:
        remedies = [one.remedy for one in refused if one.remedy is not None]
        hints = ["\n    ".join([remedy.text, *remedy.commands]) for remedy in remedies]
        return Cannot(" ".join(one.message for one in refused), "\n".join(hints))
    missing = f"{name} is not installed here" if name else "no container engine is installed here"
    commands = adapted(view, Remedy("", on_system(view, "podman"))).commands
    hint = f"install one: {' && '.join(commands) or 'podman, as your distribution has it'}"
    if name and name != "podman":
        hint = f"install {name}, or take another engine: --engine podman"
    return Cannot(f"{missing} (podman or docker).", hint)


class _Engines:
    """One Snapshot's engines, with what the checks on containers say of each."""

    def __init__(self, snapshot: Snapshot, needed_mib: int) -> None:
        self.view = view = SnapshotView(snapshot)
        try:
            self._containers = containers_of(view)
        except CannotJudge as why:
            raise Cannot(
                f"the container engines of this machine are not known: {why}",
                "`envcheck collect` shows what the probe of the engines found",
            ) from why
        self._needed_mib = needed_mib
        self._gpus = _expected(view)
        checks = [check for check in all_checks() if check.area == "container"]
        self._findings = {
            (result.code, finding.subject): finding
            for result in diagnose(snapshot, checks=checks).results
            for finding in result.findings
        }

    def named(self, name: str) -> Iterator[Engine]:
        """The engine of that name, or all in the order of preference."""
        for wanted in [name] if name else ENGINES:
            yield from (one for one in self._containers.engines if one.name == wanted)

    def judge(self, engine: Engine) -> EngineChoice | Finding:
        """The engine with its wiring, or why it cannot be used."""
        why, free = engine.server_version, known(engine.storage_free_mib)
        if isinstance(why, Unavailable):
            found = silence(self.view, engine, why)
            remedy = None if found.remedy is None else adapted(self.view, found.remedy)
            return msgspec.structs.replace(found, remedy=remedy)
        if self._gpus and known(engine.remote) is True:
            return _REMOTE.found(commands=_LOCAL[engine.name], engine=engine.name)
        if free is not None and free < self._needed_mib:
            return _FULL.found(
                commands=[f"{engine.name} system df", f"{engine.name} image prune --all"],
                engine=engine.name,
                path=known(engine.storage_path) or "its directory",
                free=free / 1024,
                needed=self._needed_mib / 1024,
            )
        way = wiring.find(engine, self._containers) if self._gpus else wiring.NONE
        if way is None:
            return self._unwired(engine)
        dangers: list[Finding | None] = []
        if engine.name == "docker" and way.kind not in ("cdi", "none"):
            dangers = [self._findings.get((code, engine.name)) for code in ("CTR-003", "CTR-005")]
        remarks = [_remark(finding) for finding in dangers if finding is not None]
        return EngineChoice(engine=engine, wiring=way, gpus=self._gpus, remarks=remarks)

    def _unwired(self, engine: Engine) -> Finding:
        """The finding that says most: a stale or too new specification more than a missing one."""
        paths = [spec.path for spec in known(self._containers.cdi_specs) or []]
        podman = engine.name == "podman"
        keys = [("CTR-007", path) for path in paths if podman]
        keys += [("CTR-004", path) for path in paths]
        keys += [("CTR-006", "")] if podman else []
        found = filter(None, map(self._findings.get, [*keys, ("CTR-002", engine.name)]))
        return next(found, _UNWIRED.found(engine=engine.name))


def _remark(finding: Finding) -> str:
    """The finding in a line with its commands."""
    remedy = finding.remedy
    parts = [] if remedy is None else [remedy.text, "; ".join(remedy.commands)]
    return " ".join(filter(None, [finding.message, *parts]))


def _expected(view: SnapshotView) -> int:
    """How many device nodes have to arrive: one for each GPU that the driver lists, cut up by MIG or not.

    In WSL2 it is 1: /dev/dxg stands for all. Where the driver could not be asked, the GPUs on the PCI bus
    that have it for their driver.
    """
    try:
        count = len(view.gpus)
    except CannotJudge:
        pci = view.machine.pci
        devices = known(pci.facts.devices) if pci is not None and pci.facts is not None else None
        count = sum(one.kind == "gpu" and known(one.driver) == "nvidia" for one in devices or [])
    return min(count, 1) if on_wsl(view) else count
