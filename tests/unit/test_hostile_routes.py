"""What others wrote comes through the command line's function, and nothing of it reaches a terminal raw."""

from __future__ import annotations

from typing import Any

import hostile
import msgspec
import pytest
from h100 import machine

from envcheck.cli import messages
from envcheck.cli.main import run
from envcheck.facts import snapshot as snapshots

ALL = pytest.mark.parametrize("text", hostile.TEXTS.values(), ids=hostile.TEXTS)


def spoiled(text: str) -> bytes:
    """A healthy machine's Snapshot in which every name and version ends in the text."""
    fields = {"name", "version", "driver_version", "os_name", "hostname", "kernel_version", "path"}

    def walk(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {k: walk(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [walk(item, key) for item in value]
        return value + text if isinstance(value, str) and key in fields else value

    return msgspec.json.encode(walk(msgspec.json.decode(snapshots.dump(machine()))))


@ALL
@pytest.mark.parametrize(
    "command", ["explain {}", "doctor --only {}", "doctor --from {}", "{}", "install --stack {}"]
)
def test_an_error_that_repeats_what_was_typed(
    text: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words_ = [word.format(text.replace("\0", "0")[:3000]) for word in command.split(" ")]
    try:
        code = run(words_)
    except SystemExit as error:
        code = int(error.code or 0)
    assert code
    shown = capsys.readouterr()
    assert not hostile.problem(shown.err) and not hostile.problem(shown.out)


@ALL
def test_what_is_said_while_it_works(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    messages.say(text)
    messages.hint(f"first\n{text}")
    shown = capsys.readouterr().err
    assert not hostile.problem(shown.replace(f"    {hostile.FORGED}", ""))
    assert all(line.startswith(("envcheck: ", "hint: ", "    ")) for line in shown.splitlines())
