"""README's pictures of pages are what the pages look like: taken again, and compared from some way off."""

from __future__ import annotations

import base64
import shutil
import subprocess
from pathlib import Path

import page_pictures
import pytest
from browser import Chromium
from page_pictures import FLEET, FOLDER, MACHINE, SIZES

pytestmark = pytest.mark.fleet

LARGEST = 150_000  # bytes
# Of 255, as a mean over squares of 20 pixels: letters of another font, not another page.
NEAR = 4.0

COMPARE = """async ([one, other]) => {
  const small = async data => {
    const image = new Image();
    image.src = 'data:image/webp;base64,' + data;
    await image.decode();
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [image.width / 20, image.height / 20];
    const context = canvas.getContext('2d');
    context.imageSmoothingQuality = 'high';
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    return [image.width, image.height, context.getImageData(0, 0, canvas.width, canvas.height).data];
  };
  const [w1, h1, a] = await small(one), [w2, h2, b] = await small(other);
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += Math.abs(a[i] - (b[i] ?? 0));
  return [[w1, h1], [w2, h2], sum / (a.length * 3 / 4)];
}"""


@pytest.fixture(scope="module", autouse=True)
def font() -> None:
    """Letters of another font make lines of another length."""
    told = "a font that nobody tells"
    if shutil.which("fc-match"):
        asked = subprocess.run(
            ["fc-match", "system-ui"], capture_output=True, text=True, check=False
        )
        told = asked.stdout.strip()
    if "DejaVu Sans" not in told:
        pytest.skip(f"the pictures are in DejaVu Sans, and pages here in {told}")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return page_pictures.write_pages(tmp_path_factory.mktemp("pictures"))


def compared(
    chromium: Chromium, folder: Path, one: bytes, other: bytes
) -> tuple[list[int], list[int], float]:
    empty = folder / "empty.html"
    empty.write_text("<!DOCTYPE html><title>Two pictures</title>")
    with chromium.open(empty) as opened:
        told = [base64.b64encode(data).decode() for data in (one, other)]
        first, second, apart = opened.page.evaluate(COMPARE, told)
        return first, second, apart


@pytest.mark.parametrize("name", [MACHINE, FLEET])
def test_a_picture_shows_what_its_page_shows(
    chromium: Chromium, pages: dict[str, Path], tmp_path: Path, name: str
) -> None:
    kept = (FOLDER / name).read_bytes()
    taken = page_pictures.take(chromium, pages[name], SIZES[name])
    size, now, apart = compared(chromium, tmp_path, kept, taken)
    assert size == now == [page_pictures.SCALE * length for length in SIZES[name]]
    assert apart < NEAR, "run .venv/bin/python tests/page_pictures.py, and look at them"
    assert len(kept) < LARGEST


def test_another_page_is_told_from_it(
    chromium: Chromium, pages: dict[str, Path], tmp_path: Path
) -> None:
    other = page_pictures.take(chromium, pages[MACHINE], SIZES[FLEET])
    _, _, apart = compared(chromium, tmp_path, (FOLDER / FLEET).read_bytes(), other)
    assert apart > 2 * NEAR
