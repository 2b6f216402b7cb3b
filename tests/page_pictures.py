"""README's pictures of pages: what Chromium shows of a simulated machine's page, and of a fleet's.

    .venv/bin/python tests/page_pictures.py     takes them anew (pip install -e '.[test,browser]')

Browsers differ in their letters' edges: tests/functional/test_page_pictures.py takes them again, and
compares what one sees from some way off.
"""

from __future__ import annotations

import base64
import sys
import tempfile
from pathlib import Path

for _folder in ("", "unit", "functional"):
    sys.path.insert(0, str(Path(__file__).parent / _folder))

import demos  # noqa: E402
from browser import Chromium, started  # noqa: E402

from envcheck.checks.engine import diagnose  # noqa: E402
from envcheck.facts.snapshot import load  # noqa: E402
from envcheck.fleet import simulated  # noqa: E402
from envcheck.fleet.folder import FleetFolder  # noqa: E402
from envcheck.fleet.judging import judged  # noqa: E402
from envcheck.fleet.reports import page as fleet_page  # noqa: E402
from envcheck.fleet.result import result  # noqa: E402
from envcheck.reports import machine_page  # noqa: E402
from envcheck.reports.model import build  # noqa: E402

FOLDER = Path(__file__).parents[1] / "docs" / "images"
MACHINE, FLEET = "page.webp", "fleet.webp"
SIZES = {MACHINE: (1000, 1500), FLEET: (1000, 1040)}
SCALE, QUALITY = 2, 60
DEMO = "heat"


def write_pages(folder: Path) -> dict[str, Path]:
    """The pages that the pictures show, by their names."""
    snapshot = load(demos.build(DEMO))
    one = folder / "machine.html"
    one.write_text(machine_page.render(build(snapshot, diagnose(snapshot)), snapshot))
    snapshots, pages = FleetFolder(folder / "snapshots"), folder / "pages"
    for made in (snapshots.path, pages):
        made.mkdir()
    simulated.write(snapshots, {name: demos.build(name) for name in simulated.DEMOS})
    found = result(list(judged(snapshots, snapshots.members(), pages=pages)))
    fleet_page.write(found, pages)
    return {MACHINE: one, FLEET: pages / fleet_page.INDEX}


def take(chromium: Chromium, file: Path, size: tuple[int, int]) -> bytes:
    """What a reader sees first, as WebP, which Chromium itself writes."""
    width, height = size
    with chromium.open(file, width, height=height) as opened:
        assert opened.troubles() == []
        session = opened.page.context.new_cdp_session(opened.page)
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": SCALE}
        asked = {"format": "webp", "quality": QUALITY, "clip": clip}
        told = session.send("Page.captureScreenshot", asked)
        return base64.b64decode(told["data"])


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        pages = write_pages(Path(scratch))
        with started(Path(scratch) / "browser") as chromium:
            for name, file in pages.items():
                (FOLDER / name).write_bytes(take(chromium, file, SIZES[name]))
                print(FOLDER / name)


if __name__ == "__main__":
    main()
