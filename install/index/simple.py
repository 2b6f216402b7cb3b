"""Reads a project's page of a package index, JSON or HTML.

The formats: PEP 503 (HTML), PEP 691 and 700 (JSON), PEP 592 (yanked), PEP 629 (versions of the API),
PEP 658 and 714 (metadata beside the wheel).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal
from urllib.parse import unquote, urljoin, urlsplit

import msgspec
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from ...exit_codes import CouldNotLook
from .html_page import HtmlPage, too_tangled

JSON_TYPE = "application/vnd.pypi.simple.v1+json"
HTML_TYPE = "application/vnd.pypi.simple.v1+html"
# Asks for a page; packed, since one of megabytes shrinks to a tenth.
HEADERS = {
    "Accept": f"{JSON_TYPE}, {HTML_TYPE};q=0.2, text/html;q=0.1",
    "Accept-Encoding": "gzip, deflate",
}

_SDIST = (".tar.gz", ".zip", ".tar.bz2", ".tar.xz", ".tgz", ".tar.Z", ".tar")
_OTHER_HASHES = ("sha512", "sha384", "sha1", "md5")
_OTHER = (".egg", ".exe", ".msi", ".rpm", ".deb", ".dmg")
_FILES = (".whl", *_SDIST, *_OTHER)
_SHA256 = re.compile(r"[0-9a-f]{64}")
_METADATA = re.compile(r"true|[0-9a-f]{64}|")


class IndexBroken(CouldNotLook):
    """An index answered, and what it answered is no project page."""


class ProjectFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file that an index offers. ``size`` is in bytes; None where the index does not say."""

    filename: str
    url: str  # may hold credentials: for fetching, never for showing
    sha256: str = ""  # hexadecimal
    other_hash: str = ""  # "md5=0123…", where there is not a sha256
    size: int | None = None
    requires_python: str = ""
    yanked: bool | str = False  # the reason, where there is one
    metadata: str = ""  # sha256 of the metadata file beside the wheel; "true": it is there; "": not
    name: str = ""  # normalised, from the file's name
    version: Version | None = None
    platform: str = ""  # of a wheel: "any", "manylinux_2_17_x86_64.manylinux2014_x86_64"
    learnt: bool = False  # the sha256 is not the index's: envcheck fetched the file and reckoned it

    @property
    def kind(self) -> Literal["wheel", "sdist", "other"]:
        if self.filename.endswith(".whl"):
            return "wheel"
        return "sdist" if self.filename.endswith(_SDIST) else "other"


