"""What a lock may say: its words end up in Dockerfiles, settings, file names and commands to paste.

A lock that was read may come from anybody. What envcheck itself writes fits these patterns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .lockfile import LockedPackage, Lockfile

_NAME = re.compile(r"[a-z0-9-]{1,200}")
_RELEASE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]{0,100}")
_PYTHON = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}")
_ARCHITECTURE = re.compile(r"[A-Za-z0-9_]{1,40}")
_TIME = re.compile(r"(?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)?", re.ASCII)
_PROVIDED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]{0,200}")
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]{0,400}")
_URL = re.compile(r"(?:(?:https?|file)://\S{1,4000})?")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def problem(lock: Lockfile) -> str:
    """The first thing in a lock that envcheck does not write: 'its release is "…"'; "" for a good one."""
    for what, pattern, value in _values(lock):
        if not (pattern.fullmatch(value) and value.isprintable()):
            return f"{what} is {value[:100]!a}"
    return ""


def _values(lock: Lockfile) -> Iterator[tuple[str, re.Pattern[str], str]]:
    yield "its stack", _NAME, lock.stack
    yield "its release", _RELEASE, lock.release
    yield "its Python", _PYTHON, lock.python
    yield "its architecture", _ARCHITECTURE, lock.architecture
    yield "its created-at", _TIME, lock.created_at
    for name in lock.provided:
        yield "what is provided", _PROVIDED, name
    yield from _of_packages([*lock.packages, *lock.building])


def _of_packages(packages: Iterable[LockedPackage]) -> Iterator[tuple[str, re.Pattern[str], str]]:
    for one in packages:
        yield "a package's name", _NAME, one.name
        of = f"package {one.name}:"
        yield f"{of} its version", _VERSION, one.version
        yield f"{of} its index", _URL, one.index
        yield f"{of} its file's name", _FILE, one.file.name
        yield f"{of} its file's address", _URL, one.file.url
        yield f"{of} its file's sha256", _SHA256, one.file.sha256
