"""What engines and NVIDIA's tools say where a container with GPUs does not start, and what helps. CSV."""

from __future__ import annotations

from typing import NamedTuple

from . import table


class EngineError(NamedTuple):
    meaning: str  # completes "The container does not start: ..."
    remedy: str
    commands: tuple[str, ...]  # "@WHAT" stands for the system's own, {image} for the image


def explain(words: str) -> EngineError | None:
    """What an engine's words mean; None where that is not known."""
    text = words.lower()
    for row in table("engine_errors"):
        if all(part.strip() in text for part in row["words"].split("&&")):
            commands = tuple(command.strip() for command in row["commands"].split(";;"))
            return EngineError(row["meaning"], row["remedy"], commands)
    return None
