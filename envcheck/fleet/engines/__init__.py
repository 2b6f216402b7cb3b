"""The engines that ask many machines at once: Ansible, Slurm. Each fills a fleet's directory.

An engine sends the one-file collector through its own connection to each machine's standard input
(``python3 - ARGUMENTS``), so that nothing of it stays there, and gives each answer to ``FleetFolder.keep`` as
soon as it is there: what has come stays, whatever happens to the others and to envcheck.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..folder import Member


class Asked(NamedTuple):
    """What is asked of each machine. arguments: of the one-file collector: ``["--level", "quick",
    "--target", "/opt/tf"]``. deadline: seconds that a machine may take, once it was reached. for_each:
    the arguments name the machine and all that are asked, as NAME and PEERS, which the engine fills in.
    afterwards: a command for the machine's shell, whose output follows."""

    arguments: Sequence[str]
    deadline: float
    for_each: bool = False
    afterwards: str = ""

    def filled(self, name: str, peers: Sequence[tuple[str, str]]) -> Asked:
        """For one machine. peers: (name, address) of each."""
        if not self.for_each:
            return self
        words = [
            word.replace(f'"{NAME}"', json.dumps(name)).replace(f'"{PEERS}"', json.dumps(peers))
            for word in self.arguments
        ]
        return self._replace(arguments=words)


NAME, PEERS = "@NAME@", "@PEERS@"


# Called with each machine as soon as it is known what became of it.
OnOutcome = Callable[[Member], None]
