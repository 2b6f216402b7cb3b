"""kill -9 anywhere, and a disk that is full anywhere: the old environment works, the next run succeeds."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from disk_changes import NEVER, changing, full
from transaction_parts import (
    WHEEL_STEPS,
    DyingJournal,
    die,
    holds,
    in_child,
    install,
    is_tidy,
    nothing_looks_installed_that_is_not,
    request,
    runs,
    start,
    wait,
)

from envcheck.install.transaction import existing
from envcheck.install.transaction.layout import Root

pytestmark = pytest.mark.usefixtures("scratch_home")


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """A root with release 1 in use, to be copied: an environment is never moved, its copy runs."""
    install(tmp_path / "one", "1")
    return tmp_path / "one"


@contextmanager
def watched(root: Path) -> Iterator[None]:
    """``current`` leads to a Python at every moment of the block."""
    stop = root.parent / "stop"

    def look() -> None:
        while not stop.exists():
            (root / "current" / "bin" / "python").resolve(strict=True)
            time.sleep(0.0005)

    child = start(look)
    try:
        yield
    finally:
        stop.touch()
        died = wait(child)
        stop.unlink()
    assert died == 0, f"current led nowhere for a moment: the watcher ended with {died}"


def after_the_kill(
    root: Path, *, swapped: bool | None = None, look: Callable[[Path], str] = holds
) -> None:
    """The environment works, and a second run ends installed with nothing left over."""
    in_use = look(root)
    assert in_use in ("1", "2") if swapped is None else in_use == ("2" if swapped else "1")
    nothing_looks_installed_that_is_not(root)
    assert in_child(lambda: install(root, "2", wait=5)) == 0
    assert look(root) == "2"
    is_tidy(root, versions=2)
    there = existing.look(request(root, "2"))
    assert there is not None and there.already and not there.notes


@pytest.mark.parametrize("when", ["before", "torn", "after"])
def test_killed_at_every_journal_step_the_next_run_succeeds(one: Path, when: str) -> None:
    for number, step in enumerate(WHEEL_STEPS):
        root = one.with_name(f"{when}-{step}")
        shutil.copytree(one, root, symlinks=True)
        journal = DyingJournal(root, number, when)
        with watched(root):
            killed = in_child(lambda: install(root, "2", journal=journal))  # noqa: B023
            assert killed == -signal.SIGKILL, f"{step}: it was not killed, but ended with {killed}"
            after_the_kill(root, swapped=step in ("swapped", "done"), look=runs)


@pytest.mark.heavy
def test_killed_at_every_change_of_a_file_the_next_run_succeeds(one: Path) -> None:
    """Wherever a name comes, goes or changes, and wherever a file is opened for writing."""
    number = 0
    while True:
        root = one.with_name(f"change-{number}")
        shutil.copytree(one, root, symlinks=True)
        with watched(root):
            ended = in_child(lambda: changing(number, die, lambda: install(root, "2")))  # noqa: B023
            if ended == NEVER:
                break
            assert ended == -signal.SIGKILL
            after_the_kill(root)
        shutil.rmtree(root)
        number += 1
    assert number > 40, "there are that many changes at least"


@pytest.mark.heavy
@pytest.mark.parametrize("again", [False, True])
def test_a_disk_that_is_full_at_any_moment_puts_back_or_is_told_of(one: Path, again: bool) -> None:
    """again: every later change fails, too, but for those that remove something."""
    number = 0
    ends = set()
    while True:
        root = one.with_name(f"full-{number}-{again}")
        shutil.copytree(one, root, symlinks=True)
        ended = in_child(lambda: changing(number, full, lambda: install(root, "2"), again))  # noqa: B023
        if ended == NEVER:
            break
        ends.add(ended)
        assert ended in (0, 3, 5), ended
        if ended:
            assert holds(root) == "1"
            assert len(Root(root).versions()) == 1, "nothing of it is left"
        after_the_kill(root, swapped=ended == 0)
        shutil.rmtree(root)
        number += 1
    assert number > 30
    assert ends == {0, 3, 5}, "3: not even the lock could be written"
