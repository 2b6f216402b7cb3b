"""kill -9 anywhere in a container transaction: what was in use works, the engine keeps nothing unknown."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest
from disk_changes import NEVER, changing
from image_transaction_parts import (
    FakeEngine,
    fake_engine,
    holds_exactly,
    image_in_use,
    image_request,
    install_image,
    nothing_is_held_that_nobody_tells_of,
)
from transaction_parts import IMAGE_STEPS, DyingJournal, die, in_child, is_tidy

from envcheck.install.prune import prune
from envcheck.install.transaction import existing
from envcheck.install.transaction.journal import Journal
from envcheck.install.transaction.layout import Root
from envcheck.install.transaction.uninstall import uninstall

pytestmark = pytest.mark.usefixtures("scratch_home")
engine = pytest.fixture(fake_engine)


@pytest.fixture
def one(tmp_path: Path, engine: FakeEngine) -> Path:
    """A root with release 1 in use, in the engine."""
    install_image(tmp_path / "one", "1", engine)
    return tmp_path / "one"


class Again:
    """The same root and the same engine, as they were, for each round."""

    def __init__(self, root: Path, engine: FakeEngine) -> None:
        self._places = [root, engine.storage]
        for place in self._places:
            shutil.copytree(place, self._kept(place), symlinks=True)

    def __call__(self) -> None:
        for place in self._places:
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(self._kept(place), place, symlinks=True)

    @staticmethod
    def _kept(place: Path) -> Path:
        return place.with_name(f"{place.name}.kept")


def after_the_kill(root: Path, engine: FakeEngine, *, swapped: bool | None = None) -> None:
    in_use = image_in_use(root, engine)
    assert in_use in ("1", "2") if swapped is None else in_use == ("2" if swapped else "1")
    nothing_is_held_that_nobody_tells_of(root, engine)
    assert in_child(lambda: install_image(root, "2", engine, wait=5)) == 0
    assert image_in_use(root, engine) == "2"
    is_tidy(root, versions=2)
    holds_exactly(root, engine, {"1", "2"})
    there = existing.look(image_request(root, "2"))
    assert there is not None and there.already and not there.notes


@pytest.mark.parametrize("when", ["before", "torn", "after"])
def test_killed_at_every_journal_step(one: Path, engine: FakeEngine, when: str) -> None:
    again = Again(one, engine)
    for number, step in enumerate(IMAGE_STEPS):
        again()
        journal = DyingJournal(one, number, when)
        killed = in_child(lambda: install_image(one, "2", engine, journal=journal))  # noqa: B023
        assert killed == -signal.SIGKILL, f"{step}: it was not killed, but ended with {killed}"
        after_the_kill(one, engine, swapped=step in ("swapped", "done"))


def test_what_was_pulled_for_another_release_goes(one: Path, engine: FakeEngine) -> None:
    journal = DyingJournal(one, IMAGE_STEPS.index("configured"), "before")
    assert in_child(lambda: install_image(one, "2", engine, journal=journal)) == -9
    assert "2" in engine.images()
    install_image(one, "3", engine)
    holds_exactly(one, engine, {"1", "3"})
    assert [entry.step for entry in Journal(Root(one).journal).entries()].count("undone") == 1


@pytest.mark.heavy
@pytest.mark.parametrize("of_the_user", [False, True])
def test_killed_at_every_change_of_a_file(one: Path, engine: FakeEngine, of_the_user: bool) -> None:
    """The engine's own files, too. of_the_user: the image was there before, by a name of theirs."""
    if of_the_user:
        engine.add("2", "mine:1")
    again, number = Again(one, engine), 0
    while True:
        again()
        ended = in_child(lambda: changing(number, die, lambda: install_image(one, "2", engine)))  # noqa: B023
        if ended == NEVER:
            break
        assert ended == -signal.SIGKILL
        in_use = image_in_use(one, engine)
        assert in_use in ("1", "2")
        nothing_is_held_that_nobody_tells_of(one, engine)
        if not of_the_user:
            after_the_kill(one, engine)
        assert in_child(lambda: uninstall(Root(one))) == 0
        prune()
        assert engine.images() == ({"2": {"mine:1"}} if of_the_user else {})
        number += 1
    assert number > 30, "there are that many changes at least"


@pytest.mark.heavy
def test_killed_at_every_change_while_it_is_removed(one: Path, engine: FakeEngine) -> None:
    install_image(one, "2", engine)
    again, number = Again(one, engine), 0
    while True:
        again()
        ended = in_child(lambda: changing(number, die, lambda: uninstall(Root(one))))  # noqa: B023
        if ended == NEVER:
            break
        assert ended == -signal.SIGKILL
        nothing_is_held_that_nobody_tells_of(one, engine)
        if Root(one).owner.exists():
            assert in_child(lambda: uninstall(Root(one))) == 0
        assert engine.images() == {}
        number += 1
    assert number >= 7  # each change of the disk while it is removed
