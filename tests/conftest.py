"""Makes the helpers in the tests' folders importable by their own names."""

import gc
import sys
from pathlib import Path

for folder in ("", "unit", "functional", "gpu"):
    sys.path.insert(0, str(Path(__file__).parent / folder))

from docker_daemon import docker_daemon  # noqa: E402
from podman import base_tar, fresh_podman, podman_world  # noqa: E402

__all__ = ["base_tar", "docker_daemon", "fresh_podman", "podman_world"]  # fixtures of all tests


def pytest_collection_finish() -> None:
    """What is there by now stays: to look through it for garbage takes a tenth of the time."""
    gc.freeze()
