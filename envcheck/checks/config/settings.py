"""Checks on pip's and uv's configuration: what was left in it, and what it does unasked."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...facts.evidence import Evidence
from ...facts.missing import Skip
from ...facts.target import ConfigFile
from ...facts.view import SnapshotView, need
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.shell import word
from ...findings.subjects import about_file
from ..registry import check
from ..target import installed, pip_uninstall
from .common import (
    ConfigEntry,
    configuration,
    each_file,
    edit,
    evidence,
    is_file,
    is_nvidia,
    left_to_pyindex,
    told_by_pyindex,
    undo,
    warning,
    written_by_pyindex,
)

_PYINDEX = "nvidia-pyindex 1.0.9's setup.py"
_PIP = "pip's documentation, configuration"

# Settings that send packages elsewhere than into the target, or leave parts of them out.
_DETOURS = {
    "target": "installs into that directory, which the target's interpreter does not look into",
    "prefix": "installs below that prefix instead of into the target",
    "root": "installs below that root instead of into the target",
    "user": "installs into the user's site directory, which every environment of that Python shares",
    "no-deps": "leaves out every dependency, the CUDA libraries included",
    "no-index": "asks no index, so that nothing new can be installed",
    "pre": "takes pre-releases, and NVIDIA's placeholders on the registry are pre-releases",
    "no-binary": "builds from source, and NVIDIA's placeholders are source packages that only fail",
}


@check(
    "CFG-001",
    title="nvidia-pyindex has left no settings behind",
    problem="nvidia-pyindex left settings behind",
    about=(
        "nvidia-pyindex rewrites pip's configuration when it is installed: it adds NVIDIA's index "
        "beside the configured one, switches off TLS verification for it and switches off the cache, "
        "in up to five files when run as root. Uninstalling it does not undo that. Every later "
        "installation then mixes two indexes, and the one it names has been reported abandoned. "
        "A warning for each file that still carries these settings, with the commands that take "
        "them out; envcheck itself never edits them."
    ),
    sources=(_PYINDEX, "NVIDIA/tensorflow#98 and #81; pypa/pip#14250 and #11981"),
)
def pyindex(view: SnapshotView) -> Iterator[Verdict]:
    config = configuration(view)
    if not config.pyindex_traces:
        yield Passed("no traces of nvidia-pyindex")
    for path in config.pyindex_traces:
        file = next((one for one in config.files if one.path == path), None)
        entries = [] if file is None else written_by_pyindex(file)
        shown = [evidence(view, entry) for entry in entries]
        yield Finding(
            "warn",
            f"{path} still carries what nvidia-pyindex wrote{_effects(entries)}.",
            subjects=about_file(path),
            evidence=shown or [view.evidence("target.packaging_config.pyindex_traces", path)],
            remedy=Remedy(
                "Take these settings out (an index-url beside them, too, unless it is yours), and "
                "uninstall nvidia-pyindex, which does not undo them.",
                [*_undo_pyindex(view, path, file, entries), *_uninstall_pyindex(view)],
            ),
        )


def _effects(entries: list[ConfigEntry]) -> str:
    says = {
        "extra-index-url": "every installation also asks NVIDIA's index",
        "trusted-host": "its certificate is not verified",
        "no-cache-dir": "nothing that was downloaded is kept",
    }
    told = [says[key] for key in says if any(entry.key == key for entry in entries)]
    return f": {', '.join(told)}" if told else ""


def _undo_pyindex(
    view: SnapshotView, path: str, file: ConfigFile | None, entries: list[ConfigEntry]
) -> list[str]:
    if file is None or not entries:
        return [f"grep -n -i nvidia {word(path)}"]
    commands = []
    for entry in entries:
        if entry.key == "no-cache-dir" or all(map(is_nvidia, entry.words)):
            commands.append(undo(view, entry))
        else:  # somebody's own index stands beside NVIDIA's
            commands.append(edit(file, r"s#(https?://)?[^[:space:]]*nvidia\.com[^[:space:]]*##"))
    return list(dict.fromkeys(commands))


def _uninstall_pyindex(view: SnapshotView) -> list[str]:
    packages = view.target.packages
    if packages is None or packages.facts is None or "nvidia-pyindex" not in installed(view):
        return []
    return [pip_uninstall(view, "nvidia-pyindex")]


@check(
    "CFG-005",
    title="Credentials are not readable by others",
    problem="every user can read stored credentials",
    about=(
        "A user name, password or token in an index address is a secret; in a file that every user of "
        "the machine may read it is none. envcheck notes that one is there and never keeps or prints "
        "it. A warning where others may read the file; nvidia-pyindex was seen to copy a user's "
        "pip.conf with its credentials to /etc/pip.conf, readable by all."
    ),
    sources=(_PYINDEX, "pip's documentation, authentication"),
)
def credentials(view: SnapshotView) -> Iterator[Verdict]:
    def judge(entries: list[ConfigEntry]) -> Iterator[Verdict]:
        secret = [entry for entry in entries if entry.setting.credentials]
        if not secret:
            return
        file = secret[0].file
        keys = ", ".join(dict.fromkeys(entry.setting.key for entry in secret))
        if not is_file(file):
            yield Passed(f"credentials in the environment variable {file.path}")
            return
        mode = need(file.mode, f"the mode of {file.path}")
        if not re.fullmatch(r"[0-7]{3,6}", mode):
            raise Skip(f"the mode of {file.path}: {mode!r} is none")
        if not int(mode, 8) & 0o004:
            yield Passed(f"credentials in {file.path}, which others may not read")
            return
        sudo = "sudo " if file.level == "global" else ""
        yield Finding(
            "warn",
            f"{file.path} holds credentials ({keys}), and every user of this machine may read it.",
            subjects=about_file(file.path),
            evidence=[
                *(evidence(view, entry) for entry in secret),
                Evidence(f"{_place(view, file)}.mode", mode, file.path),
            ],
            remedy=Remedy(
                "Close the file, and give out new credentials in place of these; a keyring or "
                "~/.netrc keeps them out of configuration files altogether.",
                [f"{sudo}chmod 600 {word(file.path)}"],
            ),
        )

    yield from each_file(view, judge, "no credentials in configuration")


def _place(view: SnapshotView, file: ConfigFile) -> str:
    return f"target.packaging_config.files[{configuration(view).files.index(file)}]"


@check(
    "CFG-006",
    title="pip keeps what it downloads",
    problem="pip's cache is turned off",
    about=(
        "With no-cache-dir in a configuration file, pip downloads everything again for every "
        "environment: more than 3 GB for one TensorFlow with its CUDA libraries. pip takes any value "
        "of it, false as well, as a wish for no cache. A warning for files; a variable is what "
        "container builds set on purpose."
    ),
    sources=("pip's source, the handling of no-cache-dir", _PYINDEX),
)
def no_cache(view: SnapshotView) -> Iterator[Verdict]:
    def judge(entries: list[ConfigEntry]) -> Iterator[Verdict]:
        for entry in entries:
            off = (entry.file.tool == "pip" and entry.key == "no-cache-dir" and entry.words) or (
                entry.file.tool == "uv" and entry.key == "no-cache" and entry.enabled
            )
            if not off:
                continue
            if told_by_pyindex(view, entry):
                yield left_to_pyindex(entry)
            elif not is_file(entry.file):
                yield Passed(f"{entry.file.path} switches the cache off")
            else:
                message = (
                    f"{entry.where} switches the cache of {entry.file.tool} off: every environment "
                    "downloads its gigabytes again."
                )
                yield warning(view, entry, message, "Remove the setting.")

    yield from each_file(view, judge, "the cache is on")


@check(
    "CFG-007",
    title="Packages are installed into the target, and whole",
    problem="pip's settings change what is installed",
    about=(
        "Some settings change what every installation does without a word: into which directory it "
        "goes, whether dependencies come along, whether pre-releases count. Set for good, in a file "
        "or in the environment (PIP_TARGET, PIP_USER, PIP_NO_DEPS, PIP_PRE ...), they make an "
        "installation that reports success leave the target as it was. A warning for each."
    ),
    sources=(_PIP,),
)
def detours(view: SnapshotView) -> Iterator[Verdict]:
    def judge(entries: list[ConfigEntry]) -> Iterator[Verdict]:
        for entry in entries:
            effect = _DETOURS.get(entry.key)
            # "no-binary" takes names: a choice for a few packages is none of ours.
            everything = entry.key != "no-binary" or ":all:" in entry.words
            # pip reads [install] for its own command; [list] or [freeze] change nothing here.
            relevant = entry.setting.section in ("global", "install", "env", "", "pip")
            if entry.file.tool != "pip" or not effect or not entry.enabled:
                continue
            if not everything or not relevant:
                continue
            message = f"{entry.setting.key} in {entry.where} {effect}."
            yield warning(view, entry, message, "Remove the setting.")

    yield from each_file(view, judge, "no setting leads elsewhere")
