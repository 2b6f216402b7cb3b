"""Makes the helpers in the tests' folders importable by their own names, and pytest's hooks."""

import gc
import os
import sys
from pathlib import Path

import pytest
from _pytest.terminal import TerminalReporter
from hypothesis import HealthCheck, settings

for folder in ("", "unit", "functional", "gpu"):
    sys.path.insert(0, str(Path(__file__).parent / folder))

import ending  # noqa: E402
import selection  # noqa: E402
import signals  # noqa: E402
from alone import no_network  # noqa: E402
from browser import chromium  # noqa: E402
from docker_daemon import docker_daemon  # noqa: E402
from installing import home  # noqa: E402
from podman import base_tar, nothing_left, podman_world, users_podman  # noqa: E402
from scratch_home import scratch_home  # noqa: E402

__all__ = [
    "base_tar",
    "chromium",
    "docker_daemon",
    "home",
    "no_network",
    "nothing_left",
    "podman_world",
    "scratch_home",
    "users_podman",
]  # fixtures of all tests

signals.take_back()
# How long an example takes is the machine's affair.
settings.register_profile("envcheck", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("envcheck")
sys.dont_write_bytecode = False  # else every run, and every worker of it, rewrites all asserts anew
left_out: dict[str, int] = {}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    selection.mark_by_fixture(items)
    left_out.update(selection.leave_out(config, items))
    if hasattr(config, "workeroutput"):
        config.workeroutput["left_out"] = left_out


def pytest_collection_finish() -> None:
    """What is there by now stays: to look through it for garbage takes a tenth of the time."""
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """Every worker of xdist has left out the same."""
    left_out.update(getattr(node, "workeroutput", {}).get("left_out", {}))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    return min(len(os.sched_getaffinity(0)) + 2, 8)  # some of them wait for a process to end


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    ending.write(terminalreporter, left_out)
