"""Writes a project's page, for installers of any age: JSON for those that ask for it, else HTML."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence

import msgspec

from .simple import HTML_TYPE, JSON_TYPE, ProjectFile


def as_json(name: str, files: Sequence[ProjectFile], link: Callable[[ProjectFile], str]) -> bytes:
    """PEP 691, with PEP 700's sizes where all are known.

    The metadata is announced under its new key alone: under the old one, pip 22.3 to 23.0 stumble over it.
    """
    sized = bool(files) and all(file.size is not None for file in files)
    return msgspec.json.encode(
        {
            "meta": {"api-version": "1.1" if sized else "1.0"},
            "name": name,
            "versions": sorted({str(file.version) for file in files if file.version}),
            "files": [_entry(file, link(file)) for file in files],
        }
    )


def as_html(name: str, files: Sequence[ProjectFile], link: Callable[[ProjectFile], str]) -> bytes:
    """PEP 503: what every pip reads."""
    lines = [
        "<!DOCTYPE html>",
        "<html><head>",
        '<meta name="pypi:repository-version" content="1.0">',
        f"<title>Links for {html.escape(name)}</title>",
        "</head><body>",
        *(_anchor(file, link(file)) for file in files),
        "</body></html>\n",
    ]
    return "\n".join(lines).encode()


def wants_json(accept: str) -> bool:
    """What a client's Accept header asks for; one that sends none gets HTML, as in the past."""
    return _quality(accept, JSON_TYPE) > max(
        _quality(accept, HTML_TYPE), _quality(accept, "text/html")
    )


def html_type(accept: str) -> str:
    """The name under which this client knows HTML pages."""
    return f"{HTML_TYPE if HTML_TYPE in accept else 'text/html'}; charset=utf-8"


def _quality(accept: str, kind: str) -> float:
    for part in accept.split(","):
        name, _, parameters = part.strip().partition(";")
        if name.strip() == kind:
            quality = parameters.strip().removeprefix("q=")
            try:
                return float(quality) if quality else 1.0
            except ValueError:
                return 1.0
    return 0.0


def _entry(file: ProjectFile, url: str) -> dict[str, object]:
    entry: dict[str, object] = {
        "filename": file.filename,
        "url": url,
        "hashes": {"sha256": file.sha256} if file.sha256 else {},
    }
    if file.requires_python:
        entry["requires-python"] = file.requires_python
    if file.size is not None:
        entry["size"] = file.size
    if file.yanked:
        entry["yanked"] = file.yanked
    if file.metadata:
        known = {"sha256": file.metadata}
        entry["core-metadata"] = True if file.metadata == "true" else known
    return entry


def _anchor(file: ProjectFile, url: str) -> str:
    target = f"{url}#sha256={file.sha256}" if file.sha256 else url
    attributes = {"href": target}
    if file.requires_python:
        attributes["data-requires-python"] = file.requires_python
    if file.yanked:
        attributes["data-yanked"] = file.yanked if isinstance(file.yanked, str) else ""
    if file.metadata:
        known = "true" if file.metadata == "true" else f"sha256={file.metadata}"
        attributes |= {"data-core-metadata": known, "data-dist-info-metadata": known}
    written = " ".join(f'{key}="{html.escape(value)}"' for key, value in attributes.items())
    return f"<a {written}>{html.escape(file.filename)}</a><br>"
