"""The public index: the one that this user's pip and uv are configured with.

pip's settings are read (see ``network.pip_settings``); uv comes with envcheck and is asked itself.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from ...exit_codes import CouldNotLook, UsageError
from .addresses import QUOTED, is_index, typed
from .pip_settings import Setting, pip_settings

UV_SECONDS = 20.0


class PublicIndex(msgspec.Struct, frozen=True, kw_only=True):
    """``url`` may hold credentials: it is for the session, and never shown."""

    url: str
    origin: str  # "PIP_INDEX_URL", "/etc/pip.conf", "uv"
    remarks: list[str] = []  # settings that envcheck does not follow, a sentence each


def public_index(environ: Mapping[str, str]) -> PublicIndex:
    """pip's ``index-url`` where it is configured, else uv's default index, which may be its own.

    Starts uv where pip says nothing: from the main thread only. Raises UsageError for a configuration that
    cannot be read, forbids indexes or names none that envcheck can ask.
    """
    return choose(pip_settings(environ), lambda: _asked_of_uv(environ))


def choose(pip: Mapping[str, Setting], uv: Callable[[], str]) -> PublicIndex:
    """The index that pip's settings and uv's answer to ``--emit-index-url`` make."""
    offline = pip.get("no-index")
    if offline is not None and offline.value.lower() in ("1", "true", "yes", "on", "y", "t"):
        raise UsageError(
            f"pip is configured to use no index (no-index in {offline.origin})",
            "Take it out, name an index with --index URL, or install from a bundle with --offline.",
        )
    remarks = [
        f"{key} in {pip[key].origin} is not followed: {why}"
        for key, why in _NOT_FOLLOWED
        if key in pip
    ]
    if "index-url" in pip:
        setting = pip["index-url"]
        return PublicIndex(url=_checked(setting), origin=setting.origin, remarks=remarks)
    lines = [line.partition(" ") for line in uv().splitlines()]
    urls = [value.strip() for option, _, value in lines if option == "--index-url"]
    if any(option == "--extra-index-url" for option, _, _ in lines):
        remarks.append(f"uv's further indexes are not followed: {_ONE_INDEX}")
    if not urls:
        raise UsageError("uv is configured to use no index", "Name one with --index URL.")
    return PublicIndex(url=_checked(Setting(urls[0], "uv")), origin="uv", remarks=remarks)


_ONE_INDEX = "each package comes from one index, so that no other can slip in a file under its name"
_NOT_FOLLOWED = (
    ("extra-index-url", _ONE_INDEX),
    ("find-links", _ONE_INDEX),
    ("trusted-host", "the connection is verified; --allow-insecure HOST lifts that for one host"),
)


def _checked(setting: Setting) -> str:
    url = setting.value.strip()
    if not is_index(url):
        raise UsageError(
            f"the index {typed(url)} of {setting.origin} is not an https:// address",
            f"Mend it ({QUOTED}), or name an index with --index URL.",
        )
    return url


def _asked_of_uv(environ: Mapping[str, str]) -> str:
    """uv's answer; it asks no network for a list of requirements that is empty."""
    from uv import find_uv_bin

    from ... import scratch
    from .. import processes

    unwrapped = {name: value for name, value in environ.items() if name != "COLUMNS"}
    with scratch.directory() as folder:  # the user's own cache is left alone
        argv: list[str | Path] = [find_uv_bin(), "--cache-dir", folder, "pip", "compile", "--quiet"]
        # Any Python would do, and this one need not be searched for, which takes longer than all the rest.
        argv += ["--no-header", "--emit-index-url", "--python", sys.executable, "-"]
        # Away from the working directory, whose project's settings are not the user's.
        result = processes.run(argv, deadline=UV_SECONDS, env=unwrapped, cwd=Path("/"))
    if not result.ok:
        raise _uv_failed(result.stderr.decode("utf-8", "replace"), result.describe())
    text: str = result.stdout.decode("utf-8", "replace")
    return text


def _uv_failed(words: str, ended: str) -> UsageError | CouldNotLook:
    """Why uv does not answer; the lines that it quotes of its configuration may hold a password."""
    hint = "Mend it, or name the index in PIP_INDEX_URL: then uv is not asked."
    file = re.search(r"Failed to parse:? `?([^`\n]+)", words)
    if file is not None:
        at = re.search(r"at line (\d+), column (\d+)", words)
        place = f"{file[1]}:{at[1]}:{at[2]}" if at else file[1]
        return UsageError(f"uv's configuration {place} is broken", hint)
    return CouldNotLook(f"uv does not say which index it uses: it {ended}", hint)
