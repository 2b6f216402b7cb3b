"""What is told when a bundle is written: what is in it, and what to type on the other machine."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from ...reports.page import KEY, Page
from ..bundle.index import OWN, BundleIndex
from ..bundle.writing import is_tar
from .amounts import size


def render(manifest: BundleIndex, place: Path, **style: Any) -> str:
    """The last words. place: of the bundle; style: of the Page."""
    page = Page(**style)
    total = sum(listed.size for listed in manifest.files.values())
    called = f"{manifest.stack} {manifest.release}".rstrip()
    page.paragraph(("Written:", "pass"), (called, "heading"), hanging=2)
    page.entry("where", str(place), KEY)
    page.entry("files", f"{len(manifest.files)}, {size(total)}", KEY)
    container = manifest.mode == "container"
    if container:
        page.entry("image", f"{manifest.image}, {manifest.digest}", KEY)
    runs_on = "Linux" if container else f"Python {manifest.python}"
    page.entry("for", f"{runs_on} on {manifest.architecture}", KEY)
    page.entry("envcheck", f"{manifest.envcheck}, for Python {', '.join(manifest.pythons)}", KEY)
    page.blank()
    page.paragraph(("On the machine without a network:", ""))
    name, inside = shlex.quote(place.name), shlex.quote(place.stem)
    if not is_tar(place):
        page.command(f"sh {name}/setup.sh")
    elif container:  # the image stays in its tar, which is installed from as it is
        page.command(f"tar -xf {name} setup.sh {OWN}")
        page.command("sh ./setup.sh")
    else:
        page.command(f"tar -xf {name}")
        page.command(f"sh {inside}/setup.sh")
    return page.text()
