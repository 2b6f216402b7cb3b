"""Makes the helpers in the tests' folders importable by their own names."""

import gc
import sys
from pathlib import Path

for folder in ("", "unit", "functional", "gpu"):
    sys.path.insert(0, str(Path(__file__).parent / folder))

from alone import no_network  # noqa: E402
from docker_daemon import docker_daemon  # noqa: E402
from podman import base_tar, fresh_podman, podman_world  # noqa: E402
from scratch_home import scratch_home  # noqa: E402

__all__ = [
    "base_tar",
    "docker_daemon",
    "fresh_podman",
    "no_network",
    "podman_world",
    "scratch_home",
]  # fixtures of all tests


def pytest_collection_finish() -> None:
    """What is there by now stays: to look through it for garbage takes a tenth of the time."""
    gc.freeze()
