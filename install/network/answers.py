"""What becomes of an answer: an error, a place to go on from, or a body that is read at once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urljoin

import msgspec

from ...safe_text import one_line
from . import addresses, errors
from .access import Access
from .errors import HttpError
from .retries import retry_after
from .transport import Answer

SMALL = 1 << 20  # bytes: read whole at once, so that a cut in them is mended by another attempt
_PAGE_LIMIT = 64 << 20  # bytes of a page
_PAGE_SECONDS = 120.0  # for all of it
_EXPLAINED = (401, 403, 404, 429)
_MOST_SAID = 1 << 16  # bytes of a refusal
_SAID_SECONDS = 10.0  # in which it has to be there
_PAGES = ("text/html", "application/xhtml", "application/json", "application/vnd.pypi.simple")


class _OneError(msgspec.Struct):
    message: str = ""
    code: str = ""


class _Refusal(msgspec.Struct):
    errors: list[_OneError] = []
    message: str = ""
    details: str = ""


def target(url: str, location: str) -> str:
    """Where a redirect leads, without credentials. Raises HttpError for what is not an address."""
    # Header bytes come as Latin-1, and are UTF-8 where they are not ASCII.
    text = location.encode("latin-1", "replace").decode("utf-8", "replace")
    try:
        return addresses.public(urljoin(url, text))
    except ValueError:
        raise HttpError(
            f"{addresses.shown(url)} redirects to something that is not an address"
        ) from None


def checked(answer: Answer, file: bool, access: Access) -> Answer:
    """Raises HttpError for a status that is an error, and for a page in the place of a file."""
    if answer.status_code < 300 or answer.status_code == 304:
        if file and _kind(answer).startswith(("text/html", "application/xhtml")):
            answer.close()
            raise errors.page_for_file(answer.url)
        return answer
    said = _said(answer)
    answer.close()
    raise errors.of_status(
        answer.url,
        answer.status_code,
        answer.headers,
        wait=retry_after(answer.headers),
        credentials=access.hint(answer.url) if answer.status_code in (401, 403) else "",
        said=said,
    )


def read(answer: Answer, limit: int | None) -> Answer:
    """Load what is small. Raises HttpError where it breaks off or does not end."""
    length = content_length(answer.headers)
    small = length is not None and length <= SMALL
    if small or limit is not None or _kind(answer).startswith(_PAGES):
        answer.limit = limit or _PAGE_LIMIT
        answer.seconds = _PAGE_SECONDS
        _ = answer.content  # it stays in the answer
    return answer


def _said(answer: Answer) -> str:
    """What a registry or an index says of its refusal in JSON: {"errors": [{"message": …}]}."""
    if answer.status_code not in _EXPLAINED or "json" not in _kind(answer):
        return ""
    answer.limit, answer.seconds = _MOST_SAID, _SAID_SECONDS
    try:
        told = msgspec.json.decode(answer.content, type=_Refusal)
    except (HttpError, msgspec.DecodeError, RecursionError, *errors.FAILURES):
        return ""
    words = [one.message or one.code for one in told.errors] or [told.message or told.details]
    return one_line("; ".join(dict.fromkeys(filter(None, words)))).rstrip(".")


def content_length(headers: Mapping[str, str]) -> int | None:
    """Bytes, by the Content-Length header; None where it is not there or no length."""
    said = headers.get("Content-Length", "")
    return int(said) if re.fullmatch("[0-9]{1,18}", said) else None


def _kind(answer: Answer) -> str:
    return answer.headers.get("Content-Type", "").strip().lower()
