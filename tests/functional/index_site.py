"""What a package index serves, as plain files: simple pages in HTML and JSON, metadata, the files themselves.

simple/NAME/index.html · simple/NAME/index.json · files/FILE · files/FILE.metadata
"""

from __future__ import annotations

import html
import json
import re
import shutil
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from email.parser import HeaderParser
from hashlib import sha256 as digest
from pathlib import Path
from typing import Any
from urllib.parse import quote

from wheel_maker import sha256

JSON_TYPE = "application/vnd.pypi.simple.v1+json"


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What the index tells of its files; real ones differ in all of it."""

    json: bool = True  # besides HTML
    yanked: Mapping[str, str] = field(default_factory=dict)  # file name → why


class Site:
    """A folder of files (``files``) as an index in ``root``. ``write`` again after the folder changed."""

    def __init__(self, files: Path, root: Path, offer: Offer) -> None:
        self.files = files
        self.root = root
        self.offer = offer

    def write(self) -> None:
        projects: dict[str, list[dict[str, Any]]] = {}
        shutil.rmtree(self.root, ignore_errors=True)
        (self.root / "files").mkdir(parents=True, exist_ok=True)
        for path in sorted(self.files.iterdir()):
            if path.name.endswith((".whl", ".tar.gz", ".zip")):
                projects.setdefault(project_of(path.name), []).append(self._entry(path))
        simple = self.root / "simple"
        self._write(simple, {"projects": [{"name": name} for name in projects]}, _root_page)
        for name, entries in projects.items():
            self._write(simple / name, self._document(name, entries), _project_page)

    def _entry(self, path: Path) -> dict[str, Any]:
        """One file as the JSON API has it, and put where it is served from."""
        served = self.root / "files" / path.name
        served.symlink_to(path.resolve())
        metadata = metadata_of(path)
        entry: dict[str, Any] = {"filename": path.name, "url": f"../../files/{quote(path.name)}"}
        entry["hashes"] = {"sha256": sha256(path)}
        python = HeaderParser().parsestr(metadata.decode())["Requires-Python"]
        if python:
            entry["requires-python"] = python
        entry["size"] = path.stat().st_size
        if path.name in self.offer.yanked:
            entry["yanked"] = self.offer.yanked[path.name] or True
        if path.name.endswith(".whl"):  # PEP 658: its METADATA as a file of its own
            served.with_name(f"{path.name}.metadata").write_bytes(metadata)
            hashes = {"sha256": digest(metadata).hexdigest()}
            entry["core-metadata"] = entry["dist-info-metadata"] = hashes
        return entry

    def _document(self, name: str, entries: list[dict[str, Any]]) -> dict[str, Any]:
        versions = sorted({version_of(entry["filename"]) for entry in entries})
        return {"name": name, "versions": versions, "files": entries}

    def _write(self, folder: Path, document: dict[str, Any], page: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "index.html").write_text(page(document))
        if self.offer.json:
            whole = {"meta": {"api-version": "1.1"}, **document}
            (folder / "index.json").write_text(json.dumps(whole))


def project_of(filename: str) -> str:
    """The normalised name in a file's name."""
    if filename.endswith(".whl"):
        name = filename.partition("-")[0]
    else:
        name = filename.removesuffix(".tar.gz").removesuffix(".zip").rpartition("-")[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def version_of(filename: str) -> str:
    if filename.endswith(".whl"):
        return filename.split("-")[1]
    return filename.removesuffix(".tar.gz").removesuffix(".zip").rpartition("-")[2]


def metadata_of(path: Path) -> bytes:
    """METADATA of a wheel, PKG-INFO of a source distribution; empty where the file is broken."""
    try:
        if path.name.endswith(".whl"):
            with zipfile.ZipFile(path) as wheel:
                names = (n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
                (inside,) = (name for name in names if name.count("/") == 1)  # not a vendored one
                return wheel.read(inside)
        with tarfile.open(path) as archive:
            for member in archive:
                if member.name.count("/") == 1 and member.name.endswith("/PKG-INFO"):
                    file = archive.extractfile(member)
                    return file.read() if file else b""
    except (zipfile.BadZipFile, tarfile.TarError, ValueError):
        pass
    return b""


def _root_page(document: dict[str, Any]) -> str:
    names = (project["name"] for project in document["projects"])
    return _page(f'<a href="{name}/">{name}</a><br/>' for name in names)


def _project_page(document: dict[str, Any]) -> str:
    return _page(_link(entry) for entry in document["files"])


def _page(lines: Iterator[str]) -> str:
    body = "\n".join(lines)
    return (
        f"<!DOCTYPE html>\n<html><head><title>index</title></head><body>\n{body}\n</body></html>\n"
    )


def _link(entry: dict[str, Any]) -> str:
    attributes = [f'href="{entry["url"]}#sha256={entry["hashes"]["sha256"]}"']
    if "requires-python" in entry:
        attributes.append(f'data-requires-python="{html.escape(entry["requires-python"])}"')
    if "yanked" in entry:
        why = "" if entry["yanked"] is True else html.escape(entry["yanked"])
        attributes.append(f'data-yanked="{why}"')
    if "core-metadata" in entry:
        value = f"sha256={entry['core-metadata']['sha256']}"
        attributes += [f'data-core-metadata="{value}"', f'data-dist-info-metadata="{value}"']
    return f"<a {' '.join(attributes)}>{entry['filename']}</a><br/>"
