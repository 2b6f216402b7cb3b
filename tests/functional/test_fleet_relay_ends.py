"""The relay takes what it has started with it when somebody ends it: nothing goes on, on the machine."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes import PATIENCE, running_commands, wait_for

from envcheck.fleet.engines import relay


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_relay_ends_what_it_started(tmp_path: Path, number: signal.Signals) -> None:
    sleeper = ["sleep", f"77{tmp_path.name[-1]}.{number:d}5"]
    script = f"import subprocess\nsubprocess.run({sleeper!r})\n"
    given = tmp_path / "script"
    given.write_bytes(relay.before(script.encode(), "c00c1e", 100.0, 1000))
    with given.open("rb") as stdin:
        asked = subprocess.Popen([sys.executable, "-"], stdin=stdin, stdout=subprocess.PIPE)
    words = "\0".join(sleeper)
    try:
        assert wait_for(lambda: running_commands(words))
        asked.send_signal(number)
        answer, _ = asked.communicate(timeout=PATIENCE)
        assert relay.read(answer, "c00c1e", 1000).outcome == "gone"
        assert not running_commands(words)
    finally:
        asked.kill()
        asked.wait()
