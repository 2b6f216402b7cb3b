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
from . import current, existing, file_list, guard, layout, record, recovery, removal, roots
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
    root = Root(Path(plan.directory))
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
        version, before = root.version(layout.free_id(root, plan.version)), root.current_id() or ""
        try:
            began = layout.now()
            _build(version, journal, plan, artifact, builder)
            if request.mode == "wheel":  # an image cannot write there
                _refuse_foreign_records(version, artifact)
            step("verify")
            verdict = _verified(root, version, before, verify)
            whole = _record(version, plan, artifact, request, builder.result(), verdict, began)
            record.write(version, whole)
            journal.append(version.id, "verified", verdict=verdict.health.verdict)
            step("swap")
            with held_back():
                notes = current.use(root, journal, version.id)
                return _installed(root, version, before, whole, [*whole.notes, *notes])
        except BaseException as error:
            with held_back():
                recovery.undo(root, journal, version, plan.called, error, tell)
                if first and not root.versions():
                    recovery.dissolve(root)
            raise


def _build(
    version: Version, journal: Journal, plan: Plan, artifact: Artifact, builder: Builder
) -> None:
    details = {"lock": artifact.digest, "stack": plan.stack, "release": plan.release}
    journal.append(version.id, "begun", **details, envcheck=__version__)
    version.logs.mkdir(parents=True)
    durable.write(version.own / artifact.file_name, artifact.text.encode())
    for name, act in builder.stages():
        act(version)
        journal.append(version.id, name)


def _refuse_foreign_records(version: Version, artifact: Artifact) -> None:
    """Raises PutBack where a package has written what envcheck alone writes."""
    name = artifact.file_name
    later = (version.record, version.files, version.doctor, *version.of_image)
    foreign = [path.name for path in later if os.path.lexists(path)]
    if durable.read(version.own / name) != artifact.text.encode():
        foreign.append(name)
    if foreign:
        if version.is_directory:  # or an engine would be asked for an image
            for path in foreign:
                removal.wipe(version.own / path)
        raise PutBack(
            f"a package has written {layout.OWN}/{foreign[0]} into the environment, where envcheck keeps"
            " its own records"
        )


def _verified(root: Root, version: Version, before: str, verify: Verify) -> Verification:
    old = root.version(before) if before else None
    beside = old.directory if old is not None and old.is_directory else None
    verdict = verify(version.directory, beside)
    durable.write(version.doctor, verdict.report)
    if verdict.snapshot:
        durable.write(version.own / "snapshot.json", verdict.snapshot)
    if verdict.failures:
        raise PutBack("the doctor found new problems in it: " + "; ".join(verdict.failures))
    return verdict


def _record(
    version: Version,
    plan: Plan,
    artifact: Artifact,
    request: Request,
    built: Built,
    verdict: Verification,
    began: str,
) -> Record:
    """What is known of it; the list of its files is written, too."""
    file_list.write(version)
    used = file_list.usage([version.directory])
    return Record(
        **msgspec.structs.asdict(built),
        schema=record.SCHEMA,
        version=version.id,
        stack=plan.stack,
        release=plan.release,
        title=plan.title,
        request=record.public(request),
        inputs=record.inputs(request),
        mode=request.mode,
        lock=artifact.digest,
        versions=artifact.versions,
        building=artifact.building,
        envcheck=__version__,
        created_at=began,
        verified_at=layout.now(),
        bytes_total=used.total,
        bytes_shared=used.shared,
        health=verdict.health,
    )


def _installed(
    root: Root, version: Version, before: str, noted: Record, notes: list[str]
) -> Installed:
    return Installed(
        directory=str(root.path),
        version=version.id,
        prefix=str(root.current),
        already=False,
        before=before,
        record=noted,
        notes=notes,
    )


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
