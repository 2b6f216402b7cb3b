"""What a system's process has reported, read from its standard output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from envcheck.collector import worker
from envcheck.collector.systems.running import records, work
from envcheck.collector.worker import messages


class Reported(records.SystemReader):
    """stage: what was announced and has no result. done: whether it came to its end, or ended itself."""

    def __init__(self, stdout: bytes) -> None:
        super().__init__()
        self.stage, self.done = "", False
        for message in messages.read(stdout.split(b"\n")):
            if "stage" in message:
                self.stage = message["stage"]
            elif "result" in message:
                self.stage = ""
                self.take("result", message["result"], message["of"])
            elif "begin" in message:
                self.take("begin", message["begin"], "")
            else:
                self.done = message["done"].get("outcome", "ok") != "error"
                self.run.update(message["done"])


def command(python: str | Path, module: str, params: dict[str, Any]) -> list[str]:
    """The command line of a system's process."""
    return worker.command([str(python), "-B"], work.MODULE, {**params, "module": module})