def parse(body: bytes, content_type: str, url: str) -> list[ProjectFile]:
    """The files of a project's page, in the page's order.

    url: where the page came from after redirects; links are relative to it. Raises IndexBroken for what
    is no project page, such as the HTML of a login page or a proxy.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind in (JSON_TYPE, "application/json"):
        return _parse_json(body, url)
    if kind in (HTML_TYPE, "text/html", "application/xhtml+xml"):
        return _parse_html(body, content_type, url)
    raise IndexBroken(f"{_shown(url)} answers {kind or 'without a content type'}: no project page")


@lru_cache(maxsize=8192)
def parse_version(text: str) -> Version | None:
    """A page names a version once for each of its files."""
    try:
        return Version(text)
    except InvalidVersion:
        return None


class _JsonFile(msgspec.Struct, rename="kebab"):
    filename: str
    url: str
    hashes: dict[str, str] = {}
    requires_python: str | None = None
    size: int | None = None
    yanked: bool | str | None = None
    core_metadata: bool | dict[str, str] | None = None
    dist_info_metadata: bool | dict[str, str] | None = None


class _JsonPage(msgspec.Struct):
    files: list[_JsonFile]
    meta: dict[str, msgspec.Raw] = {}


def _parse_json(body: bytes, url: str) -> list[ProjectFile]:
    try:
        page = msgspec.json.decode(body, type=_JsonPage)
        version = msgspec.json.decode(page.meta.get("api-version", b'"1.0"'), type=str)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise IndexBroken(f"{_shown(url)} answers a broken project page: {error}") from None
    _require_api(version, url)
    return [_from_json(file, url) for file in page.files]


def _from_json(file: _JsonFile, url: str) -> ProjectFile:
    metadata = file.core_metadata if file.core_metadata is not None else file.dist_info_metadata
    if isinstance(metadata, dict):
        beside = metadata.get("sha256", "true").lower()
    else:
        beside = "true" if metadata else ""
    return _project_file(
        file.filename,
        _absolute(file.url.partition("#")[0], url),
        hashes=file.hashes,
        size=file.size,
        requires_python=file.requires_python or "",
        yanked=file.yanked or False,
        metadata=beside,
    )


def _parse_html(body: bytes, content_type: str, url: str) -> list[ProjectFile]:
    charset = re.search(r"charset=\"?([\w-]+)", content_type)
    try:
        text = body.decode(charset[1] if charset else "utf-8", "replace")
    except (LookupError, UnicodeError):  # none that Python knows; "idna" replaces nothing
        text = body.decode("utf-8", "replace")
    files: list[ProjectFile] = []
    strange = False

    def found(link: dict[str, str | None], base: str) -> None:
        nonlocal strange
        target = link.get("href")
        file = _from_link(target, link, base) if target else None
        if file is not None:
            files.append(file)
        elif target and not target.endswith("/"):  # a listing's link to the directory above
            strange = True

    if too_tangled(text):
        raise IndexBroken(f"{_shown(url)} answers something that is neither HTML nor JSON")
    page = HtmlPage(text, url, found)
    if page.api_version:
        _require_api(page.api_version, url)
    if not files and not page.api_version and (page.foreign or strange):
        raise IndexBroken(
            f"{_shown(url)} answers a web page{page.titled}, and no list of files",
            "A proxy or a login page stands in the index's place; open the address in a browser.",
        )
    if not files and not page.any_tag:
        raise IndexBroken(f"{_shown(url)} answers something that is neither HTML nor JSON")
    return files


def _from_link(href: str, link: dict[str, str | None], base: str) -> ProjectFile | None:
    target, _, fragment = href.partition("#")
    filename = target.partition("?")[0].rpartition("/")[2]
    if "%" in filename:
        filename = unquote(filename)
    if not filename.endswith(_FILES):
        return None
    beside = link.get("data-core-metadata", link.get("data-dist-info-metadata", "")) or ""
    return _project_file(
        filename,
        _absolute(target, base),
        hashes={k: v for part in fragment.split("&") for k, eq, v in [part.partition("=")] if eq},
        size=None,
        requires_python=link.get("data-requires-python") or "",
        yanked=(link["data-yanked"] or True) if "data-yanked" in link else False,
        metadata=beside.removeprefix("sha256=").lower() if beside != "false" else "",
    )


def _project_file(
    filename: str,
    url: str,
    *,
    hashes: dict[str, str],
    size: int | None,
    requires_python: str,
    yanked: bool | str,
    metadata: str,
) -> ProjectFile:
    sha256 = hashes.get("sha256", "").lower()
    if not _SHA256.fullmatch(sha256):
        sha256 = ""
    known = "" if sha256 else next((k for k in _OTHER_HASHES if hashes.get(k)), "")
    name, version, platform = _identify(filename)
    return ProjectFile(
        filename=filename,
        url=url,
        sha256=sha256,
        other_hash=f"{known}={hashes[known].lower()}" if known else "",
        size=size,
        requires_python=requires_python,
        yanked=yanked,
        metadata=metadata if _METADATA.fullmatch(metadata) else "true",
        name=name,
        version=version,
        platform=platform,
    )


def _absolute(target: str, base: str) -> str:
    # Pages of thousands of files have absolute links, and urljoin would take longer than all the rest.
    if target.startswith(("https://", "http://")):
        return target
    try:
        return urljoin(base, target)
    except ValueError:
        raise IndexBroken(
            f"{_shown(base)} has a link that is not an address: {target[:80]!r}"
        ) from None


def _identify(filename: str) -> tuple[str, Version | None, str]:
    """Name, version and platform tag that a file's name says; empty where it says none."""
    if filename.endswith(".whl"):
        parts = filename.removesuffix(".whl").split("-")
        if len(parts) not in (5, 6):
            return "", None, ""
        return _normalised(parts[0]), parse_version(parts[1]), parts[-1]
    suffix = next((s for s in _SDIST if filename.endswith(s)), "")
    name, dash, version = filename.removesuffix(suffix).rpartition("-")
    if not suffix or not dash:
        return "", None, ""
    return _normalised(name), parse_version(version), ""


@lru_cache(maxsize=1024)
def _normalised(name: str) -> str:
    return canonicalize_name(name)


def _require_api(version: str, url: str) -> None:
    if version.partition(".")[0] != "1":
        raise IndexBroken(f"{_shown(url)} speaks version {version} of the index API, not 1.x")


def _shown(url: str) -> str:
    """The URL without credentials and query, for a sentence."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
