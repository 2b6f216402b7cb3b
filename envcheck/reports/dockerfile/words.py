"""How things are written in a Dockerfile."""

from __future__ import annotations


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
    return f'"{" ".join(escaped.split())}"'


def label(labels: dict[str, str]) -> list[str]:
    """One LABEL; a value that is a variable in quotes is a build argument's."""
    argument = '"$'
    values = {k: v if v.startswith(argument) else quoted(v) for k, v in labels.items()}
    told = [f"{key}={value}" for key, value in values.items()]
    lines = [f"LABEL {told[0]}", *(f"      {one}" for one in told[1:])]
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]


def variable(index: str) -> str:
    """The build argument that holds an index's address."""
    word = "".join(c if c.isascii() and c.isalnum() else "_" for c in index.upper())
    return f"{word}_INDEX_URL"
