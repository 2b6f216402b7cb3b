"""The Range header of HTTP, as far as it is served: one range of bytes (RFC 9110, section 14)."""

from __future__ import annotations

import re


class Unsatisfiable(ValueError):
    """The range begins behind the end of the file."""


def parse(header: str, size: int) -> tuple[int, int] | None:
    """First byte and number of bytes; None: the whole file, which answers what is not understood too.

    size: of the file in bytes. Raises Unsatisfiable.
    """
    found = re.fullmatch(r"\s*bytes\s*=\s*(?:(\d{1,18})\s*)?-\s*(?:(\d{1,18})\s*)?", header)
    if found is None or not (found[1] or found[2]):
        return None
    if not found[1]:
        length = min(int(found[2]), size)
        if not length:
            raise Unsatisfiable
        return size - length, length
    first = int(found[1])
    last = min(int(found[2]), size - 1) if found[2] else size - 1
    if found[2] and int(found[2]) < first:
        return None
    if first >= size:
        raise Unsatisfiable
    return first, last - first + 1
