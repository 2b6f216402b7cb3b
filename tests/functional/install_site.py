"""A user with a podman of their own, for installations in the container mode; and what may stay of one."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from installing import Home
from podman import PodmanWorld


@dataclass
class Site:
    home: Home
    world: PodmanWorld

    @property
    def variables(self) -> dict[str, str]:
        return self.home.variables | self.world.variables

    def envcheck(
        self, *arguments: str | Path, **changes: str
    ) -> subprocess.CompletedProcess[bytes]:
        return self.home.envcheck(*arguments, **(self.world.variables | changes))

    def install(self, *arguments: str | Path, **changes: str) -> dict[str, Any]:
        """The JSON of an installation, whatever it has come to."""
        words = ["install", "--mode", "container", *arguments, "--yes", "--format", "json"]
        done = self.envcheck(*words, **changes)
        result: dict[str, Any] = json.loads(done.stdout)
        assert result["exit_code"] == done.returncode, done.stderr.decode()
        assert b"Traceback" not in done.stderr
        return result

    def environments(self) -> list[dict[str, Any]]:
        listed = self.envcheck("list", "--format", "json")
        found: list[dict[str, Any]] = json.loads(listed.stdout)["environments"]
        return found

    def nothing_is_left(self, before: set[str]) -> bool:
        """No image, container, version or temporary file beyond the images that were there before."""
        versions = [version for one in self.environments() for version in one["versions"]]
        litter = [*self.home.temporary.iterdir(), *(self.world.folder / "tmp").iterdir()]
        alone = self.world.images() == before and not self.world.containers()
        return alone and not versions and not litter

    def uninstall(self, *arguments: str) -> None:
        done = self.envcheck("uninstall", *arguments, "--yes")
        assert done.returncode == 0, done.stderr
