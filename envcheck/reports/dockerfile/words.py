"""How things are written in a Dockerfile."""

from __future__ import annotations

from ... import safe_text


class Argument(str):
    """A value that is a build argument's, as it is there when the image is built."""


def text(blocks: list[list[str]]) -> str:
    """The Dockerfile of these blocks of lines. Whatever a line quotes, it stays one line."""
    return "\n\n".join("\n".join(map(safe_text.escaped, block)) for block in blocks) + "\n"


def run(commands: list[list[str]], mount: str = "") -> list[str]:
    """One RUN of commands (each a list of lines), each of which needs the one before it."""
    lines: list[str] = [f"RUN {mount}"] if mount else []
    for number, command in enumerate(commands):
        first = " && " if number else "    " if mount else "RUN "
        lines.append(first + command[0])
        lines += [f"    {line}" for line in command[1:]]
    return [line + " \\" for line in lines[:-1]] + lines[-1:]


def quoted(text: str) -> str:
    """A value as a Dockerfile reads it: nothing in it is a variable or ends the string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
    return f'"{escaped}"'


def label(labels: dict[str, str]) -> list[str]:
    """One LABEL."""
    told = [
        f'{key}="${value}"' if isinstance(value, Argument) else f"{key}={quoted(value)}"
        for key, value in labels.items()
    ]
    lines = [f"LABEL {told[0]}", *(f"      {one}" for one in told[1:])]
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]


def argument(name: str, value: str) -> str:
    """An ARG with its default, quoted where that is needed."""
    plain = all(c.isascii() and (c.isalnum() or c in "_.:/@%+=,~-") for c in value)
    return f"ARG {name}={value if plain else quoted(value)}"


def variable(index: str) -> str:
    """The build argument that holds an index's address."""
    word = "".join(c if c.isascii() and c.isalnum() else "_" for c in index.upper())
    return f"{word}_INDEX_URL"
