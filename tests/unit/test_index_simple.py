"""Project pages, read and written: JSON, HTML of any age, and what is no project page."""

from __future__ import annotations

import json
from typing import Any

import pytest
from packaging.version import Version

from envcheck.install.index import page
from envcheck.install.index.simple import IndexBroken, ProjectFile, parse

PAGE = "https://user:secret@index.example/simple/torch/"
SHA = "ab" * 32
OTHER = "cd" * 32
JSON = "application/vnd.pypi.simple.v1+json"


def html(body: str, kind: str = "text/html") -> list[ProjectFile]:
    return parse(body.encode(), kind, PAGE)


def json_page(*files: dict[str, Any], version: Any = "1.1") -> list[ProjectFile]:
    body = {"meta": {"api-version": version}, "name": "torch", "files": files}
    return parse(json.dumps(body).encode(), JSON, PAGE)


def test_an_html_page() -> None:
    (file,) = html(
        f'<!DOCTYPE html><a href="../../f/torch-1.0%2Bnv23.3-77-cp38-cp38-linux_x86_64.whl#sha256={SHA}" '
        f'data-requires-python="&gt;=3.8" data-yanked="slow &amp; sad" '
        f'data-dist-info-metadata="sha256={OTHER}">torch</a>'
    )
    assert file.filename == "torch-1.0+nv23.3-77-cp38-cp38-linux_x86_64.whl"
    assert file.url == (
        "https://user:secret@index.example/f/torch-1.0%2Bnv23.3-77-cp38-cp38-linux_x86_64.whl"
    )
    assert (file.name, str(file.version)) == ("torch", "1.0+nv23.3")
    assert (file.sha256, file.metadata, file.platform) == (SHA, OTHER, "linux_x86_64")
    assert (file.requires_python, file.yanked) == (">=3.8", "slow & sad")
    assert file.size is None and file.kind == "wheel"


def test_a_yanked_file_without_a_reason_is_yanked() -> None:
    (file,) = html('<a href="torch-1.0.tar.gz" data-yanked>torch</a>')
    assert file.yanked is True and file.kind == "sdist"


def test_links_are_relative_to_the_base_that_a_page_names() -> None:
    (file,) = html('<base href="https://files.example/x/"><a href="torch-1.0.zip">torch</a>')
    assert file.url == "https://files.example/x/torch-1.0.zip"


def test_the_newer_name_of_the_metadata_wins() -> None:
    (file,) = html(
        f'<a href="t-1-py3-none-any.whl" data-core-metadata="sha256={SHA}" '
        f'data-dist-info-metadata="true">t</a>'
    )
    assert file.metadata == SHA
    (file,) = json_page(
        {
            "filename": "t-1-py3-none-any.whl",
            "url": "x",
            "hashes": {},
            "core-metadata": {"sha256": SHA},
            "dist-info-metadata": True,
        }
    )
    assert file.metadata == SHA


@pytest.mark.parametrize("value", ["false", None])
def test_metadata_that_is_not_there(value: str | None) -> None:
    given = "" if value is None else f'data-core-metadata="{value}"'
    (file,) = html(f'<a href="t-1-py3-none-any.whl" {given}>t</a>')
    assert file.metadata == ""


def test_another_hash_is_kept_beside_a_missing_sha256() -> None:
    (file,) = html('<a href="t-1-py3-none-any.whl#md5=ABCDEF">t</a>')
    assert (file.sha256, file.other_hash) == ("", "md5=abcdef")
    (file,) = html('<a href="t-1-py3-none-any.whl#sha256=tooshort">t</a>')
    assert file.sha256 == ""


def test_a_json_page() -> None:
    (file,) = json_page(
        {
            "filename": "torch-1.0-py3-none-any.whl",
            "url": "/f/torch-1.0-py3-none-any.whl",
            "hashes": {"sha256": SHA.upper(), "md5": "00"},
            "requires-python": None,
            "size": 12,
            "yanked": "bad",
            "provenance": "ignored",
        }
    )
    assert file.url == "https://user:secret@index.example/f/torch-1.0-py3-none-any.whl"
    assert (file.sha256, file.other_hash, file.size, file.yanked) == (SHA, "", 12, "bad")


@pytest.mark.parametrize(
    "filename", ["x-1.0.win32-py2.4.exe", "x-1-py2.7.egg", "broken.whl", "x.tar.gz", "x-abc.zip"]
)
def test_what_is_no_distribution_has_no_version(filename: str) -> None:
    (file,) = json_page({"filename": filename, "url": "x", "hashes": {}})
    assert file.version is None


