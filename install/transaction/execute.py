"""Installs: builds a new version beside the others, has it verified, and swaps it in; or undoes all of it.

Every step is written down when it is done, so that after a kill the next run knows what is half done.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from ... import __version__
from ...exit_codes import PutBack
from .. import durable
from ..plan.models import Plan, StepName
from ..request import Request
from ..signals import ending_raises, held_back
from . import (
    current,
    engine_images,
    existing,
    file_list,
    guard,
    layout,
    record,
    recovery,
    removal,
    roots,
)
from .interfaces import Artifact, Builder, Tell, Verification, Verify
from .journal import Journal
from .layout import Root, Version
from .lock import locked
from .record import Built, Installed, Record

TellStep = Callable[[StepName], None]


def execute(
    plan: Plan,
    artifact: Artifact,
    request: Request,
    builder: Builder,
    verify: Verify,
    *,
    wait: float | None = None,
    tell: Tell = lambda sentence: None,
    step: TellStep = lambda name: None,
    fresh: bool = False,
    journal: Journal | None = None,
) -> Installed:
    """Install what the plan says, or leave everything as it was. Only from the main thread.

    wait: seconds to wait for another envcheck in the same root; None: until it is done. step: called with
    each of the plan's steps that begins here. fresh: also where a version by the same lock is there.

    Raises UsageError and Cannot where the root is not ours or cannot be locked: nothing was touched.
    Then PutBack, NotPutBack; KeyboardInterrupt and SystemExit after everything was undone.
    """
    root = Root(Path(plan.directory), any_owner=request.allow_other_owner)
    journal = journal or Journal(root.journal)
    guard.look(root)
    first = not os.path.lexists(root.own)
    name = f"envcheck install {plan.stack}"
    with ending_raises(), locked(root, name, wait=wait, tell=tell, make=True):
        recovery.recover(root, journal, tell)
        if not fresh and (there := existing.in_root(root, request, artifact.digest)):
            return _there_already(root, journal, there, request)
        with suppress(OSError):  # done again after the swap; here, so that `list` finds what fails
            roots.register(root)
        transaction = _Transaction(root, journal, plan, artifact, request)
        try:
            transaction.build(builder, verify, step)
            step("swap")
            with held_back():
                return transaction.commit()
        except BaseException as error:
            with held_back():
                recovery.undo(root, journal, transaction.version, plan.called, error, tell)
                if first and not root.versions():
                    recovery.dissolve(root)
            raise


class _Transaction:
    """One version on its way from nothing to ``current``."""

    def __init__(
        self, root: Root, journal: Journal, plan: Plan, artifact: Artifact, request: Request
    ) -> None:
        self.root = root
        self.journal = journal
        self.plan = plan
        self.artifact = artifact
        self.request = request
        self.version = root.version(layout.free_id(root, plan.version))
        self.before = root.current_id() or ""

    def build(self, builder: Builder, verify: Verify, step: TellStep) -> None:
        """Everything that does not touch what is in use."""
        version, journal, plan = self.version, self.journal, self.plan
        began = layout.now()
        details = {"lock": self.artifact.digest, "stack": plan.stack, "release": plan.release}
        journal.append(version.id, "begun", **details, envcheck=__version__)
        version.logs.mkdir(parents=True)
        durable.write(version.own / self.artifact.file_name, self.artifact.text.encode())
        for name, act in builder.stages():
            act(version)
            hide_activation(version)  # also what a package's scripts have brought
            journal.append(version.id, name)
        self._refuse_foreign_records()
        step("verify")
        verdict = self._verify(verify)
        self._write_record(builder.result(), verdict, began)
        journal.append(version.id, "verified", verdict=verdict.health.verdict)

    def commit(self) -> Installed:
        """Swap it in. Raises Cannot where that fails, and then nothing was changed."""
        reveal_activation(self.version)
        notes = current.use(self.root, self.journal, self.version.id)
        engine_images.take_over(self.version)
        noted = record.read(self.version)
        assert noted is not None, "it was written a moment ago"
        return Installed(
            directory=str(self.root.path),
            version=self.version.id,
            prefix=str(self.root.current),
            already=False,
            before=self.before,
            record=noted,
            notes=[*noted.notes, *notes],
        )

    def _refuse_foreign_records(self) -> None:
        """Raises PutBack where a package has written what envcheck alone writes. An image cannot."""
        if self.request.mode == "container":
            return
        version, name = self.version, self.artifact.file_name
        later = (version.record, version.files, version.doctor, *version.of_image)
        foreign = [path.name for path in later if os.path.lexists(path)]
        if durable.read(version.own / name) != self.artifact.text.encode():
            foreign.append(name)
        if foreign:
            with guard.directory(version.own) as own:  # or an engine would be asked for an image
                for path in foreign:
                    removal.wipe(path, own, version.own)
            raise PutBack(
                f"a package has written {layout.OWN}/{foreign[0]} into the environment, where envcheck keeps"
                " its own records"
            )

    def _verify(self, verify: Verify) -> Verification:
        old = self.root.version(self.before) if self.before else None
        beside = old.directory if old is not None and old.is_directory else None
        verdict = verify(self.version.directory, beside)
        durable.write(self.version.doctor, verdict.report)
        if verdict.snapshot:
            durable.write(self.version.own / "snapshot.json", verdict.snapshot)
        if verdict.failures:
            raise PutBack("the doctor found new problems in it: " + "; ".join(verdict.failures))
        return verdict

    def _write_record(self, built: Built, verdict: Verification, began: str) -> None:
        version = self.version
        file_list.write(version)
        used = file_list.usage([version.directory])
        whole = Record(
            **msgspec.structs.asdict(built),
            schema=record.SCHEMA,
            version=version.id,
            stack=self.plan.stack,
            release=self.plan.release,
            title=self.plan.title,
            request=record.public(self.request),
            inputs=record.inputs(self.request),
            mode=self.request.mode,
            lock=self.artifact.digest,
            versions=self.artifact.versions,
            building=self.artifact.building,
            envcheck=__version__,
            created_at=began,
            verified_at=layout.now(),
            bytes_total=used.total,
            bytes_shared=used.shared,
            health=verdict.health,
        )
        record.write(version, whole)


def _there_already(root: Root, journal: Journal, there: Installed, request: Request) -> Installed:
    """A version by this lock: no second copy of it is made. The next equal request finds it at once."""
    noted = there.record
    if there.version == there.before:
        notes = [*there.notes, *recovery.remember(root)]
    else:
        again = f"it was installed before, and is in use again in place of {there.before or 'none'}"
        notes = [again, *there.notes, *current.use(root, journal, there.version)]
    with suppress(OSError):
        noted = msgspec.structs.replace(
            noted, request=record.public(request), inputs=record.inputs(request)
        )
        if noted != there.record:
            record.write(root.version(there.version), noted)
    return msgspec.structs.replace(there, record=noted, notes=notes)


def hide_activation(version: Version) -> None:
    """Move bin/activate* out of sight until the version is verified; those hidden before are replaced."""
    if (version.directory / "bin").is_dir():
        version.activate.mkdir(parents=True, exist_ok=True)
        _move_activation(version.directory / "bin", version.activate)


def reveal_activation(version: Version) -> None:
    if version.activate.is_dir():
        _move_activation(version.activate, version.directory / "bin")
        version.activate.rmdir()


def _move_activation(source: Path, target: Path) -> None:
    for name in sorted(os.listdir(source)):  # noqa: PTH208 - names are all that is asked for
        if name.lower().startswith(("activate", "deactivate")):  # activate.csh, Activate.ps1 …
            (source / name).replace(target / name)
