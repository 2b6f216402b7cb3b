"""Runs another package's code in a process of its own: whatever it does there costs its own answers alone."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from .. import safe_text, scratch
from ..collector.runtime import process
from ..invocation import own_python

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

LIMIT = 30.0  # seconds for one item, the package's import among it
BUDGET = 120.0  # seconds for all items of one question
_BEYOND = 30.0  # seconds more, for the process to start and to end
_OUTPUT = 128 << 20  # bytes
SIZE = 16 << 20  # bytes of one answer

_START = "from envcheck.plugins import inside\ninside.main()\n"


class PluginTask(msgspec.Struct, frozen=True, kw_only=True):
    """What the process reads on its standard input.

    job: "module:function" of envcheck's, which says what to do with the entry point for each item (`inside`).
    data: JSON, which the job reads.
    """

    group: str
    name: str
    value: str
    job: str
    items: list[str]
    data: msgspec.Raw
    cookie: str
    limit: float
    budget: float


def task(
    entry: EntryPoint,
    job: str = "envcheck.plugins.inside:load",
    items: Sequence[str] = ("",),
    data: bytes = b"null",
) -> PluginTask:
    return PluginTask(
        group=entry.group,
        name=entry.name,
        value=entry.value,
        job=job,
        items=list(items),
        data=msgspec.Raw(data),
        cookie=secrets.token_hex(16),
        limit=LIMIT,
        budget=BUDGET,
    )


class PluginAnswer(msgspec.Struct, frozen=True):
    """What became of one item: its value as JSON, or the reason why there is none, in one line."""

    value: msgspec.Raw = msgspec.Raw(b"null")
    reason: str = ""


class _Forked(msgspec.Struct, frozen=True):
    """What `collector.runtime.forked` says of one item."""

    facts: dict[str, str]
    failure: dict[str, str] | None = None


def ask(tasks: Sequence[PluginTask]) -> list[list[PluginAnswer]]:
    """One PluginAnswer for each item of each; the plug-ins are asked side by side."""
    if not tasks:
        return []
    try:
        with scratch.directory() as folder:
            children = []
            for number, one in enumerate(tasks):
                file = folder / f"{number}.json"
                file.write_bytes(msgspec.json.encode(one))
                children.append(_started(os.fspath(file)))
            process.run_all(children)
    except OSError as error:
        reason = f"no process could be started for it: {error.strerror or error}"
        return [[PluginAnswer(reason=reason)] * len(one.items) for one in tasks]
    return [_answers(one, child.result) for one, child in zip(tasks, children, strict=True)]


def _started(file: str) -> Any:
    return process.Child(own_python(_START), BUDGET + _BEYOND, stdin=file, limit=_OUTPUT, cwd="/")


def _answers(asked: PluginTask, result: Any) -> list[PluginAnswer]:
    output = result.stdout.rpartition(asked.cookie.encode())[2]
    try:
        found = msgspec.json.decode(output, type=list[_Forked])
        if len(found) != len(asked.items):
            raise ValueError
    except ValueError:
        reason = (
            f"its process {result.describe()}" if not result.ok else "its process gave no answer"
        )
        return [PluginAnswer(reason=reason)] * len(asked.items)
    return [_answer(one) for one in found]


def _answer(item: _Forked) -> PluginAnswer:
    if item.failure is not None:
        return PluginAnswer(reason=f"its process {safe_text.one_line(item.failure['detail'])}")
    if "value" not in item.facts:
        return PluginAnswer(reason=safe_text.one_line(item.facts.get("error", "it gave no answer")))
    return PluginAnswer(value=msgspec.Raw(item.facts["value"].encode()))
