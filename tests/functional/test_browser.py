"""The harness for pages tells a good page from a bad one."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import Chromium
from processes import running

pytestmark = pytest.mark.fleet

HEAD = '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>A page</title>'
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
SILENT = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
COPY = "onclick=\"navigator.clipboard.writeText('nvidia-smi -q')\""


def page(folder: Path, body: str, head: str = HEAD) -> Path:
    file = folder / "a page.html"
    file.write_text(f"{head}</head><body><main><h1>A page</h1>{body}</main></body></html>")
    return file


def test_a_good_page_has_no_troubles(chromium: Chromium, tmp_path: Path) -> None:
    (tmp_path / "other.html").write_text(HEAD + "</head><body><p>Other</p></body></html>")
    body = (
        '<p>Text, and <a href="other.html">another page</a>, <a href="#foot">its foot</a>.</p>'
        '<div style="height: 3000px"></div><h2 id="foot">Foot</h2>'
    )
    with chromium.open(page(tmp_path, body, HEAD + SILENT), 360) as opened:
        assert opened.troubles() == []
        assert opened.overflowing() == []
        assert opened.axe() == []
        assert opened.dead_links() == []
        assert opened.click_links() == []
        assert opened.addresses() == ["other.html", "#foot"]
        assert 'link "another page"' in opened.spoken()
        assert 0 < opened.first_paint() < 60
        assert opened.paper_pages() == 3


def test_what_is_wrong_is_seen(chromium: Chromium, tmp_path: Path) -> None:
    body = (
        "<div style='width: 30rem'>wide</div>"
        "<div style='width: 4rem; overflow: hidden; white-space: nowrap'>cut off at its right</div>"
        "<svg width='90' height='40'><text x='60' y='20'>out of it</text><text x='2' y='20'>on</text>"
        "<text x='6' y='22'>each other</text></svg>"
        "<a href='#nowhere'>a</a><a href='gone.html'>b</a><a href='javascript:alert(1)'>c</a>"
        "<img src='https://example.org/x.png'>"
        "<script>console.log('hello'); alert('me'); nonsense()</script>"
    )
    with chromium.open(page(tmp_path, body), 360) as opened:
        told = "\n".join(opened.troubles())
        assert "console: log: hello" in told
        assert "error: nonsense is not defined" in told
        assert "network: https://example.org/x.png" in told
        assert "dialog: me" in told
        found = "\n".join(opened.overflowing())
        assert "the page is 488 wide, and has room for 360" in found
        assert "“cut off at its right” is cut off" in found
        assert "text “out of it” sticks out of its picture" in found
        assert any("lies on" in line for line in opened.overlapping_texts())
        assert opened.dead_links() == ["#nowhere", "gone.html", "javascript:alert(1)"]
        assert any(line.startswith("image-alt: ") for line in opened.axe())
        assert not any(line.startswith("image-alt: ") for line in opened.axe("image-alt"))


def test_buttons_that_copy_are_pressed(chromium: Chromium, tmp_path: Path) -> None:
    two = COPY.replace("nvidia-smi -q", "nvidia-smi topo -m")
    body = (
        f"<details><summary>More</summary><button class='copy' {COPY}>Copy</button></details>"
        f"<button class='copy' {two}>Copy</button><button class='copy'>Does nothing</button>"
    )
    with chromium.open(page(tmp_path, body)) as opened:
        assert opened.copied() == ["nvidia-smi -q", "nvidia-smi topo -m", ""]


def test_a_page_is_opened_dark_on_paper_and_without_its_script(
    chromium: Chromium, tmp_path: Path
) -> None:
    body = (
        "<style>:root { color-scheme: light dark } @media print { h1 { display: none } }</style>"
        "<p id='p'>-</p><script>document.getElementById('p').textContent = 'ran'</script>"
    )
    file = page(tmp_path, body)
    dark = "() => matchMedia('(prefers-color-scheme: dark)').matches"
    with chromium.open(file, dark=True) as opened:
        assert opened.page.evaluate(dark)
        assert opened.page.inner_text("#p") == "ran"
    with chromium.open(file, script=False, paper=True) as opened:
        assert not opened.page.evaluate(dark)
        assert opened.page.inner_text("#p") == "-"
        assert not opened.page.is_visible("h1")


def test_nothing_of_the_browser_stays(chromium: Chromium, tmp_path: Path) -> None:
    """As ``started`` finds it when a file's tests are done."""
    with chromium.open(page(tmp_path, "")):
        commands = b"".join(command for _pid, _parent, command in running(chromium.folder))
    assert b"user-data-dir" in commands