def test_an_empty_project_is_no_error() -> None:
    assert html("<!DOCTYPE html><html><body><h1>Links for x</h1></body></html>") == []
    assert html('<meta name="pypi:repository-version" content="1.3"><a href="/">home</a>') == []
    assert json_page() == []


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/html", "<html><title>Sign in</title><form><input name=user></form></html>"),
        ("text/html", "<html><script>location='/login'</script></html>"),
        ("text/html", '<a href="https://proxy.example/accept">Accept our terms</a>'),
        ("text/html", '<meta http-equiv="Refresh" content="0; url=/login">'),
        ("text/html", "Service temporarily unavailable"),
        ("text/plain", "torch-1.0.tar.gz"),
        ("", ""),
        (JSON, "{"),
        (JSON, '{"files": 3}'),
        (JSON, '{"meta": {"api-version": "2.0"}, "files": []}'),
        (JSON, '{"meta": {"api-version": 1}, "files": []}'),
        ("text/html", '<meta name="pypi:repository-version" content="2.0"><a href="/">home</a>'),
    ],
)
def test_what_is_no_project_page_is_said(kind: str, body: str) -> None:
    with pytest.raises(IndexBroken) as caught:
        parse(body.encode(), kind, PAGE)
    assert "https://index.example/simple/torch/" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_the_title_of_a_login_page_is_named() -> None:
    with pytest.raises(IndexBroken, match=r'\("Sign in"\)'):
        html("<title>Sign\n in</title><form></form>")


FILES = [
    ProjectFile(
        filename="t-1-py3-none-any.whl",
        url="u",
        sha256=SHA,
        size=5,
        requires_python=">=3.8,<4",
        yanked='a "bad" one',
        metadata=OTHER,
    ),
    ProjectFile(filename="t-1.tar.gz", url="u", sha256=OTHER, size=6),
]


def link(file: ProjectFile) -> str:
    return f"../../files/{file.sha256}/{file.filename}"


def test_what_is_written_is_read_again_the_same() -> None:
    for kind, written in (
        (JSON, page.as_json("t", FILES, link)),
        ("text/html", page.as_html("t", FILES, link)),
    ):
        read = parse(written, kind, "http://h/simple/t/")
        assert [file.filename for file in read] == ["t-1-py3-none-any.whl", "t-1.tar.gz"]
        assert read[0].url == f"http://h/files/{SHA}/t-1-py3-none-any.whl"
        for file, original in zip(read, FILES, strict=True):
            assert file.sha256 == original.sha256
            assert file.requires_python == original.requires_python
            assert file.yanked == original.yanked
            assert file.metadata == original.metadata


def test_json_lists_the_versions_that_are_known() -> None:
    known = ProjectFile(filename="t-1.tar.gz", url="u", version=Version("1"))
    assert json.loads(page.as_json("t", [known, FILES[1]], link))["versions"] == ["1"]


def test_json_announces_metadata_under_the_new_key_alone() -> None:
    entry = json.loads(page.as_json("t", FILES, link))["files"][0]
    assert entry["core-metadata"] == {"sha256": OTHER}
    assert "dist-info-metadata" not in entry


def test_json_says_1_1_only_where_all_sizes_are_known() -> None:
    unsized = [FILES[0], ProjectFile(filename="t-2.tar.gz", url="u")]
    assert json.loads(page.as_json("t", FILES, link))["meta"]["api-version"] == "1.1"
    assert json.loads(page.as_json("t", unsized, link))["meta"]["api-version"] == "1.0"


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("application/vnd.pypi.simple.v1+json", True),
        (f"{JSON}, application/vnd.pypi.simple.v1+html; q=0.1, text/html; q=0.01", True),
        (f"text/html, {JSON};q=0.5", False),
        ("text/html", False),
        ("*/*", False),
        ("", False),
    ],
)
def test_the_form_that_a_client_asks_for(accept: str, wanted: bool) -> None:
    assert page.wants_json(accept) is wanted


def test_links_that_are_no_address_are_said() -> None:
    page_of = '<html><body><a href="//[x/a-1.0-py3-none-any.whl">a</a></body></html>'
    with pytest.raises(IndexBroken, match="a link that is not an address"):
        parse(page_of.encode(), "text/html", "https://index.test/simple/a/")
    based = (
        '<html><head><base href="http://[x"></head>'
        '<body><a href="a-1.0-py3-none-any.whl">a</a></body></html>'
    )
    (file,) = parse(based.encode(), "text/html", "https://index.test/simple/a/")
    assert file.url == "https://index.test/simple/a/a-1.0-py3-none-any.whl"
