"""What is told when a bundle is written: what is in it, and what to type on the other machine."""

from __future__ import annotations

import shlex
from pathlib import Path

from ...reports.page import Page
from ..bundle.index import OWN, BundleIndex
from ..bundle.writing import is_tar
from .amounts import size

_KEY = 12


def render(
    manifest: BundleIndex, place: Path, *, width: int = 80, colour: bool = False, utf8: bool = True
) -> str:
    """The last words. place: of the bundle."""
    page = Page(width=width, colour=colour, utf8=utf8)
    total = sum(listed.size for listed in manifest.files.values())
    page.paragraph(
        ("Written:", "pass"),
        (f"{manifest.stack} {manifest.release}".rstrip(), "heading"),
        hanging=2,
    )
    page.entry("where", str(place), _KEY)
    page.entry("files", f"{len(manifest.files)}, {size(total)}", _KEY)
    if manifest.mode == "container":
        page.entry("image", f"{manifest.image}, {manifest.digest}", _KEY)
        page.entry("for", f"Linux on {manifest.architecture}", _KEY)
    else:
        page.entry("for", f"Python {manifest.python} on {manifest.architecture}", _KEY)
    page.entry("envcheck", f"{manifest.envcheck}, for Python {', '.join(manifest.pythons)}", _KEY)
    page.blank()
    page.paragraph(("On the machine without a network:", ""))
    for command in _commands(manifest, place):
        page.command(command)
    return page.text()


def _commands(manifest: BundleIndex, place: Path) -> list[str]:
    """An image stays in its tar, which is installed from as it is."""
    if not is_tar(place):
        return [f"sh {shlex.quote(place.name)}/setup.sh"]
    tar = f"tar -xf {shlex.quote(place.name)}"
    if manifest.mode == "container":
        return [f"{tar} setup.sh {OWN}", "sh ./setup.sh"]
    return [tar, f"sh {shlex.quote(place.stem)}/setup.sh"]
