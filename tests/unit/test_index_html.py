"""HTML pages: a stretch of plain links is read by one expression, to the same effect as by html.parser."""

from __future__ import annotations

import pytest

from envcheck.install.index import html_page
from envcheck.install.index.simple import IndexBroken, parse

URL = "https://index.example/simple/t/"
SHA = "ab" * 32
HEAD = "<!DOCTYPE html>\n<html><head><title>Links for t</title></head><body><h1>Links for t</h1>\n"
LINK = (
    f'<a href="https://f.example/t-1-py3-none-any.whl#sha256={SHA}">t-1-py3-none-any.whl</a><br/>\n'
)
MORE = (
    '<a href="../t-2%2Bcu1.tar.gz" data-requires-python="&gt;=3.8,&lt;4" data-yanked="a &quot;bad&quot;'
    ' one">t-2+cu1.tar.gz</a>\n'
)
FULL = (
    f'<a href="t-3-py3-none-any.whl" rel="internal" data-core-metadata="sha256={SHA}" >t</a><br />'
)

PLAIN = {
    "a page": HEAD + LINK + MORE + FULL + "</body></html>\n<!--SERIAL 7-->",
    "links alone": LINK + MORE,
    "another base": f'<html><head><base href="https://b.example/x/"></head>{MORE}',
    "the API's version": f'<meta name="pypi:repository-version" content="1.0">{LINK}',
}
OTHER = {
    "a link in a comment": f"{HEAD}<!-- {LINK} -->{MORE}",
    "all plain links in a comment": f"{HEAD}<!-- {LINK}--><A HREF='t-4.zip'>t</A>",
    "all plain links in a script": f"<script>{LINK}</script><A HREF='t-4.zip'>t</A>",
    "a script before the links": f"<script>var a = '<a href=\"x.whl\">';</script>{LINK}",
    "a title that does not end": f"<title>{LINK}",
    "a form between the links": f"{HEAD}{LINK}<form></form>{MORE}",
    "other quotes": f"{HEAD}{LINK}<a href='t-4.zip'>t</a>",
    "no quotes": f"{HEAD}{LINK}<a href=t-4.zip>t</a>",
    "capital letters": f'{HEAD}{LINK}<A HREF="t-4.zip">t</A>',
    "an attribute without a value": f'{HEAD}{LINK}<a href="t-4.zip" data-yanked>t</a>',
    "bold text in a link": f'{HEAD}{LINK}<a href="t-4.zip"><b>t</b></a>{MORE}',
}


@pytest.mark.parametrize("text", [*PLAIN.values(), *OTHER.values()], ids=[*PLAIN, *OTHER])
def test_both_ways_of_reading_find_the_same(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = parse(text.encode(), "text/html", URL)
    monkeypatch.setattr(html_page, "_plain", lambda text: (0, 0, []))
    assert quick and quick == parse(text.encode(), "text/html", URL)


@pytest.mark.parametrize("text", PLAIN.values(), ids=PLAIN)
def test_a_page_of_a_program_is_read_the_quick_way(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html_page.HtmlPage, "handle_starttag", _no_links)
    assert parse(text.encode(), "text/html", URL)


def _no_links(page: object, tag: str, attrs: object) -> None:
    assert tag != "a", "html.parser was left a link"


def test_values_are_decoded() -> None:
    wheel, sdist, _ = parse(PLAIN["a page"].encode(), "text/html", URL)
    assert (wheel.sha256, wheel.requires_python) == (SHA, "")
    assert (sdist.url, str(sdist.version)) == (
        "https://index.example/simple/t-2%2Bcu1.tar.gz",
        "2+cu1",
    )
    assert (sdist.requires_python, sdist.yanked) == (">=3.8,<4", 'a "bad" one')


def test_links_that_are_no_files_make_no_project_page() -> None:
    text = '<a href="/accept">Accept our terms</a>\n<a href="/help">Help</a>\n'
    with pytest.raises(IndexBroken, match="no list of files"):
        parse(text.encode(), "text/html", URL)
