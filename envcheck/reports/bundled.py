"""What is told when a bundle is written: what is in it, and what to type on the other machine."""

from __future__ import annotations

import shlex
from pathlib import Path

from ..install.bundle.writing import Manifest
from .page import Page
from .plan_text import size

_KEY = 12


def render(
    manifest: Manifest, place: Path, *, width: int = 80, colour: bool = False, utf8: bool = True
) -> str:
    """The last words. place: of the bundle."""
    page = Page(width=width, colour=colour, utf8=utf8)
    total = sum(listed.size for listed in manifest.files.values())
    page.paragraph(
        ("Written:", "pass"), (f"{manifest.stack} {manifest.release}", "heading"), hanging=2
    )
    page.entry("where", str(place), _KEY)
    page.entry("files", f"{len(manifest.files)}, {size(total)}", _KEY)
    page.entry("for", f"Python {manifest.python} on {manifest.architecture}", _KEY)
    page.entry("envcheck", f"{manifest.envcheck}, for Python {', '.join(manifest.pythons)}", _KEY)
    page.blank()
    page.paragraph(("On the machine without a network:", ""))
    if place.suffix == ".tar":
        page.command(f"tar -xf {shlex.quote(place.name)}")
    page.command(f"sh {shlex.quote(place.stem if place.suffix == '.tar' else place.name)}/setup.sh")
    return page.text()
