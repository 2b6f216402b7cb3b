"""Ansible: runs a playbook with the user's own inventory, connection, become and vault settings as they are.

Our callback (fleet/ansible_content) writes a line of JSON for each event into a file, which is read while
Ansible works; Ansible itself writes nothing on the terminal but its questions for passwords.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ... import json_text, safe_text, scratch
from ...exit_codes import CouldNotLook, UsageError
from ...install import processes

CONTENT = Path(__file__).parent.parent / "ansible_content"
COLLECT = CONTENT / "collect.yml"
NETWORK = CONTENT / "network.yml"

# What of the user's settings would disturb what is ours; all others are theirs.
_ENVIRONMENT = {
    "ANSIBLE_STDOUT_CALLBACK": "envcheck_events",
    "ANSIBLE_RETRY_FILES_ENABLED": "0",
    "ANSIBLE_NOCOLOR": "1",
    "ANSIBLE_FORCE_COLOR": "0",
}

# What ansible-playbook's last words begin with, by its age.
_ERRORS = ("ERROR!", "[ERROR]:", "ansible-playbook: error:")


class Inventory(NamedTuple):
    """Which machines, in the user's words. further: other options of ansible-playbook, as they are."""

    sources: Sequence[str]
    limit: str | None = None
    forks: int | None = None
    become: bool = False
    further: Sequence[str] = ()
    engine: str = "ansible"

    def argv(self) -> list[str]:
        argv = [word for source in self.sources for word in ("-i", source)]
        argv += ["--limit", self.limit] if self.limit is not None else []
        argv += ["--forks", str(self.forks)] if self.forks is not None else []
        argv += ["--become"] if self.become else []
        return [*argv, *self.further]

    def at_once_on(self, names: Sequence[str] | None, most: int) -> Inventory:
        """The same, up to so many at once: these alone, or all."""
        limit = self.limit if names is None else ",".join(names)
        return self._replace(limit=limit, forks=max(self.forks or 0, most))


class PlaybookEnd(NamedTuple):
    """How ansible-playbook ended. code: its exit status, None where it did not end by itself. description:
    as of a process's Result: "exited with status 4". words: its last words of stderr."""

    code: int | None
    description: str
    words: str


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """What happened in a playbook. event: "started" (version), "no-hosts", "host" (host, groups, places;
    one for each machine of a play), "play" (hosts), "begun" (host), "result" (host, action, state, words,
    timed_out, answer: what one of our actions answered, as JSON)."""

    event: str
    version: str = ""
    host: str = ""
    hosts: int = 0
    groups: list[str] = []
    places: dict[str, str] = {}
    action: str = ""
    state: str = ""  # "ok", "failed", "unreachable", "skipped"
    words: str = ""
    timed_out: bool = False
    answer: str = ""


def find() -> Path:
    """The ansible-playbook to run. Raises UsageError where there is none."""
    places = f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"
    found = shutil.which("ansible-playbook", path=places)
    if found is None:
        raise UsageError(
            "an inventory needs Ansible, and there is no ansible-playbook beside"
            " this envcheck or in PATH",
            hint="pip install 'envcheck-gpu[fleet]', or your distribution's package ansible-core",
        )
    return Path(found).absolute()


def run_playbook(
    playbook: Path,
    inventory: Inventory,
    variables: Mapping[str, Any],
    on_event: Callable[[Event], None],
    *,
    tick: Callable[[], None] = lambda: None,
) -> PlaybookEnd:
    """Run a playbook whose directory has our callback_plugins to its end. variables: extra variables; no
    secrets, they lie in a file meanwhile. on_event: what it raises ends ansible and all its processes; so
    does what tick raises, which is called again and again.
    Raises UsageError where there is no ansible-playbook, or it refuses the user's words."""
    program = find()
    with scratch.directory() as folder:
        events = folder / "events"
        events.touch(0o600)
        extra = folder / "variables.json"
        extra.write_bytes(msgspec.json.encode(dict(variables)))
        argv = [program, *inventory.argv(), "-e", f"@{extra}", playbook]
        env = {**os.environ, **_utf8(os.environ), **_ENVIRONMENT}
        env["ENVCHECK_EVENTS"] = str(events)
        count = 0
        with events.open("rb") as file:

            def listen() -> None:
                nonlocal count
                for event in _events(file):
                    count += 1
                    on_event(event)
                tick()

            result = processes.run_on_terminal([str(word) for word in argv], env=env, tick=listen)
            listen()
    end = PlaybookEnd(result.code, result.describe(), _last_words(result.stderr))
    if not count:
        raise _refused(program, end)
    return end


def _utf8(environ: Mapping[str, str]) -> dict[str, str]:
    """Ansible starts in a UTF-8 locale alone."""
    named = next(filter(None, map(environ.get, ("LC_ALL", "LC_CTYPE", "LANG"))), "")
    is_utf8 = named.lower().replace("-", "").endswith("utf8")
    return {} if is_utf8 else {"LC_ALL": "C.UTF-8"}


def _events(file: Any) -> Iterator[Event]:
    """Whole lines that were written since the last call."""
    while (line := file.readline()).endswith(b"\n"):
        with suppress(json_text.NotReadable):  # none of ours
            yield json_text.read(line, Event)
    file.seek(-len(line), os.SEEK_CUR)


def _last_words(stderr: bytes) -> str:
    """The error that ansible-playbook ended with, on one line."""
    lines = [line for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    begins = [at for at, line in enumerate(lines) if line.startswith(_ERRORS)]
    words = lines[begins[-1] :] if begins else lines[-1:]
    return safe_text.one_line(" ".join(words).partition(" usage: ")[0])[:600]


def _refused(program: Path, end: PlaybookEnd) -> Exception:
    """What to say of an ansible-playbook that ended before it began."""
    words = end.words
    for beginning in _ERRORS:
        words = words.removeprefix(beginning).strip()
    if end.code in (1, 2, 4, 5, 250, None) and words:
        return UsageError(f"{program}: {words}")
    return CouldNotLook(f"{program} {end.description}" + (f": {words}" if words else ""))
