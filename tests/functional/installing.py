"""Runs `envcheck install` in a home of its own, and reads what it left there."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

import pytest
import tomli
from cli import envcheck, environment
from packaging.utils import canonicalize_name
from packaging.version import Version
from processes import PATIENCE, ran


@dataclass(frozen=True)
class Home:
    """A user's home: where envcheck keeps its cache, its environments and its state."""

    folder: Path

    @property
    def variables(self) -> dict[str, str]:
        names = {"XDG_CACHE_HOME": "cache", "XDG_DATA_HOME": "data", "XDG_STATE_HOME": "state"}
        places = {name: str(self.folder / part) for name, part in names.items()}
        return {"HOME": str(self.folder), "TMPDIR": str(self.temporary)} | places

    @property
    def temporary(self) -> Path:
        folder = self.folder / "tmp"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def envcheck(
        self, *arguments: str | Path, seconds: float = PATIENCE, **changes: str
    ) -> subprocess.CompletedProcess[bytes]:
        return envcheck(*arguments, timeout=seconds, **(self.variables | changes))

    def install(
        self, *arguments: str | Path, seconds: float = PATIENCE, **changes: str
    ) -> Environment:
        """An installation that has to succeed."""
        result = self.envcheck(
            "install", "--mode", "wheel", *arguments, "--yes", "--format", "json",
            seconds=seconds, **changes,
        )  # fmt: skip
        words = result.stderr.decode() + result.stdout.decode()
        assert result.returncode == 0, words
        return Environment(self, json.loads(result.stdout), result.stderr.decode())

    def root(self, name: str) -> Path:
        """The directory that holds an environment's versions."""
        return self.folder / "data" / "envcheck" / "envs" / name


@dataclass(frozen=True)
class Environment:
    """What one installation left."""

    home: Home
    report: dict[str, Any]  # its JSON
    progress: str  # its stderr

    @property
    def prefix(self) -> Path:
        """By the record that `envcheck doctor` reads."""
        record = self.home.folder / "state" / "envcheck" / "last-install.json"
        return Path(json.loads(record.read_text())["prefix"])

    @property
    def python(self) -> Path:
        return self.prefix / "bin" / "python"

    def run(self, *arguments: str, **changes: str) -> str:
        done = ran(
            [self.python, *arguments], text=True, env=environment(**(self.home.variables | changes))
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def lock(self) -> dict[str, Any]:
        return tomli.loads((self.prefix / ".envcheck" / "pylock.toml").read_text())

    @property
    def doctor(self) -> dict[str, dict[str, Any]]:
        """What the doctor said of the new environment before it was called installed, by code."""
        report = json.loads((self.prefix / ".envcheck" / "doctor.json").read_text())
        return {result["code"]: result for result in report["results"]}

    @property
    def site_packages(self) -> Path:
        (folder,) = self.prefix.glob("lib/python3.*/site-packages")
        return folder

    def installed(self) -> dict[str, Version]:
        """Normalised names and versions, as the environment's own metadata has them."""
        found = {}
        for path in self.site_packages.glob("*-info/METADATA"):
            fields = HeaderParser().parsestr(path.read_text(errors="replace"))
            found[str(canonicalize_name(fields["Name"]))] = Version(fields["Version"])
        return found


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")
