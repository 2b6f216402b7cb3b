"""Which engine holds and starts the image: one that works here, not one that is merely on PATH. Pure."""

from __future__ import annotations

import msgspec

from ...checks.container.engines import wake
from ...checks.containers import containers_of
from ...checks.engine import diagnose
from ...checks.registry import all_checks
from ...checks.system_commands import adapted, on_system
from ...exit_codes import Cannot
from ...facts.base import Unavailable
from ...facts.containers import Engine
from ...facts.missing import CannotJudge
from ...facts.snapshot import Snapshot
from ...facts.view import SnapshotView, known
from ...findings.model import Finding, Remedy
from ..engine import ENGINES, EngineName, Wiring
from . import wiring
from .gpus import expected
from .troubles import told


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """An engine that is here and is not taken."""

    name: str
    why: str  # one sentence
    remedy: Remedy | None = None


class EngineChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The engine that is taken, and all that was seen on the way."""

    engine: Engine  # the machine's facts about it
    name: EngineName
    program: str  # its path
    wiring: Wiring
    gpus: int  # that must arrive in a container
    findings: list[Finding] = []  # what works today and is in danger: told, with its commands
    refused: list[Refused] = []  # that would have come first

    @property
    def remarks(self) -> list[str]:
        """Each finding in a line, with the commands that repair it; and who would have come first."""
        passed = [f"{one.name} is skipped: {one.why}" for one in self.refused]
        return passed + [_remark(finding) for finding in self.findings]

    @property
    def label(self) -> str:
        """ "podman 4.3.1"."""
        version = known(self.engine.server_version) or known(self.engine.version)
        return f"{self.name} {version}" if version else self.name

    @property
    def wired(self) -> str:
        """How the GPUs get in, in words; "" where none is wired."""
        return self.wiring.sentence if self.wiring.kind != "none" else ""

    @property
    def files(self) -> bool:
        """It keeps no images: one is a file in the version's directory."""
        return self.name in ("apptainer", "enroot")


def choose(name: str, snapshot: Snapshot, needed_mib: int = 0) -> EngineChoice:
    """The engine for this machine: the one named, or the first that works, those with GPU wiring first.

    name: "", or one of ENGINES. needed_mib: what the image takes in the engine's storage, MiB. On a machine
    without a GPU the wiring is "none". Raises Cannot, with the commands that repair it.
    """
    look = _Look(snapshot, needed_mib)
    refused: list[Refused] = []
    for wanted in [name] if name else ENGINES:
        for engine in look.named(wanted):
            outcome = look.judge(engine)
            if isinstance(outcome, EngineChoice):
                return msgspec.structs.replace(outcome, refused=refused)
            refused.append(outcome)
    raise _cannot(name, refused, snapshot)


def install_one(snapshot: Snapshot) -> str:
    """The hint that brings an engine to this machine."""
    view = SnapshotView(snapshot)
    remedy = adapted(view, Remedy("", on_system(view, "podman")))
    return f"install one: {' && '.join(remedy.commands) or 'podman, as your distribution has it'}"


def _cannot(name: str, refused: list[Refused], snapshot: Snapshot) -> Cannot:
    if not refused:
        missing = (
            f"{name} is not installed here" if name else "no container engine is installed here"
        )
        hint = install_one(snapshot)
        if name and name != "podman":
            hint = f"install {name}, or take another engine: --engine podman"
        return Cannot(f"{missing} (podman, docker, apptainer or enroot holds the image).", hint)
    first = refused[0]
    others = "".join(f" {one.why}" for one in refused[1:])
    hints = [_commands(one.remedy) for one in refused if one.remedy is not None]
    return Cannot(first.why + others, "\n".join(hints))


def _remark(finding: Finding) -> str:
    if finding.remedy is None:
        return finding.message
    commands = "; ".join(finding.remedy.commands)
    return f"{finding.message} {finding.remedy.text}{' ' + commands if commands else ''}"


def _commands(remedy: Remedy) -> str:
    return "\n".join([remedy.text, *(f"    {command}" for command in remedy.commands)])


