"""What list, rollback, uninstall and prune print."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...reports.page import KEY, Page
from ...reports.plain import number_of
from ..catalogue.containers import OWN
from ..progress import size
from ..prune import Pruned
from ..transaction.current import RolledBack
from ..transaction.layout import Version
from ..transaction.listing import EnvironmentState, Listing, VersionState
from ..transaction.uninstall import Uninstalled
from .installed import activation

_DIGEST = 12  # digits that engines show, too


def listing(found: Listing, **style: Any) -> str:
    """Every environment with its versions."""
    page = Page(**style)
    if not found.environments:
        page.paragraph(("There is no environment yet:", ""))
        page.command("envcheck releases")
        page.command("envcheck install")
        page.command("envcheck install tensorflow-cpu  # on a machine without a GPU")
    for number, environment in enumerate(found.environments):
        if number:
            page.blank()
        _environment(page, environment)
    return page.text()


def rolled_back(done: RolledBack, **style: Any) -> str:
    page = Page(**style)
    page.paragraph(("In use now:", "pass"), (done.version, "heading"), hanging=2)
    page.entry("where", f"{done.prefix} -> {done.version}", KEY)
    if done.before:
        page.entry("before", f"{done.before} (envcheck rollback leads back to it)", KEY)
    page.entries("note", done.notes, KEY)
    return page.text()


def uninstalled(done: Uninstalled, **style: Any) -> str:
    page = Page(**style)
    what = done.directory if done.whole else ", ".join(done.versions)
    page.paragraph(("Removed:", "pass"), (what, "heading"), hanging=2)
    if done.whole:
        page.entry("versions", ", ".join(done.versions) or "none", KEY)
    if not done.images:
        freed = f"{size(done.freed)}; envcheck prune also frees the fetched files"
        page.entry("freed", freed, KEY)
    page.entries("image", done.images, KEY)
    page.entries("left", [f"{path} (not envcheck's)" for path in done.foreign], KEY)
    return page.text()


def pruned(done: Pruned, **style: Any) -> str:
    """What was removed and kept, or would be."""
    page = Page(**style)
    gone, stays = ("would be removed", "would stay") if done.dry_run else ("removed", "kept")
    cells = len(gone) + 2
    removed = [f"{r.version} of {r.environment}, {size(r.bytes_total)}" for r in done.removed]
    removed += [f"the image {image}" for image in done.images]
    if done.files:
        fetched = number_of(done.files, "fetched file")
        removed.append(f"{fetched} that no version needs, {size(done.files_bytes)}")
    if done.leftovers:
        removed.append(f"leftovers of interrupted runs: {_some(done.leftovers)}")
    if done.packages:
        removed.append(f"unpacked in uv's cache: {_some(done.packages)}")
    kept = [f"{k.version} of {k.environment}, {size(k.bytes_total)}: {k.why}" for k in done.kept]
    for key, sentences in ((gone, removed), (stays, kept)):
        for sentence in sentences:
            page.entry(key, sentence, cells)
    page.entries("note", done.notes, cells)
    freed = "This would free at least" if done.dry_run else "Freed"
    images = ", and what those images share with no other" if done.images else ""
    page.paragraph((f"{freed} {size(done.freed)}{images}.", "heading"))
    return page.text()


def going(directory: str, versions: Sequence[Version], whole: bool, bytes_total: int) -> str:
    """What would be uninstalled, before it is."""
    names = ", ".join(version.id for version in versions)
    what = f"{directory} with all of its versions" if whole else names
    of_images = any(version.is_container for version in versions)
    return f"{what} ({'with their images' if of_images else size(bytes_total)})"


def _environment(page: Page, found: EnvironmentState) -> None:
    well = found.status == "installed"
    page.paragraph(
        (found.name, "heading"), ("" if well else f"({found.status})", "warn"), hanging=2
    )
    where = {"installed": f" -> {found.current}", "broken link": f" -> {found.current or '?'}"}
    page.entry("where", found.prefix + where.get(found.status, ""), KEY)
    for version in found.versions:
        page.entry("in use" if version.in_use else "version", _version(version), KEY)
        page.entries("", version.changes, KEY)
    if len(found.versions) > 1 and found.mode == "wheel":
        page.entry("together", f"{size(found.bytes_total)}, what versions share once", KEY)
    if found.at_work:
        page.entry("at work", found.at_work, KEY)
    if found.foreign:
        names = [Path(path).name for path in found.foreign]
        page.entry("also there", f"{_some(names)} (not envcheck's)", KEY)
    name = shlex.quote(found.name)
    if well and found.mode == "container":
        which = "--path" if found.name == found.directory else "--name"
        page.command(f"envcheck shell {which} {name}")
    elif well:
        page.command(activation(found.prefix))
    elif found.at_work:
        pass
    elif any(version.status == "verified" for version in found.versions):
        page.paragraph(("No version is in use. This puts the newest one back:", ""))
        page.command(f"envcheck rollback {name}")
    else:
        page.paragraph(("Nothing in it can be used: install again, or remove it:", ""))
        page.command(f"envcheck uninstall {name}")


def _version(version: VersionState) -> str:
    if version.status in ("unfinished", "being built", "without a record"):
        what = "; the next install removes it" if version.status == "unfinished" else ""
        return f"{version.version}: {version.status}, {size(version.bytes_total)}{what}"
    if version.mode == "container":
        digest = version.digest.rpartition(":")[2][:_DIGEST]
        layers = f"{size(version.image_bytes)} of layers" if version.image_bytes else ""
        holds = [f"the image {version.image} ({digest}) in {version.engine}"]
        holds.append(layers or size(version.bytes_total))
    else:
        own = size(version.bytes_total - version.bytes_shared)
        holds = [f"Python {version.python}", number_of(version.packages, "package")]
        holds.append(f"{size(version.bytes_total)} ({own} of its own)")
    # Of an image of one's own, stack and release are the word "image" and its tag.
    named = [] if version.stack == OWN else [f"{version.stack} {version.release}"]
    when = f"{version.verified_at[:10]} {version.verified_at[11:16]} UTC"
    return f"{version.version}: {', '.join([*named, *holds, f'{version.status} {when}'])}"


def _some(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
