"""A session, a store and a fetcher that live in memory, for the tests of the loopback index."""

from __future__ import annotations

import hashlib
import io
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from envcheck.exit_codes import CouldNotLook
from envcheck.install.lockfile import LockedFile
from envcheck.install.network.addresses import public
from envcheck.install.network.public_index import PublicIndex

JSON = "application/vnd.pypi.simple.v1+json"
PUBLIC = PublicIndex(url="https://public.example/simple", origin="a test")


class Refused(CouldNotLook):
    def __init__(self, status: int | None, sentence: str = "the host says no") -> None:
        super().__init__(sentence)
        self.status = status


class Response:
    def __init__(self, status: int, body: bytes, headers: dict[str, str], url: str) -> None:
        self.status_code = status
        self.content = body
        self.headers = headers
        self.url = url

    def __enter__(self) -> Response:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def iter_content(self, size: int) -> Iterator[bytes]:
        for start in range(0, len(self.content), size):
            yield self.content[start : start + size]


class Session:
    """Serves ``pages``: by URL a body, its type and, if it is redirected, its URL; or a refused status."""

    def __init__(self, pages: dict[str, Any], *, ranges: bool = True) -> None:
        self.pages = pages
        self.ranges = ranges
        self.asked: list[tuple[str, str]] = []  # URL and range
        self.learnt: list[tuple[str, str]] = []

    def public(self, url: str) -> str:
        return public(url)

    def learn(self, url: str, index: str = "") -> None:
        self.learnt.append((url, index))

    def get(self, url: str, *, headers: Any = None, **_: Any) -> Response:
        asked = (headers or {}).get("Range", "")
        self.asked.append((url, asked))
        found = self.pages.get(url, 404)
        if isinstance(found, int):
            raise Refused(found, f"{public(url)} answers {found}")
        if isinstance(found, Exception):
            raise found
        body, kind, *moved = found
        if moved:  # redirected
            url = moved[0]
        if asked and self.ranges:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start = int(first) if first else max(0, len(body) - int(last))
            part = body[start : int(last) + 1] if first and last else body[start:]
            span = f"bytes {start}-{start + len(part) - 1}/{len(body)}"
            return Response(206, part, {"Content-Type": kind, "Content-Range": span}, url)
        headers = {"Content-Type": kind, "Content-Length": str(len(body))}
        return Response(200, body, headers, url)

    def head(self, url: str) -> Response:
        answer = self.get(url)
        answer.content = b""
        return answer


class Store:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.kept: dict[str, bytes] = {}

    def path(self, sha256: str) -> Path:
        return self.root / sha256

    def partial(self, sha256: str) -> Path:
        return self.root / f"{sha256}.partial"

    def has(self, sha256: str) -> bool:
        return self.path(sha256).exists()

    def open(self, sha256: str) -> BinaryIO:
        return self.path(sha256).open("rb")

    def adopt(self, file: Path, sha256: str) -> Path:
        assert hashlib.sha256(file.read_bytes()).hexdigest() == sha256
        return Path(shutil.copyfile(file, self.path(sha256)))

    def metadata(self, sha256: str) -> bytes | None:
        return self.kept.get(sha256)

    def put_metadata(self, sha256: str, data: bytes) -> None:
        self.kept[sha256] = data


class Transfer:
    """A file of which ``there`` bytes have come; ``error``: what the rest ends in."""

    def __init__(
        self, path: Path, there: int | None = None, error: Exception | None = None
    ) -> None:
        self.path = path
        self.total: int | None = path.stat().st_size
        self.there = self.total if there is None else there
        self.error = error

    @property
    def complete(self) -> bool:
        return self.there == self.path.stat().st_size

    def available(self) -> int:
        return self.there or 0

    def wait_beyond(self, offset: int, timeout: float) -> int:
        if self.error is not None and offset >= self.available():
            raise self.error
        return self.available()

    def open(self) -> BinaryIO:
        return self.path.open("rb")


class Fetcher:
    """Has every file of the session at once."""

    def __init__(self, session: Session, store: Store) -> None:
        self.session = session
        self.store = store
        self.wanted: list[LockedFile] = []

    def want(self, file: LockedFile, *, first: bool = False) -> Transfer:
        self.wanted.append(file)
        path = self.store.path(file.sha256)
        if not path.exists():
            path.write_bytes(self.session.get(file.url).content)
        return Transfer(path)


def wheel(name: str, version: str, *, padding: int = 0, requires: tuple[str, ...] = ()) -> bytes:
    """The bytes of a wheel; ``padding``: bytes between its code and its METADATA and behind that."""
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {need}" for need in requires]
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(f"{name.replace('-', '_')}.py", "x" * padding)
        archive.writestr(f"{info}/METADATA", "\n".join(lines) + "\n")
        archive.writestr(f"{info}/licence", "y" * padding)
    return out.getvalue()


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
