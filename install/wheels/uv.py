"""uv: which one runs here, how it is started, and its explanations as one sentence."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ...exit_codes import Cannot, CouldNotLook
from .. import places, processes
from . import child_env, uv_watch

# As pyproject.toml asks for it: what these versions write is read here and by `uv_compile`, and
# tests/functional/test_resolve.py says when another one writes it differently.
LEAST, BEYOND = (0, 13), (0, 14)

DEADLINE = 24 * 3600.0  # seconds for an installation: a slow line carries 5 GB in that time
_RESOLVING = 2 * 3600.0  # seconds; the pages that have come are in its cache for the next run
_ANSWERS = 60.0  # seconds in which `uv --version` has to answer
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
_GET_UV = "python3 -m pip install uv"
_LENGTH = 900  # characters: more is no sentence; the log has all of it


@cache
def binary() -> Path | None:
    """uv beside envcheck, else on PATH, if it runs on this machine and is of a version that is known."""
    return next((p for p in _candidates() if LEAST <= (version_of(p) or (0,)) < BEYOND), None)


@cache
def version_of(path: Path) -> tuple[int, ...] | None:
    """(0, 13, 9); None where it does not run: built for another libc, lost, on a noexec mount."""
    result = _asked(path)
    found = re.match(rb"uv (\d+)\.(\d+)\.(\d+)", result.stdout) if result.ok else None
    return tuple(int(part) for part in found.groups()) if found else None


@cache
def _asked(path: Path) -> Any:
    argv: list[str | Path] = [path, "--no-config", "--version"]
    return processes.run(argv, deadline=_ANSWERS, env=child_env.plain())


def described() -> str:
    """ "uv 0.13.9"; "" where none runs."""
    path = binary()
    return "" if path is None else f"uv {'.'.join(map(str, version_of(path) or ()))}"


def program() -> list[str | Path]:
    """uv, and how it writes. Raises Cannot where there is none, CouldNotLook where it does not run."""
    path = binary()
    if path is None:
        tried = [f"{path} {_why_not(path)}" for path in _candidates()]
        if tried:
            raise CouldNotLook(f"envcheck installs with uv, but {'; '.join(tried)}", _GET_UV)
        raise Cannot("envcheck installs with uv, and it is not on this machine", _GET_UV)
    return [path, "--no-progress", "--color", "never"]


def _why_not(path: Path) -> str:
    """Why that uv is not used, as the end of a sentence."""
    version = version_of(path)
    if version is None:
        return str(_asked(path).describe())
    return f"is version {'.'.join(map(str, version))}"


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


def _candidates() -> Iterator[Path]:
    try:
        from uv import find_uv_bin

        yield Path(find_uv_bin())
    except (ImportError, FileNotFoundError):
        pass
    if on_path := shutil.which("uv"):
        yield Path(on_path).absolute()
