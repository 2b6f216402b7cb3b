"""Builds a container's version for the transaction: the image into the engine, and how it is started."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...facts.snapshot import Snapshot
from .. import durable
from ..engine import EngineImage, Start
from ..engines import engine_storage, starting
from ..engines.choose import EngineChoice
from ..fit.models import ImageChoice
from ..mode import Reporter
from ..plan.models import ImagePlan
from ..registry.image import Image, PullOptions
from ..transaction import engine_images
from ..transaction.interfaces import Stage
from ..transaction.layout import Version
from ..transaction.record import Built


class ResolvedImage(msgspec.Struct, frozen=True, kw_only=True):
    """What will be installed, to the byte, and what holds it.

    held: the engine has the image already. options: what the engine needs for a pull.
    """

    choice: ImageChoice
    image: Image
    engine: EngineChoice
    held: bool
    options: PullOptions


class ImageBuilder:
    """The transaction's Builder for an image."""

    def __init__(
        self,
        resolved: ResolvedImage,
        plan: ImagePlan,
        snapshot: Snapshot,
        reporter: Reporter,
    ) -> None:
        self._resolved = resolved
        self._plan = plan
        self._snapshot = snapshot
        self._reporter = reporter
        self._held: EngineImage | None = None
        self._there = False  # in the engine
        self._start: Start | None = None

    def stages(self) -> Sequence[Stage]:
        return [
            ("held", self._hold),
            ("pulled", self._pull),
            ("configured", self._configure),
        ]

    def result(self) -> Built:
        resolved, image = self._resolved, self._resolved.image
        assert self._held is not None and self._start is not None, "all stages are done"
        return Built(
            engine=resolved.engine.name,
            installer=self._plan.engine,
            image=image.reference,
            image_digest=image.manifest.digest,
            image_bytes=engine_storage.size(self._held),
            wiring=resolved.engine.wired,
            notes=self._start.remarks,
        )

    def _hold(self, version: Version) -> None:
        """Say what the engine is about to get, before it does."""
        self._reporter.step("resolve")
        engine, image = self._resolved.engine, self._resolved.image
        stored = engine_storage.find(engine.program, image.config.digest)
        tags = [] if stored is None else stored.tags
        self._there = stored is not None
        self._held = EngineImage(
            engine=engine.name,
            program=engine.program,
            image_id=image.config.digest,
            tag=engine_images.tag_of(version.directory.parent, version.id),
            reference=image.pinned,
            before=self._there and not any(tag.startswith(engine_images.PREFIX) for tag in tags),
        )
        engine_images.hold(version, self._held)

    def _pull(self, version: Version) -> None:
        """The engine pulls the image from its registry, unless it has it."""
        self._reporter.step("fetch")
        resolved, image, held = self._resolved, self._resolved.image, self._held
        assert held is not None, "the stage before"
        tmp = version.own / "tmp"
        if self._there:
            engine_storage.name(held)
        else:
            held = engine_storage.pull(held, image, resolved.options, tmp, self._shown)
        self._held = held
        engine_images.hold(version, held)

    def _shown(self, lines: list[str]) -> None:
        """The engine's own progress."""
        if lines:
            self._reporter.progress(lines[-1].strip())

    def _configure(self, version: Version) -> None:
        self._reporter.step("wire")
        resolved = self._resolved
        assert self._held is not None, "the stage before"
        self._start = starting.start(
            resolved.engine,
            self._held.image_id,
            resolved.image.reference,
            resolved.image.entrypoint,
            self._snapshot,
            resolved.choice.stack.environment,
        )
        durable.dump(version.start, self._start)
