"""What `envcheck soak` writes: a line a minute, and the report at its end."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from ..checks.soak.minute import failures
from ..collection import Enough
from ..exit_codes import UsageError
from ..facts.soak import Soak, SoakMinute
from ..invocation import in_place
from ..reports import soak as text
from ..reports.results import ReportedResult
from . import files, messages
from .style import style_for


class SoakOutput:
    """failed: whether something in a minute did. lost: the first result that could not be written."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.failed = False
        self.lost: UsageError | None = None
        self._arguments = arguments
        self._records: list[dict[str, Any]] = []  # of the minute that is not whole yet
        # JSON lines go where the result goes; lines for people where it does not.
        self._json = arguments.format == "json"
        self._file = None if arguments.output in (None, "-") else Path(arguments.output)
        if self._json and self._file is not None:
            files.write(arguments.output, "")

    def take(self, event: dict[str, Any]) -> None:
        """An event of the collector's. Raises Enough where --fail-fast ends it."""
        record = event.get("minute")
        if not isinstance(record, dict):
            return
        if self._records and record["number"] != self._records[0]["number"]:
            self._write_minute()
        self._records.append(record)
        if len(self._records) >= record["of"]:
            self._write_minute()
        if self.failed and self._arguments.fail_fast:
            raise Enough

    def _write_minute(self) -> None:
        records, self._records = self._records, []
        if not records:
            return
        rows = []
        for record in records:
            index = record.get("index")
            name = f"GPU {index}" if index is not None else str(record.get("gpu"))
            minute = msgspec.convert(record, SoakMinute)
            record["failures"] = failures(record["outcome"], record.get("reason", ""), minute)
            rows.append((name, minute, record["failures"]))
            self.failed = self.failed or bool(record["failures"])
        if self._json:
            line = text.minute_json(records[0]["number"], records)
            self.keep(lambda: self._append(line))
            return
        first = rows[0][1]
        line = text.minute_line(first.began + first.seconds, rows) + "\n"
        if self._file is None:
            self.keep(lambda: files.write(None, line))
        else:
            messages.show(line)

    def keep(self, write: Callable[[], None]) -> None:
        """Write a result. A full disk ends no soak, and keeps no other result from being written."""
        try:
            write()
        except UsageError as error:
            if self.lost is None:
                self.lost = error
                messages.say(f"{error}; the soak is not ended by that")

    def end(self, soak: Soak, results: list[ReportedResult], restore: Callable[[str], str]) -> None:
        self._write_minute()
        output = self._arguments.output
        if self._json:
            self._append(text.summary_json(soak, results))
        else:
            style = style_for(output)._asdict()
            shown = text.render(soak, results, **style, restore=restore, in_place=in_place)
            files.write(output, "\n" + shown)

    def _append(self, line: str) -> None:
        if self._file is None:
            files.write(None, line)
        else:
            files.append(self._file, line)
