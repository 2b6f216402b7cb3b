"""What engines and NVIDIA's tools say where a container with GPUs does not start, and what helps. CSV."""

from __future__ import annotations

import msgspec

from . import rows


class EngineError(msgspec.Struct, frozen=True):
    words: str  # that stand in it: "permission denied && /dev/nvidia"
    meaning: str  # completes "The container does not start: ..."
    remedy: str
    listed: str = msgspec.field(name="commands")

    @property
    def commands(self) -> tuple[str, ...]:
        """ "@WHAT" stands for the system's own, {image} for the image."""
        return tuple(command.strip() for command in self.listed.split(";;"))


def explain(words: str) -> EngineError | None:
    """What an engine's words mean; None where that is not known."""
    text = words.lower()
    for row in rows("engine_errors", EngineError):
        if all(part.strip() in text for part in row.words.split("&&")):
            return row
    return None
