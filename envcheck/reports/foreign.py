"""Report formats of other packages: a function from a Report to text, by the name of its entry point."""

from __future__ import annotations

from .. import plugins
from ..exit_codes import CouldNotLook
from .model import Report


def render(name: str, report: Report) -> str:
    """The report in that format. Raises CouldNotLook where its function does not do its part."""
    function = plugins.report_formats().get(name)
    if function is None:
        why = [
            p.reason for p in plugins.problems() if p.name == name and p.group.endswith("reports")
        ]
        raise CouldNotLook(f"the report format {name} cannot be used: {'; '.join(why)}")
    try:
        text = function(report)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - SystemExit, too: it is a stranger's code
        raise CouldNotLook(
            f"the report format {name} failed: {type(error).__name__}: {error}"
        ) from None
    if not isinstance(text, str):
        raise CouldNotLook(f"the report format {name} gave {type(text).__name__}, not text")
    return text
