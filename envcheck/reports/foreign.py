"""Report formats of other packages: functions from a Report to text, each run in a process of its own."""

from __future__ import annotations

import msgspec

from .. import plugins
from ..exit_codes import CouldNotLook
from ..plugins import apart
from ..plugins.apart import PluginTask
from ..plugins.inside import Job, function_of
from .model import Report


def render(name: str, report: Report) -> str:
    """The report in that format. Raises CouldNotLook where its function does not do its part."""
    entry = plugins.report_formats().get(name)
    if entry is None:
        why = [
            p.reason for p in plugins.problems() if p.name == name and p.group.endswith("reports")
        ]
        raise CouldNotLook(f"the report format {name} cannot be used: {'; '.join(why)}")
    data = msgspec.json.encode(report)
    ((answer,),) = apart.ask([apart.task(entry, f"{__name__}:rendering", data=data)])
    if answer.reason:
        named = plugins.in_words(entry)
        raise CouldNotLook(f"the report format of {named} failed: {answer.reason}")
    return msgspec.json.decode(answer.value, type=str)


def rendering(asked: PluginTask) -> Job:
    """The job that renders a report, in a process of the plug-in's own."""
    report = msgspec.json.decode(asked.data, type=Report)

    def rendered(_item: str) -> str:
        text = function_of(asked)(report)
        if not isinstance(text, str):
            raise TypeError(f"it gave {type(text).__name__}, not text")
        return text

    return rendered
