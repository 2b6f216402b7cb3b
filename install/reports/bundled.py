"""The report on a written bundle: what is in it, and what to type on the other machine."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from ...reports.page import KEY, Page
from ..bundle.index import PYTHON, BundleIndex
from ..bundle.writing import is_tar
from ..progress import size


def render(manifest: BundleIndex, place: Path, **style: Any) -> str:
    """The last words. place: of the bundle; style: of the Page."""
    page = Page(**style)
    total = sum(listed.size for listed in manifest.files.values())
    called = f"{manifest.stack} {manifest.release}".rstrip()
    page.paragraph(("Written:", "pass"), (called, "heading"), hanging=2)
    page.entry("where", str(place), KEY)
    page.entry("files", f"{len(manifest.files)}, {size(total)}", KEY)
    page.entry("for", f"Python {manifest.python} on {manifest.architecture}", KEY)
    carried = manifest.files.get(f"{PYTHON}/{manifest.carries}.tar.gz")
    words = "none in it: it has to be there"
    if carried is not None:
        words = f"{manifest.carries}, {size(carried.size)}, where it is not there"
    page.entry("python", words, KEY)
    pythons = ", ".join(manifest.pythons)
    page.entry("envcheck", f"{manifest.envcheck}, for Python {pythons}", KEY)
    page.blank()
    page.paragraph(("On the machine without a network:", ""))
    name, inside = shlex.quote(place.name), shlex.quote(place.stem)
    if not is_tar(place):
        page.command(f"sh {name}/setup.sh")
    else:
        page.command(f"tar -xf {name}")
        page.command(f"sh {inside}/setup.sh")
    return page.text()
