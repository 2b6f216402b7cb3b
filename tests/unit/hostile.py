"""Texts that nobody means well with, and what none of them may do where they are shown."""

from __future__ import annotations

FORGED = "envcheck: all is fine"

TEXTS = {
    "escape sequence": "a\x1b[2J\x1b[1;1H\x1b]0;owned\x07",
    "link": "\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "colour": "\x1b[32mOK\x1b[0m\x1b[8mhidden",
    "C1": "a\x9b31m\x90q\x9c",
    "line end": f"a\n{FORGED}\nRUN touch /evil\n",
    "carriage return": f"a\r{FORGED}\x1b[K",
    "other line ends": f"a\x0b\x0c\x85\u2028\u2029{FORGED}",
    "directions": "a\u202egpj.\u2066b\u2069\u061c\u200e",
    "no width": "pay\u200b\u200c\u200d\u2060\ufeff\u00adpal",
    "invisible": "a\u115f\u3164\ufe0f\U000e0041\u2800",
    "nothing": "\0\x01\x08\x7f",
    "markup": "[red]x[/red][link=y]:smile: {0} %s $(id) `id` \\",
    "quotes": '"\'\\" $BASE ${BASE} <<EOF # syntax=evil',
    "directive": "syntax=evil.example/frontend",
    "long": "x" * 100_000,
}


def problem(shown: str) -> str:
    """What in a text that was shown is not fit to be shown; "" where all of it is."""
    for number, line in enumerate(shown.split("\n"), 1):
        if not line.replace("\t", "").isprintable():
            return f"line {number}: {line[:200]!a}"
        if line.startswith((FORGED, "RUN touch /evil")):
            return f"line {number} is forged: {line[:200]!a}"
        if any(c in line for c in "\u115f\u3164\ufe0f\u2800"):
            return f"line {number} has what cannot be seen: {line[:200]!a}"
    return ""


# What would leave its place in a page, if a text could.
MARKUP = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)",
    "</style></script></title></svg><iframe src=//evil.example>",
    "]]>&lt;/svg>&#60;script>-->",
    "' onfocus='alert(1)' autofocus='",
    "a\u202egpj.\u2066b\u2069\x1b[31m\x00\u200b\r\n</text>b",
)