class _Look:
    """One Snapshot's engines, with what the checks on containers say of each."""

    def __init__(self, snapshot: Snapshot, needed_mib: int) -> None:
        self.view = view = SnapshotView(snapshot)
        try:
            self.containers = containers_of(view)
        except CannotJudge as why:
            raise Cannot(
                f"What container engines this machine has is not known: {why}.",
                "`envcheck collect` shows what the probe of the engines says",
            ) from why
        self.needed_mib = needed_mib
        self.gpus = expected(view)
        checks = [check for check in all_checks() if check.area == "container"]
        self.findings = {
            (result.code, finding.subject): finding
            for result in diagnose(snapshot, checks=checks).results
            for finding in result.findings
        }

    def named(self, name: str) -> list[Engine]:
        names = (name, "singularity") if name == "apptainer" else (name,)
        return [engine for engine in self.containers.engines if engine.name in names]

    def judge(self, engine: Engine) -> EngineChoice | Refused:
        refused = self._silent(engine) or self._elsewhere(engine) or self._too_small(engine)
        if refused is not None:
            return refused
        name: EngineName = "apptainer" if engine.name == "singularity" else engine.name  # type: ignore[assignment]
        way: Wiring | None = wiring.NONE
        if self.gpus:
            way = wiring.find(engine, self.containers)
            if way is None:
                return self._unwired(engine)
        assert way is not None
        return EngineChoice(
            engine=engine,
            name=name,
            program=engine.path,
            wiring=way,
            gpus=self.gpus,
            findings=self._dangers(engine, way),
        )

    def _silent(self, engine: Engine) -> Refused | None:
        why = engine.server_version
        if engine.name not in ("podman", "docker") or not isinstance(why, Unavailable):
            return None
        finding = self.findings.get(("CTR-001", engine.name))
        if finding is not None:
            return Refused(name=engine.name, why=finding.message, remedy=finding.remedy)
        said = told(engine.name, why.detail)[0] if why.detail.strip() else "it does not answer"
        sentence = f"{engine.name} is installed, and {said}."
        return Refused(
            name=engine.name, why=sentence, remedy=adapted(self.view, wake(self.view, engine, why))
        )

    def _elsewhere(self, engine: Engine) -> Refused | None:
        if not self.gpus or known(engine.remote) is not True:
            return None
        back = {
            "docker": ["unset DOCKER_HOST", "docker context use default"],
            "podman": ["unset CONTAINER_HOST", "podman system connection list"],
        }
        return Refused(
            name=engine.name,
            why=f"{engine.name}'s server runs on another machine or in a virtual one, and its containers do"
            " not get this machine's GPUs.",
            remedy=Remedy(f"Use the {engine.name} of this machine.", back.get(engine.name, [])),
        )

    def _too_small(self, engine: Engine) -> Refused | None:
        free = known(engine.storage_free_mib)
        if free is None or free >= self.needed_mib:
            return None
        where = known(engine.storage_path) or "its storage"
        return Refused(
            name=engine.name,
            why=f"{engine.name}'s storage in {where} has {_size(free)} free, and the image needs"
            f" {_size(self.needed_mib)}.",
            remedy=Remedy(
                "Free some space: list the images and remove what nobody needs; or move the storage to"
                " a larger file system.",
                [f"{engine.name} system df", f"{engine.name} image prune --all"],
            ),
        )

    def _unwired(self, engine: Engine) -> Refused:
        """The first finding that says why: a stale or too new specification says more than "none"."""
        paths = [spec.path for spec in known(self.containers.cdi_specs) or []]
        keys = [("CTR-007", path) for path in paths if engine.name == "podman"]
        keys += [("CTR-004", path) for path in paths]
        keys += [("CTR-006", ""), ("CTR-002", engine.name)]
        for key in keys:
            finding = self.findings.get(key)
            if finding is not None and (key[0] != "CTR-006" or engine.name == "podman"):
                return Refused(name=engine.name, why=finding.message, remedy=finding.remedy)
        return Refused(
            name=engine.name,
            why=f"{engine.name} has no way to give a container this machine's GPUs.",
        )

    def _dangers(self, engine: Engine, way: Wiring) -> list[Finding]:
        if engine.name != "docker" or way.kind in ("cdi", "none"):
            return []
        found = [self.findings.get((code, engine.name)) for code in ("CTR-003", "CTR-005")]
        return [finding for finding in found if finding is not None]


def _size(mib: int) -> str:
    return f"{mib / 1024:.1f} GiB" if mib >= 1024 else f"{mib} MiB"
