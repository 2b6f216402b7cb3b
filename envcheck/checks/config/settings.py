"""Checks on pip's and uv's configuration: leftovers in it, and what it does without being asked."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...facts.evidence import Evidence
from ...facts.missing import Skip
from ...facts.target import ConfigFile
from ...facts.view import SnapshotView, need
from ...findings.causes import Cause
from ...findings.model import Passed, Verdict
from ...findings.shell import word
from ...findings.subjects import about_file
from ..registry import check
from ..target import installed_if_known, pip_uninstall
from .common import (
    PIP,
    PYINDEX,
    ConfigEntry,
    configuration,
    edit,
    evidence,
    is_file,
    is_nvidia,
    left_to_pyindex,
    per_file,
    place,
    reported_by_pyindex,
    sudo,
    undo,
    warning,
    written_by_pyindex,
)

_REMOVE = "Remove the setting."

# Settings that install packages elsewhere than into the target, or omit parts of them.
_DETOURS = {
    "target": "installs into that directory, which the target's interpreter does not look into",
    "prefix": "installs below that prefix instead of into the target",
    "root": "installs below that root instead of into the target",
    "user": "installs into the user's site directory, which every environment of that Python shares",
    "no-deps": "omits every dependency, the CUDA libraries included",
    "no-index": "asks no index, so that nothing new can be installed",
    "pre": "takes pre-releases, and NVIDIA's placeholders on the registry are pre-releases",
    "no-binary": "builds from source, and NVIDIA's placeholders are source packages that only fail",
}
_EFFECTS = {
    "extra-index-url": "every installation also asks NVIDIA's index",
    "trusted-host": "its certificate is not verified",
    "no-cache-dir": "nothing that was downloaded is kept",
}
LEFTOVERS = Cause(
    "pyindex-settings",
    "warn",
    "nvidia-pyindex left settings behind",
    "{file} still carries what nvidia-pyindex wrote{effects}.",
    "Remove these settings (an index-url beside them, too, unless it is yours), and uninstall nvidia-pyindex,"
    " which does not undo them.",
)


@check(
    "CFG-001",
    title="nvidia-pyindex has left no settings behind",
    causes=[LEFTOVERS],
    about="nvidia-pyindex rewrites pip's configuration when it is installed: it adds NVIDIA's index beside"
    " the configured one, switches off TLS verification for it and switches off the cache, in up to five"
    " files when run as root. Uninstalling it does not undo that. Every later installation then mixes two"
    " indexes, and the one it names has been reported abandoned. envcheck itself never edits these files.",
    sources=(PYINDEX, "NVIDIA/tensorflow#98 and #81; pypa/pip#14250 and #11981"),
)
def pyindex(view: SnapshotView) -> Iterator[Verdict]:
    config = configuration(view)
    if not config.pyindex_traces:
        yield Passed("no traces of nvidia-pyindex")
        return
    has_package = "nvidia-pyindex" in installed_if_known(view)
    uninstall = [pip_uninstall(view, "nvidia-pyindex")] if has_package else []
    for path in config.pyindex_traces:
        file = next((one for one in config.files if one.path == path), None)
        entries = [] if file is None else written_by_pyindex(file)
        shown = [evidence(view, entry) for entry in entries]
        keys = {entry.key for entry in entries}
        effects = ", ".join(effect for key, effect in _EFFECTS.items() if key in keys)
        commands = [_undo_pyindex(view, entry) for entry in entries]
        yield LEFTOVERS.found(
            about_file(path),
            shown or [view.evidence("target.packaging_config.pyindex_traces", path)],
            commands=[
                *(dict.fromkeys(commands) or [f"grep -n -i nvidia {word(path)}"]),
                *uninstall,
            ],
            file=path,
            effects=f": {effects}" if effects else "",
        )


def _undo_pyindex(view: SnapshotView, entry: ConfigEntry) -> str:
    if entry.key == "no-cache-dir" or all(map(is_nvidia, entry.words)):
        return undo(view, entry)
    # The user's own index stands beside NVIDIA's.
    return edit(entry.file, r"s#(https?://)?[^[:space:]]*nvidia\.com[^[:space:]]*##")


READABLE = Cause(
    "credentials-readable",
    "warn",
    "every user can read stored credentials",
    "{file} holds credentials ({keys}), and every user of this machine may read it.",
    "Restrict the file, and replace these credentials by new ones; a keyring or ~/.netrc keeps them out of"
    " configuration files altogether.",
)


@check(
    "CFG-005",
    title="Credentials are not readable by others",
    causes=[READABLE],
    about="A user name, password or token in an index address is a secret, unless every user of the machine"
    " may read its file. envcheck notes that there is one and never keeps or prints it. nvidia-pyindex was"
    " seen to copy a user's pip.conf with its credentials to /etc/pip.conf, readable by all.",
    sources=(PYINDEX, "pip's documentation, authentication"),
)
@per_file("no credentials in configuration")
def credentials(view: SnapshotView, entries: list[ConfigEntry]) -> Iterator[Verdict]:
    secret = [entry for entry in entries if entry.setting.credentials]
    if not secret:
        return
    file = secret[0].file
    if not is_file(file):
        yield Passed(f"credentials in the environment variable {file.path}")
        return
    mode = _mode(file)
    if not int(mode, 8) & 0o004:
        yield Passed(f"credentials in {file.path}, which others may not read")
        return
    mode_evidence = Evidence(f"{place(view, file)}.mode", mode, file.path)
    yield READABLE.found(
        about_file(file.path),
        [*(evidence(view, entry) for entry in secret), mode_evidence],
        commands=[f"{sudo(file)}chmod 600 {word(file.path)}"],
        file=file.path,
        keys=", ".join(dict.fromkeys(entry.setting.key for entry in secret)),
    )


def _mode(file: ConfigFile) -> str:
    mode = need(file.mode, f"the mode of {file.path}")
    if not re.fullmatch(r"[0-7]{3,6}", mode):
        raise Skip(f"the mode of {file.path}: {mode!r} is none")
    return mode


CACHE_OFF = Cause(
    "cache-off",
    "warn",
    "pip's cache is turned off",
    "{where} switches the cache of {tool} off: every environment downloads its gigabytes again.",
    _REMOVE,
)


@check(
    "CFG-006",
    title="pip keeps what it downloads",
    causes=[CACHE_OFF],
    about="With no-cache-dir in a configuration file, pip downloads everything again for every environment:"
    " more than 3 GB for one TensorFlow with its CUDA libraries. Any value of it, false as well, turns the"
    " cache off. A variable is no finding: container builds set it on purpose.",
    sources=("pip's source, the handling of no-cache-dir", PYINDEX),
)
@per_file("the cache is on")
def no_cache(view: SnapshotView, entries: list[ConfigEntry]) -> Iterator[Verdict]:
    for entry in entries:
        by_pip = entry.file.tool == "pip" and entry.key == "no-cache-dir" and entry.words
        by_uv = entry.file.tool == "uv" and entry.key == "no-cache" and entry.enabled
        if not by_pip and not by_uv:
            continue
        if reported_by_pyindex(view, entry):
            yield left_to_pyindex(entry)
        elif not is_file(entry.file):
            yield Passed(f"{entry.file.path} switches the cache off")
        else:
            yield warning(view, entry, CACHE_OFF, tool=entry.file.tool)


DETOUR = Cause(
    "installs-elsewhere",
    "warn",
    "pip's settings change what is installed",
    "{setting} in {where} {effect}.",
    _REMOVE,
)


@check(
    "CFG-007",
    title="Packages are installed into the target, and whole",
    causes=[DETOUR],
    about="Some settings change what every installation does without a message: into which directory it goes,"
    " whether dependencies are installed, whether pre-releases count. Set permanently, in a file or in the"
    " environment (PIP_TARGET, PIP_USER, PIP_NO_DEPS, PIP_PRE ...), they make an installation that reports"
    " success leave the target unchanged.",
    sources=(PIP,),
)
@per_file("no setting leads elsewhere")
def detours(view: SnapshotView, entries: list[ConfigEntry]) -> Iterator[Verdict]:
    for entry in entries:
        effect = _DETOURS.get(entry.key)
        # "no-binary" takes names: a choice for a few packages is fine.
        everything = entry.key != "no-binary" or ":all:" in entry.words
        # pip reads [install] for its own command; [list] or [freeze] change nothing here.
        relevant = entry.setting.section in ("global", "install", "env", "", "pip")
        of_pip = entry.file.tool == "pip" and entry.enabled
        if effect and everything and relevant and of_pip:
            yield warning(view, entry, DETOUR, setting=entry.setting.key, effect=effect)
