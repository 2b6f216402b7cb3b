"""Tools that keep NVIDIA's modules or devices away, known by the files that they write."""

from __future__ import annotations

import msgspec

from . import rows


class Writer(msgspec.Struct, frozen=True):
    """path, text: patterns of a file's path and line. writer: "" for anybody.

    steps: commands, or @remove, @comment and @boot-options, with which the line goes.
    """

    path: str
    text: str
    writer: str
    remedy: str
    steps: str = msgspec.field(name="commands")
    source: str

    @property
    def commands(self) -> list[str]:
        return [step.strip() for step in self.steps.split(";;")]


def config_writers() -> tuple[Writer, ...]:
    """The rows; the first that fits a line counts, and the last fits every line."""
    return rows("config_writers", Writer)
