"""A headless Chromium for tests of pages: it opens files, reaches no network, and looks at what they show."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pytest
from processes import running, wait_for

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

WIDTHS = (360, 800, 1400)  # a telephone, half a screen, a screen
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Nothing that Chromium does of its own accord: no updates, no first run, no service of Google's.
FLAGS = (
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)
_LOOKS = (Path(__file__).parent / "browser_looks.js").read_text()
PATIENCE = 300_000  # milliseconds: far beyond what a busy machine needs
NOTHING = "(nothing was copied)"


class OpenPage:
    """A page in the browser. ``page`` is playwright's; whatever the page complained of is kept."""

    def __init__(self, context: BrowserContext) -> None:
        self.page: Page = context.new_page()
        self.console: list[str] = []
        self.errors: list[str] = []
        self.asked: list[str] = []  # what it wanted from elsewhere
        self.dialogs: list[str] = []
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", lambda line: self.console.append(f"{line.type}: {line.text}"))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self._asks(request.url))
        self.page.on("dialog", self._dialog)

    def _asks(self, url: str) -> None:
        if urlsplit(url).scheme not in ("file", "data", "about", "blob"):
            self.asked.append(url)

    def _dialog(self, dialog: Any) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def troubles(self) -> list[str]:
        """All that a good page has nothing of: console messages, errors, requests, dialogs."""
        return [
            *(f"console: {text}" for text in self.console),
            *(f"error: {text}" for text in self.errors),
            *(f"network: {url}" for url in self.asked),
            *(f"dialog: {text}" for text in self.dialogs),
        ]

    def overflowing(self) -> list[str]:
        """What sticks out of its box, of its picture or of the page, or is cut off without a scroll bar."""
        return list(self.page.evaluate(f"({_LOOKS}).overflowing()"))

    def sheets(self) -> int:
        """How many pages of A4 it prints on."""
        return len(re.findall(rb"/Type\s*/Page\b", self.page.pdf(format="A4")))

    def axe(self, *skipped: str) -> list[str]:
        """What axe-core finds, a line each, but for the rules named: "rule: help (element, …)"."""
        self.page.evaluate(_axe_source())
        rules = {rule: {"enabled": False} for rule in skipped}
        found = self.page.evaluate(
            "rules => axe.run(document, {rules, resultTypes: ['violations']})", rules
        )
        return [
            f"{violation['id']}: {violation['help']} "
            f"({', '.join(str(node['target'][0]) for node in violation['nodes'][:4])}"
            f"{', …' if len(violation['nodes']) > 4 else ''})"
            for violation in found["violations"]
        ]

    def addresses(self) -> list[str]:
        """Where the links lead, each once, as they are written."""
        found = self.page.eval_on_selector_all(
            "a",
            "links => links.map(a => a.getAttribute('href') ?? a.getAttribute('xlink:href') ?? '')",
        )
        return list(dict.fromkeys(found))

    def dead_links(self) -> list[str]:
        """Links that lead nowhere, by what they say: no such place in the page, no such file beside it."""
        here = Path(unquote(urlsplit(self.page.url).path))
        dead = []
        for address in self.addresses():
            target = urlsplit(address)
            if target.scheme or target.netloc:
                good = target.scheme == "https"
            elif target.path:
                good = (here.parent / unquote(target.path)).is_file()
            else:
                good = bool(target.fragment) and self.page.evaluate(
                    "id => document.getElementById(id) !== null", unquote(target.fragment)
                )
            if not good:
                dead.append(address)
        return dead

    def copied(self, button: str = "button.copy") -> list[str]:
        """Press every copy button; what a paste elsewhere gives after each, "" for nothing."""
        self.open_all()
        paper = self.page.context.new_page()
        paper.set_content("<textarea></textarea>")
        found = []
        for number in range(self.page.locator(button).count()):
            result = NOTHING
            for pause in (30, 200, 1000):  # the clipboard is written some time after the click
                paper.fill("textarea", NOTHING)
                paper.focus("textarea")
                paper.keyboard.press("Control+A")
                paper.keyboard.press("Control+C")
                self.page.bring_to_front()
                self.page.locator(button).nth(number).click()
                self.page.wait_for_timeout(pause)
                paper.bring_to_front()
                paper.focus("textarea")
                paper.keyboard.press("Control+A")
                paper.keyboard.press("Control+V")
                result = paper.input_value("textarea")
                if result != NOTHING:
                    break
            found.append("" if result == NOTHING else result)
        paper.close()
        return found

    def open_all(self) -> None:
        """Open everything that opens."""
        self.page.evaluate("() => document.querySelectorAll('details').forEach(d => d.open = true)")


class Chromium:
    """The browser, which opens a page as often as one likes: each in a world of its own."""

    def __init__(self, browser: Any, folder: Path) -> None:
        self.browser = browser
        self.folder = folder

    @contextmanager
    def open(
        self,
        file: Path,
        width: int = 1400,
        *,
        height: int = 900,
        dark: bool = False,
        script: bool = True,
        paper: bool = False,
        scale: float = 1,
        after: str = "",
    ) -> Iterator[OpenPage]:
        """A file. script: whether the page's own is run. paper: as it is printed. after: "#…"."""
        context = self.browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
            java_script_enabled=script,
            device_scale_factor=scale,
            offline=True,
        )
        try:
            opened = OpenPage(context)
            if paper:
                opened.page.emulate_media(media="print")
            opened.page.goto(file.resolve().as_uri() + after)
            yield opened
        finally:
            context.close()


@contextmanager
def started(folder: Path) -> Iterator[Chromium]:
    """The browser, with its profile in ``folder``; skips where there is none. Nothing of it stays."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed here")
    command = next(filter(None, map(shutil.which, NAMES)), None)
    if command is None:
        pytest.skip("there is no Chromium on this machine")
    (folder / "tmp").mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder / "tmp"))  # where profiles lie
        playwright = api.sync_playwright().start()
    try:
        try:
            browser = playwright.chromium.launch(executable_path=command, args=FLAGS)
        except api.Error as error:
            pytest.skip(f"{command} does not start: {str(error).splitlines()[0]}")
        yield Chromium(browser, folder)
        browser.close()
    finally:
        playwright.stop()
        wait_for(lambda: not running(folder))
        left = running(folder)
        for pid, _parent, _command in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)
        assert not left, "processes of the browser stayed"


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """A browser for the tests of a file."""
    with started(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@cache
def _axe_source() -> str:
    package = pytest.importorskip("axe_playwright_python", reason="axe-core is not installed here")
    return (Path(os.fspath(package.__path__[0])) / "axe.min.js").read_text()
