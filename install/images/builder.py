"""Builds a container's version for the transaction: the image into the engine, and how it is started."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ...exit_codes import PutBack
from .. import durable
from ..container.prepare import Prepared, held_as, wiring_sentence
from ..engine import EngineImage, Start
from ..engines import engine_storage, starting
from ..plan.models import ImagePlan, StepName
from ..registry import client as registry
from ..transaction import engine_images
from ..transaction.interfaces import BuildResult, Details, Stage
from ..transaction.layout import Version
from . import archive
from .archive_files import ArchiveFiles
from .mirror import Files, MirrorServer

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
        held = msgspec.structs.replace(held, before=self._there)
        self._held = engine_images.hold(version, held)
        return {"tag": self._held.tag or self._held.image_id}

    def _pull(self, version: Version) -> Details:
        prepared, held = self._prepared, self._held
        assert held is not None, "the stage before"
        tmp = version.own / "tmp"
        self._step("fetch")
        if prepared.archive is not None and not self._there:
            prepared.archive.verify()
        elif not self._there:
            prepared.fetcher.want_all(registry.layers(prepared.image))
        self._held = self._load(held, tmp) if prepared.engine.loads else self._take(held, tmp)
        prepared.meter.keep()
        engine_images.hold(version, self._held)
        return {"id": self._held.image_id}

    def _take(self, held: EngineImage, tmp: Path) -> EngineImage:
        """The engine pulls from this process, as the layers come."""
        prepared = self._prepared
        files: Files = prepared.fetcher
        if prepared.archive is not None:
            files = ArchiveFiles(prepared.archive)
        with MirrorServer(prepared.image, files) as mirror:
            try:
                return engine_storage.pull(held, prepared.image, mirror, tmp, there=self._there)
            except PutBack:
                if not mirror.again:
                    raise
                # The engine had read of a layer that came with wrong bytes, and that comes anew.
                return engine_storage.pull(held, prepared.image, mirror, tmp)

    def _load(self, held: EngineImage, tmp: Path) -> EngineImage:
        """For an engine that does not see this machine's loopback."""
        prepared = self._prepared
        if self._there:
            engine_storage.tag(held)
            return held
        if prepared.archive is not None:
            prepared.archive.adopt(prepared.store)
        prepared.fetcher.wait()
        tmp.mkdir(parents=True, exist_ok=True)
        file = tmp / "image.tar"
        try:
            archive.write(file, prepared.image, lambda blob: prepared.store.path(blob.sha256))
            return engine_storage.load(held, prepared.image, file, tmp)
        finally:
            file.unlink(missing_ok=True)

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
