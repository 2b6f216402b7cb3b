"""What a made-up machine's path may hold."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Link:
    """A symbolic link, stored as it is."""

    to: str


@dataclass(frozen=True)
class File:
    """A file that is not readable by all."""

    content: str | bytes
    mode: int


@dataclass(frozen=True)
class Library:
    """A shared library made of C; ``source`` is a name of libraries.SOURCES."""

    source: str
    defines: tuple[str, ...] = ()


Content = str | bytes | Link | File | Library | None
