"""uv: how it is started, and its explanations as one sentence."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from ...exit_codes import Cannot, CouldNotLook
from .. import places, processes
from . import child_env, uv_watch

DEADLINE = 24 * 3600.0  # seconds for an installation: a slow line carries 5 GB in that time
_RESOLVING = 2 * 3600.0  # seconds; the pages that have come are in its cache for the next run
_PYTHON_DEADLINE = 1800.0  # seconds for 30 MB

_RETRIES = "3"  # of a request

# What decides from where and through what uv downloads a Python, and where it keeps it.
_OF_THE_USER = (
    "UV_PYTHON_",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
)

# What a line begins with: "× No solution found …", "╰─▶ Because …", "error: …", "  cause: …".
_DECORATION = re.compile(r"^\s*(?:[×│╰├─▶>]+\s*)*(?:error:|cause:|Caused by:?)?\s*")
# Of a paragraph of a long explanation to another one, and the markers of requirements.
_REFERENCE = re.compile(
    r"we know from \(\d+\)(?: and \(\d+\))* that | ?\(\d+\)(?=[.,\s]|$)|\{[^{}]*\}"
)
_CAUSE = re.compile(r"\s*(?:[×╰├]|error:|cause:|Caused by|Because )")
_LENGTH = 900  # characters: more is no sentence; the log has all of it


@cache
def program() -> tuple[str | Path, ...]:
    """The uv that comes with envcheck, and how it writes. Raises Cannot where it is not there."""
    try:
        from uv import find_uv_bin

        return (Path(find_uv_bin()), "--no-progress", "--color", "never")
    except (ImportError, FileNotFoundError):
        raise Cannot(
            "envcheck installs with uv, and it is not on this machine", "python3 -m pip install uv"
        ) from None


def described() -> str:
    """ "uv 0.13.9"."""
    return f"uv {metadata.version('uv')}"


def settings() -> dict[str, str]:
    """The variables of every run: a cache that is envcheck's alone."""
    places.uv_cache().mkdir(parents=True, exist_ok=True)
    return {
        **child_env.plain(),
        "UV_CACHE_DIR": str(places.uv_cache()),
        "UV_PYTHON_DOWNLOADS": "never",
    }


def run_online(
    arguments: Sequence[str | Path], env: Mapping[str, str], config: Path, whose: str
) -> Any:
    """One run of uv that asks indexes: a ``process.Result``. Raises CouldNotLook as ``uv_watch.Watch`` does.

    config: the only uv.toml that counts, in a folder for its temporary files. whose: the indexes, for people.
    """
    argv = [*program(), "--config-file", config, *arguments]
    whole = {**settings(), "UV_HTTP_RETRIES": _RETRIES, **env, "TMPDIR": str(config.parent)}
    watch = uv_watch.Watch(whose)
    return processes.run(argv, deadline=_RESOLVING, env=whole, cwd=config.parent, watch=watch)


def get_python(minor: str, environ: Mapping[str, str] | None = None) -> None:
    """Have uv download this Python to where uv keeps its own; ``finding`` finds it there afterwards.

    Raises CouldNotLook with uv's words. Certificates: those of the machine, as for all of envcheck.
    """
    source: Mapping[str, str] = os.environ if environ is None else environ
    kept = {name: source[name] for name in source if name.upper().startswith(_OF_THE_USER)}
    argv = [*program(), "--no-config", "--system-certs", "python", "install", "--no-bin", minor]
    result = processes.run(argv, deadline=_PYTHON_DEADLINE, env={**child_env.plain(), **kept})
    if not result.ok:
        raise CouldNotLook(
            f"uv could not get Python {minor}: {sentence(result)}",
            hint=f"install Python {minor} by other means (pyenv, the distribution), and try again",
        )


def sentence(result: Any) -> str:
    """What became of a ``process.Result`` of uv's: its last cause, without its hints."""
    if b"memory allocation of " in result.stderr:  # Rust's last words before it aborts
        return (
            "it did not get enough memory (free shows what is there, ulimit -v this shell's limit)"
        )
    exited = result.outcome == "exited" and result.code >= 0
    words = explanation(result.stderr.decode("utf-8", "replace")) if exited else ""
    return words or f"it {result.describe()}"


def explanation(stderr: str) -> str:
    """The last cause of those that uv writes to stderr, without its hints; "" where there is none."""
    lines: list[str] = []
    for line in stderr.splitlines():
        if line.lstrip().startswith(("hint:", "help:")):
            break
        if _CAUSE.match(line):
            lines.clear()
        lines.append(line)
    whole = _REFERENCE.sub("", " ".join(_DECORATION.sub("", line) for line in lines))
    text = " ".join(whole.split()).rstrip(".:")
    return text if len(text) <= _LENGTH else f"{text[:_LENGTH]} …"


def hints(stderr: str) -> list[str]:
    """uv's own hints, without those that name its options."""
    found = re.findall(r"^[ \t]*hint:[ \t]*(.+(?:\n[ \t]{6,}\S.*)*)", stderr, re.MULTILINE)
    return [" ".join(hint.split()) for hint in found if "`--" not in hint and "`uv" not in hint]
