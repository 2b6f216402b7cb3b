"""The process that runs another package's code for `apart`, and nothing else."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from .. import plugins, safe_text
from ..collector.runtime import orphans
from ..collector.worker import forked
from .apart import SIZE, PluginTask

Job = Callable[[str], object]

_encode = msgspec.json.encode


def main() -> None:
    asked = msgspec.json.decode(sys.stdin.buffer.read(), type=PluginTask)
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what is printed from here on is no part of the answer
    plugins.switch_off()
    orphans.adopt()
    module, _, function = asked.job.partition(":")
    job: Job = getattr(importlib.import_module(module), function)(asked)
    answers = forked.each(
        asked.items, lambda item, tell: _tell(job, item, tell), asked.limit, asked.budget, "asked"
    )
    orphans.sweep()
    facts = [{"facts": one.facts, "failure": one.failure} for one in answers]
    answer.write(asked.cookie + _encode(facts).decode())
    answer.flush()


def load(asked: PluginTask) -> Job:
    """The job that answers whether the entry point is a function that can be imported."""
    return lambda _item: bool(function_of(asked))


def entry_of(asked: PluginTask) -> Any:
    """What the entry point names, imported."""
    from importlib.metadata import EntryPoint

    return EntryPoint(asked.name, asked.value, asked.group).load()


def function_of(asked: PluginTask) -> Callable[..., Any]:
    loaded = entry_of(asked)
    if not callable(loaded):
        raise ValueError(f"{asked.value} is no function")
    return loaded  # type: ignore[no-any-return]  # it is callable, as far as anybody knows


def _tell(job: Job, item: str, tell: Callable[[dict[str, str]], None]) -> bool:
    """What one item came to. Returns True: the process is good enough for the package's next one."""
    process = os.getpid()
    try:
        text = _encode(job(item)).decode()
        result = {"value": text} if len(text) <= SIZE else {"error": "its answer is too large"}
    except BaseException as error:  # noqa: BLE001 - SystemExit, too: it is a stranger's code
        result = {"error": safe_text.of_error(error)}
    if os.getpid() != process:  # the package has forked: only one of the two answers
        os._exit(0)
    tell(result)
    return True
