"""What is known of a fleet's machines while an engine asks them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from ...exit_codes import CouldNotLook
from ..folder import FleetFolder, Member, Outcome
from . import Asked, OnOutcome

ENDED = "the run was ended before its answer"


class Members:
    """on_outcome: called with each machine as soon as its outcome is known; that is ``not-asked`` for those
    still to be asked."""

    def __init__(self, folder: FleetFolder, asked: Asked, on_outcome: OnOutcome) -> None:
        self.found: dict[str, Member] = {}
        self.folder, self.asked, self._on_outcome = folder, asked, on_outcome

    def set(self, member: Member) -> None:
        self.found[member.name] = member
        self._on_outcome(member)

    def put(
        self, name: str, groups: list[tuple[str, str]], outcome: Outcome, reason: str = ""
    ) -> None:
        self.set(Member(name=name, outcome=outcome, reason=reason, groups=groups))

    def take(
        self, name: str, groups: list[tuple[str, str]], found: bytes | tuple[Outcome, str]
    ) -> None:
        """found: what was answered, or why nothing was."""
        if isinstance(found, bytes):
            self.keep(name, groups, found)
        else:
            self.put(name, groups, *found)

    def tick(self) -> None:
        """Called while machines are asked; what it raises ends that."""

    def keep(self, name: str, groups: list[tuple[str, str]], answer: bytes) -> None:
        """Keep a Snapshot. Ctrl-C takes effect afterwards: what is written is also in the roster."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.set(self.folder.keep(name, answer, groups))
        except OSError as error:
            raise self.no_room(error) from None
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def no_room(self, error: OSError) -> CouldNotLook:
        return CouldNotLook(f"{self.folder.path}: {error.strerror}: {self.kept()}")

    def kept(self) -> str:
        answered = sum(member.outcome == "answered" for member in self.found.values())
        return f"{answered} of {len(self.found)} machines' answers are kept there"

    @contextmanager
    def roster(self, engine: str) -> Iterator[None]:
        """However it ends: fleet.json with these machines, and those of earlier runs that were not meant."""
        try:
            yield
        finally:
            if self.found:
                earlier = [one for one in self.folder.members() if one.name not in self.found]
                try:
                    now = self.found.values()
                    anew = [one.name for one in now if one.outcome == "answered"]
                    self.folder.write_roster(engine, [*earlier, *now], anew)
                except OSError as error:
                    raise self.no_room(error) from None
