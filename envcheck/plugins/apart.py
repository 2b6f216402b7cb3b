"""Runs another package's code in a process of its own: whatever it does there costs its own answers alone."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from .. import plugins, safe_text
from ..collector.runtime import orphans, process
from ..collector.worker import forked

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

LIMIT = 30.0  # seconds for one item, the package's import among it
BUDGET = 120.0  # seconds for all items of one question
_BEYOND = 30.0  # seconds more, for the process to start and to end
_OUTPUT = 128 << 20  # bytes
SIZE = 16 << 20  # bytes of one answer

Job = Callable[[str], object]


class PluginQuestion(msgspec.Struct, frozen=True):
    """job: "module:function" of envcheck's: a function from this question to one that answers an item.

    data: JSON, which the job reads.
    """

    entry: Any  # importlib.metadata.EntryPoint
    job: str = f"{__name__}:load"
    items: Sequence[str] = ("",)
    data: bytes = b"null"


class PluginAnswer(msgspec.Struct, frozen=True):
    """What became of one item: its value as JSON, or the reason why there is none, in one line."""

    value: msgspec.Raw = msgspec.Raw(b"null")
    reason: str = ""


def ask(
    entry: EntryPoint, job: str, items: Sequence[str] = ("",), data: bytes = b"null"
) -> list[PluginAnswer]:
    """One PluginAnswer for each item."""
    return ask_all([PluginQuestion(entry, job, items, data)])[0]


def ask_all(questions: Sequence[PluginQuestion]) -> list[list[PluginAnswer]]:
    """The same for several entry points, side by side: a copy of this process for each."""
    children = [
        process.Child(
            ["plug-in"],
            BUDGET + _BEYOND,
            limit=_OUTPUT,
            cwd="/",
            tied=True,
            work=partial(_answer_all, question),
        )
        for question in questions
    ]
    process.run_all(children)
    return [_answers(one, child.result) for one, child in zip(questions, children, strict=True)]


def all_problems() -> list[plugins.Problem]:
    """What of any group cannot be loaded; of the stacks' files as far as the catalogue has read them."""
    plugins.probe_files()
    plugins.stack_folders()
    formats = [PluginQuestion(entry) for entry in plugins.report_formats().values()]
    for question, (answer,) in zip(formats, ask_all(formats), strict=True):
        if answer.reason:
            plugins.add_problem(question.entry.group, question.entry.name, answer.reason)
    return plugins.problems()


def _answers(question: PluginQuestion, result: Any) -> list[PluginAnswer]:
    try:
        found = msgspec.json.decode(result.stdout, type=list[PluginAnswer])
        if len(found) == len(question.items):
            return found
    except ValueError:
        pass
    reason = "gave no answer" if result.ok else result.describe()
    return [PluginAnswer(reason=f"its process {reason}")] * len(question.items)


def _answer_all(question: PluginQuestion) -> None:
    """In the copy: the package's code runs in further ones."""
    plugins.switch_off()
    orphans.adopt()
    module, _, function = question.job.partition(":")
    job: Job = getattr(importlib.import_module(module), function)(question)
    items = forked.each(question.items, partial(_tell, job), LIMIT, BUDGET, "asked")
    orphans.sweep()
    data = msgspec.json.encode([_answer(one) for one in items])
    while data:
        data = data[os.write(1, data) :]
    os._exit(0)


def _tell(job: Job, item: str, tell: Callable[[dict[str, str]], None]) -> bool:
    """What one item came to. Returns True: the process is good enough for the package's next one."""
    here = os.getpid()
    try:
        text = _encode(job(item)).decode()
        result = {"value": text} if len(text) <= SIZE else {"error": "its answer is too large"}
    except BaseException as error:  # noqa: BLE001 - SystemExit, too: it is a stranger's code
        result = {"error": safe_text.of_error(error)}
    if os.getpid() != here:  # the package has forked: only one of the two answers
        os._exit(0)
    tell(result)
    return True


_encode = msgspec.json.encode  # before a stranger's code can replace it


def _answer(item: Any) -> PluginAnswer:
    """Of a forked.Answer."""
    if item.failure is not None:
        return PluginAnswer(reason=f"its process {safe_text.one_line(item.failure['detail'])}")
    if "value" not in item.facts:
        return PluginAnswer(reason=safe_text.one_line(item.facts.get("error", "it gave no answer")))
    return PluginAnswer(value=msgspec.Raw(item.facts["value"].encode()))


def load(question: PluginQuestion) -> Job:
    """The job that answers whether the entry point is a function that can be imported."""
    return lambda _item: bool(function_of(question))


def function_of(question: PluginQuestion) -> Callable[..., Any]:
    loaded = question.entry.load()
    if not callable(loaded):
        raise ValueError(f"{question.entry.value} is no function")
    return loaded  # type: ignore[no-any-return]  # it is callable, as far as anybody knows
