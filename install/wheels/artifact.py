"""A lock as what a transaction installs."""

from __future__ import annotations

from functools import cached_property

from .. import pylock
from ..lockfile import Lockfile


class LockedPackages:
    """The transaction's Artifact of the wheel mode."""

    file_name = "pylock.toml"

    def __init__(self, lock: Lockfile) -> None:
        self._lock = lock

    @cached_property
    def digest(self) -> str:
        return pylock.digest(self._lock)

    @property
    def versions(self) -> dict[str, str]:
        return {package.name: package.version for package in self._lock.packages}

    @property
    def building(self) -> dict[str, str]:
        installed = {package.file.sha256 for package in self._lock.packages}
        return {
            package.name: package.version
            for package in self._lock.building
            if package.file.sha256 not in installed
        }

    def text(self) -> str:
        return pylock.text(self._lock)
