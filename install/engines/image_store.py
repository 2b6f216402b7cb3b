"""The images in this machine's engines, as a transaction asks for them."""

from __future__ import annotations

from ..engine import EngineImage


class EngineImages:
    """What starts an engine is imported when one is asked: an environment of wheels never does."""

    def has(self, image: EngineImage) -> bool:
        from . import engine_storage

        return engine_storage.has(image)

    def release(self, image: EngineImage) -> None:
        from . import engine_storage

        engine_storage.release(image)
