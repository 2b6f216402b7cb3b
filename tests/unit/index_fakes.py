"""A session that lives in memory, for the tests of a stack's indexes."""

from __future__ import annotations

from typing import Any

from envcheck.exit_codes import CouldNotLook
from envcheck.install.network.addresses import public
from envcheck.install.network.public_index import PublicIndex

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

    def close(self) -> None:
        pass


class Session:
    """Serves ``pages``: by URL a body, its type and, if it is redirected, its URL; or a refused status."""

    def __init__(self, pages: dict[str, Any]) -> None:
        self.pages = pages
        self.asked: list[str] = []
        self.learnt: list[tuple[str, str]] = []

    def public(self, url: str) -> str:
        return public(url)

    def learn(self, url: str, index: str = "") -> None:
        self.learnt.append((url, index))

    def permit(self, url: str) -> None:
        """Everything is allowed."""

    def get(self, url: str, **_: Any) -> Response:
        self.asked.append(url)
        found = self.pages.get(url, 404)
        if isinstance(found, int):
            raise Refused(found, f"{public(url)} answers {found}")
        if isinstance(found, Exception):
            raise found
        body, kind, *moved = found
        if moved:  # redirected
            url = moved[0]
        headers = {"Content-Type": kind, "Content-Length": str(len(body))}
        return Response(200, body, headers, url)
