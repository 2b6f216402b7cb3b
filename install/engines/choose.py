"""Which engine is used: one that works here, not one that is merely on PATH. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ...checks.container.engines import wake
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
from ...findings.model import Finding, Remedy
from ..engine import ENGINES, EngineName, Wiring
from . import wiring


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """An engine that is installed and cannot be used."""

    engine: Engine
    why: str  # one sentence
    remedy: Remedy | None = None


class EngineChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The engine that is used."""

    engine: Engine  # the machine's facts about it
    wiring: Wiring = wiring.NONE
    gpus: int = 0  # device nodes that have to be in a container
    findings: list[Finding] = []  # what works today and is at risk
    refused: list[Refused] = []  # that were preferred

    @property
    def name(self) -> EngineName:
        return self.engine.name  # type: ignore[return-value]  # one of ENGINES was looked for

    @property
    def program(self) -> str:
        return self.engine.path

    @property
    def version(self) -> str:
        """ "4.3.1"; "" where it is not known."""
        return known(self.engine.server_version) or known(self.engine.version) or ""

    @property
    def remarks(self) -> list[str]:
        """The engines that were skipped, and each finding in a line with its commands."""
        passed = [f"{one.engine.name} is skipped: {one.why}" for one in self.refused]
        return passed + [_remark(finding) for finding in self.findings]

    @property
    def label(self) -> str:
        """ "podman 4.3.1"."""
        return f"{self.name} {self.version}".strip()

    @property
    def wired(self) -> str:
        """How the GPUs get in, in words; "" where none is wired."""
        return self.wiring.sentence if self.wiring.kind != "none" else ""


def choose(name: str, snapshot: Snapshot, needed_mib: int = 0) -> EngineChoice:
    """The engine for this machine: the one named, or the first that works, those with GPU wiring first.

    name: "", or one of ENGINES. needed_mib: what the image takes in the engine's storage, MiB. On a machine
    without a GPU the wiring is "none". Raises Cannot, with the commands that repair it.
    """
    refused: list[Refused] = []
    for outcome in _Engines(snapshot, needed_mib).judged(name):
        if isinstance(outcome, EngineChoice):
            return msgspec.structs.replace(outcome, refused=refused)
        refused.append(outcome)
    raise _cannot(name, refused, snapshot)


def answering(name: str, snapshot: Snapshot) -> list[EngineChoice]:
    """Every engine that can start a container, even without GPUs. Raises Cannot where there is none."""
    found, refused = [], []
    for outcome in _Engines(snapshot, 0).judged(name):
        if isinstance(outcome, EngineChoice):
            found.append(outcome)
        elif known(outcome.engine.server_version) is not None:
            found.append(EngineChoice(engine=outcome.engine))
        else:
            refused.append(outcome)
    if not found:
        raise _cannot(name, refused, snapshot)
    return found


def _cannot(name: str, refused: list[Refused], snapshot: Snapshot) -> Cannot:
    if not refused:
        missing = (
            f"{name} is not installed here" if name else "no container engine is installed here"
        )
        view = SnapshotView(snapshot)
        commands = adapted(view, Remedy("", on_system(view, "podman"))).commands
        hint = f"install one: {' && '.join(commands) or 'podman, as your distribution has it'}"
        if name and name != "podman":
            hint = f"install {name}, or take another engine: --engine podman"
        return Cannot(f"{missing} (podman or docker).", hint)
    hints = [
        "\n".join([one.remedy.text, *(f"    {command}" for command in one.remedy.commands)])
        for one in refused
        if one.remedy is not None
    ]
    return Cannot(" ".join(one.why for one in refused), "\n".join(hints))


def _remark(finding: Finding) -> str:
    remedy = finding.remedy
    parts = [] if remedy is None else [remedy.text, "; ".join(remedy.commands)]
    return " ".join(filter(None, [finding.message, *parts]))


