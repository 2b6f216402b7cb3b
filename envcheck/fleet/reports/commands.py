"""The remedies' commands alone, and on which machines: to be read, then run there."""

from __future__ import annotations

from ... import safe_text
from ...reports.page import TOKEN, Page
from ..model import FleetResult
from . import words


def render(result: FleetResult, *, utf8: bool = True) -> str:
    """A shell script. A command that holds a redaction token instead of its value is a comment."""
    page = Page(width=80, utf8=utf8)
    if made_up := words.simulated(result):
        _comment(page, f"Simulated, not real: {made_up}")
    _comment(page, words.verdict(result))
    groups = [group for group in result.groups if group.commands]
    if not groups:
        _comment(page, "Nothing to do.")
    for group in groups:
        page.blank()
        told = f"{words.machines(len(group.machines))}: {group.code} {words.problem(group)}"
        _comment(page, told)
        _list(page, "on", group.hosts)
        if group.limit and len(group.machines) > 1:
            _list(page, "--limit", group.limit)
        if group.remedy:
            _comment(page, group.remedy)
        if group.of_one:
            _comment(page, f"as on {group.of_one}; the others have devices of their own")
        for command in group.commands:
            if TOKEN.search(command):
                _comment(page, f"put in what is behind the token, then run: {command}")
            else:
                page.command(command)
    return page.text()


def _comment(page: Page, text: str) -> None:
    page.line((f"# {page.clean(text)}", ""))


def _list(page: Page, what: str, names: str) -> None:
    """All of it, however long it is."""
    page.preformatted(f"# {what} {safe_text.escaped(names)}")
