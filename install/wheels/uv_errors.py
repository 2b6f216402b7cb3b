"""uv's explanations, as one sentence."""

from __future__ import annotations

import re
from typing import Any

# "× No solution found …", "╰─▶ Because …" of older ones; "error: …", "  cause: …" of newer ones.
_DECORATION = re.compile(r"^\s*(?:[×│╰├─▶>]+\s*)*(?:error:|cause:|Caused by:|Caused by)?\s*")
_CHATTER = (
    "Resolved ",
    "Using ",
    "Downloading ",
    "Downloaded ",
    "Prepared ",
    "Building ",
    "Built ",
)
# Between the paragraphs of a long explanation, of which the last ones are shown.
_REFERENCE = re.compile(r"we know from \(\d+\)(?: and \(\d+\))* that | ?\(\d+\)(?=[.,]|$)")
_LENGTH = 900  # characters: more is no sentence; the log has all of it


def sentence(result: Any) -> str:
    """What became of a ``process.Result`` of uv's: its last cause, without its hints."""
    if result.outcome != "exited" or result.code < 0:
        return f"it {result.describe()}"
    return explanation(result.stderr.decode("utf-8", "replace")) or f"it {result.describe()}"


def explanation(stderr: str) -> str:
    """The last paragraph of the explanation that uv writes to stderr; "" where there is none."""
    causes: list[list[str]] = []
    for line in _explaining(stderr):
        words = _DECORATION.sub("", line).strip()
        starts = re.match(r"\s*(?:[×╰├]|error:|cause:|Caused by)", line) or words.startswith(
            ("And because ", "Because ")
        )
        if not words:
            continue
        if starts or not causes:
            causes.append([words])
        else:
            causes[-1].append(words)
    last = _last([" ".join(lines) for lines in causes])
    whole = " ".join(_REFERENCE.sub("", " ".join(last.split())).split())
    # Not the advice on uv's own variables, which do not reach it here.
    text = ". ".join(one for one in whole.split(". ") if "`UV_" not in one).rstrip(".:")
    text = re.sub(r"^And because ", "Because ", text)
    return text if len(text) <= _LENGTH else f"{text[:_LENGTH]} …"


def hints(stderr: str) -> list[str]:
    """uv's own hints, a line each; none that speaks of its options, which are not envcheck's."""
    found = re.findall(r"^[ \t]*hint:[ \t]*(.+(?:\n[ \t]{6,}\S.*)*)", stderr, re.MULTILINE)
    return [" ".join(hint.split()) for hint in found if "`--" not in hint and "`uv" not in hint]


def _explaining(stderr: str) -> list[str]:
    lines = []
    for line in stderr.splitlines():
        if line.lstrip().startswith(("hint:", "help:")):
            break
        if not line.startswith(_CHATTER):
            lines.append(line)
    return lines


def _last(causes: list[str]) -> str:
    """The last cause, with the one before it where it only says what is concluded from that."""
    if not causes:
        return ""
    if causes[-1].startswith("And because ") and len(causes) > 1:
        return f"{causes[-2]} {causes[-1]}"
    return causes[-1]