class _Engines:
    """One Snapshot's engines, with what the checks on containers say of each."""

    def __init__(self, snapshot: Snapshot, needed_mib: int) -> None:
        self.view = view = SnapshotView(snapshot)
        try:
            self.containers = containers_of(view)
        except CannotJudge as why:
            raise Cannot(
                f"the container engines of this machine are not known: {why}",
                "`envcheck collect` shows what the probe of the engines found",
            ) from why
        self.needed_mib = needed_mib
        self.gpus = _expected(view)
        checks = [check for check in all_checks() if check.area == "container"]
        self.findings = {
            (result.code, finding.subject): finding
            for result in diagnose(snapshot, checks=checks).results
            for finding in result.findings
        }

    def judged(self, name: str) -> Iterator[EngineChoice | Refused]:
        """The engine of that name, or all in the order of preference."""
        for wanted in [name] if name else ENGINES:
            for engine in self.containers.engines:
                if engine.name == wanted:
                    yield self._judge(engine)

    def _judge(self, engine: Engine) -> EngineChoice | Refused:
        refused = self._silent(engine) or self._remote(engine) or self._too_small(engine)
        if refused is not None:
            return refused
        way = wiring.find(engine, self.containers) if self.gpus else wiring.NONE
        if way is None:
            return self._unwired(engine)
        dangers = []
        if engine.name == "docker" and way.kind not in ("cdi", "none"):
            dangers = [self.findings.get((code, engine.name)) for code in ("CTR-003", "CTR-005")]
        return EngineChoice(
            engine=engine,
            wiring=way,
            gpus=self.gpus,
            findings=list(filter(None, dangers)),
        )

    def _silent(self, engine: Engine) -> Refused | None:
        why = engine.server_version
        if not isinstance(why, Unavailable):
            return None
        lines = why.detail.strip().splitlines()
        reason = f" ({lines[-1][:200]})" if lines else ""
        return Refused(
            engine=engine,
            why=f"{engine.name} is installed and does not answer{reason}.",
            remedy=adapted(self.view, wake(self.view, engine, why)),
        )

    def _remote(self, engine: Engine) -> Refused | None:
        if not self.gpus or known(engine.remote) is not True:
            return None
        commands = {
            "docker": ["unset DOCKER_HOST", "docker context use default"],
            "podman": ["unset CONTAINER_HOST", "podman system connection list"],
        }
        return Refused(
            engine=engine,
            why=f"{engine.name}'s server runs elsewhere: its containers do not get this machine's GPUs.",
            remedy=Remedy(f"Use the {engine.name} of this machine.", commands[engine.name]),
        )

    def _too_small(self, engine: Engine) -> Refused | None:
        free = known(engine.storage_free_mib)
        if free is None or free >= self.needed_mib:
            return None
        return Refused(
            engine=engine,
            why=f"{engine.name}'s storage in {known(engine.storage_path) or 'its directory'} has"
            f" {free / 1024:.1f} GiB free, and the image needs {self.needed_mib / 1024:.1f} GiB.",
            remedy=Remedy(
                "Remove unused images, or move the storage to a larger file system.",
                [f"{engine.name} system df", f"{engine.name} image prune --all"],
            ),
        )

    def _unwired(self, engine: Engine) -> Refused:
        """With the finding that says most: a stale or too new specification more than a missing one."""
        paths = [spec.path for spec in known(self.containers.cdi_specs) or []]
        podman = engine.name == "podman"
        keys = [("CTR-007", path) for path in paths if podman]
        keys += [("CTR-004", path) for path in paths]
        keys += [("CTR-006", "")] if podman else []
        for key in [*keys, ("CTR-002", engine.name)]:
            if finding := self.findings.get(key):
                return Refused(engine=engine, why=finding.message, remedy=finding.remedy)
        return Refused(
            engine=engine, why=f"{engine.name} cannot give a container this machine's GPUs."
        )


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
