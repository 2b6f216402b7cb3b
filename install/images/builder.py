"""Builds a container's version for the transaction: the image into the engine, and how it is started."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ...facts.view import known
from .. import durable
from ..container.prepare import Prepared, held_as, wiring_sentence
from ..engine import EngineImage, Start
from ..engines import engine_storage, pull_progress, starting
from ..engines.pull_progress import PullProgress
from ..plan.models import ImagePlan, StepName
from ..transaction import engine_images
from ..transaction.interfaces import BuildResult, Details, Stage
from ..transaction.layout import Version

_FILES = {"apptainer": "image.sif", "enroot": "image.sqsh"}


class ImageBuilder:
    """The transaction's Builder for an image."""

    def __init__(
        self, prepared: Prepared, plan: ImagePlan, step: Callable[[StepName], None]
    ) -> None:
        self._prepared = prepared
        self._plan = plan
        self._step = step
        self._held: EngineImage | None = None
        self._there = False  # in the engine, by whomever
        self._start: Start | None = None

    def about(self) -> Details:
        return {
            "engine": self._prepared.engine.name,
            "image": self._prepared.image.pinned,
        }

    def stages(self) -> Sequence[Stage]:
        return [
            Stage("held", self._hold),
            Stage("pulled", self._pull),
            Stage("configured", self._configure),
        ]

    def result(self) -> BuildResult:
        prepared, image = self._prepared, self._prepared.image
        assert self._held is not None and self._start is not None, "all stages are done"
        return BuildResult(
            engine=prepared.engine.name,
            installer=self._plan.engine,
            image=image.reference,
            image_digest=image.manifest.digest,
            image_bytes=engine_storage.size(self._held),
            wiring=wiring_sentence(prepared.engine),
            notes=self._start.remarks,
        )

    def _hold(self, version: Version) -> Details:
        """Say what the engine is about to get, before it does."""
        self._step("resolve")
        engine = self._prepared.engine
        tag = engine_images.tag_of(self._prepared.root.path.name, version.id)
        file = _FILES.get(engine.name, "")
        held = held_as(
            engine, self._prepared.image, str(version.directory / file) if file else "", tag
        )
        self._there = not engine.files and engine_storage.has(held)
        name = self._prepared.image.tagged
        if not (
            engine_images.gave(held.engine, name) or (name and engine_storage.is_free(held, name))
        ):
            name = ""
        held = msgspec.structs.replace(held, before=self._there, name=name)
        self._held = engine_images.hold(version, held)
        return {"tag": self._held.tag or self._held.image_id}

    def _pull(self, version: Version) -> Details:
        prepared, held = self._prepared, self._held
        assert held is not None, "the stage before"
        tmp = version.own / "tmp"
        self._step("fetch")
        if self._there:
            engine_storage.name(held)
            self._held = held
        else:
            self._held = self._load(held, tmp) if prepared.archive else self._fetch(held, tmp)
        prepared.meter.keep()
        engine_images.hold(version, self._held)
        return {"id": self._held.image_id}

    def _fetch(self, held: EngineImage, tmp: Path) -> EngineImage:
        """The engine pulls it from its registry."""
        prepared = self._prepared
        unseen = held.engine == "docker" or known(prepared.engine.engine.remote) is not False
        progress = PullProgress(
            prepared.image,
            held.engine,
            tmp / engine_storage.FOLDER,
            prepared.meter,
            pull_progress.SILENCE_UNSEEN if unseen else pull_progress.SILENCE,
        )
        return engine_storage.pull(held, prepared.image, prepared.access, tmp, progress)

    def _load(self, held: EngineImage, tmp: Path) -> EngineImage:
        """The engine loads it from the archive that the user named."""
        archive = self._prepared.archive
        assert archive is not None, "asked before"
        tmp.mkdir(parents=True, exist_ok=True)
        with archive.for_engine(held.engine, tmp) as file:
            return engine_storage.load(held, self._prepared.image, file, tmp)

    def _configure(self, version: Version) -> Details:
        self._step("wire")
        prepared = self._prepared
        assert self._held is not None, "the stage before"
        self._start = starting.start(
            prepared.engine,
            self._held,
            prepared.image,
            prepared.snapshot,
            prepared.choice.stack.environment,
        )
        data = msgspec.json.format(msgspec.json.encode(self._start), indent=1)
        durable.write(version.start, data + b"\n")
        return {}
