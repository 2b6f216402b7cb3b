"""pip's and uv's settings as the configuration checks read them, and the commands that undo one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import NamedTuple
from urllib.parse import urlsplit

from ...facts.base import Unavailable
from ...facts.evidence import Evidence
from ...facts.missing import CannotJudge
from ...facts.target import ConfigFile, ConfigSetting, PackagingConfig
from ...facts.view import SnapshotView, facts_of, need
from ...findings.causes import Cause, Param
from ...findings.model import Finding, Passed, Unjudged, Verdict, unjudged
from ...findings.shell import word
from ...findings.subjects import about_file
from ..target import python

PYINDEX = "nvidia-pyindex 1.0.9's setup.py"
PIP = "pip's documentation, configuration"

# Index hosts that NVIDIA has used: nvidia-pyindex writes the first, newer NVIDIA stubs the second.
NVIDIA_HOSTS = ("pypi.ngc.nvidia.com", "pypi.nvidia.com", "developer.download.nvidia.com")

# The constraint file that envcheck puts beside an index of a stack's own, in the environments it makes.
_OWN_CONSTRAINTS = "/.envcheck/constraints.txt"

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_WORDS = re.compile(r"[\s,]+")

# Of a level's files, the one that `pip config --LEVEL` edits; pip reads the others too.
_EDITABLE = {"global": "/etc/pip.conf", "user": "/pip/pip.conf", "site": "/pip.conf"}


class ConfigEntry(NamedTuple):
    """One setting and where it stands."""

    file: ConfigFile
    setting: ConfigSetting

    @property
    def key(self) -> str:
        """pip's and uv's own spelling: "extra-index-url", also of PIP_EXTRA_INDEX_URL."""
        name = self.setting.key.rpartition(".")[2].lower().replace("_", "-")
        return name.removeprefix("pip-").removeprefix("uv-")

    @property
    def words(self) -> list[str]:
        """The value's parts: lists are separated by white space, new lines or commas."""
        return [word for word in _WORDS.split(self.setting.value) if word]

    @property
    def where(self) -> str:
        return (
            self.file.path if is_file(self.file) else f"the environment variable {self.file.path}"
        )

    @property
    def enabled(self) -> bool:
        """A switch that is on, as pip and uv read it."""
        return self.setting.value.strip().lower() not in ("", "0", "false", "no", "off", "n", "f")


def configuration(view: SnapshotView) -> PackagingConfig:
    return facts_of(view.target.packaging_config, "pip's and uv's configuration")


FileJudge = Callable[[SnapshotView, list[ConfigEntry]], Iterable[Verdict]]


def per_file(detail: str) -> Callable[[FileJudge], Callable[[SnapshotView], Iterator[Verdict]]]:
    """Make the decorated judge of one file's settings (or one variable's) the judge of each.

    One that cannot be read leaves the others judged. detail: of the pass, if no file gave a verdict.
    """

    def decorate(judge: FileJudge) -> Callable[[SnapshotView], Iterator[Verdict]]:
        @wraps(judge)
        def each(view: SnapshotView) -> Iterator[Verdict]:
            files = configuration(view).files
            if not files:
                yield Passed("no configuration of pip or uv reaches the target")
            verdicts: list[Verdict] = []
            for file in files:
                try:
                    settings = need(file.settings, file.path)
                    verdicts += judge(view, [ConfigEntry(file, one) for one in settings])
                except CannotJudge as why:
                    verdicts.append(unjudged(why, about_file(file.path)))
            yield from verdicts
            unread = sum(isinstance(file.settings, Unavailable) for file in files)
            if len(verdicts) == unread < len(files):
                yield Passed(detail)

        return each

    return decorate


def written_by_pyindex(file: ConfigFile) -> list[ConfigEntry]:
    """Those of a file's settings that nvidia-pyindex may have put there."""
    if isinstance(file.settings, Unavailable):
        return []
    entries = [ConfigEntry(file, setting) for setting in file.settings]
    # The index that envcheck gave an environment stays, even where another one was written later.
    keys = ["trusted-host"] if is_guarded(entries) else ["extra-index-url", "trusted-host"]
    return [
        entry
        for entry in entries
        if entry.key == "no-cache-dir" or (entry.key in keys and any(map(is_nvidia, entry.words)))
    ]


def is_guarded(entries: Iterable[ConfigEntry]) -> bool:
    """Whether a file's settings are those of an environment of envcheck's own: a second index, and a
    constraint file that pins what is locked from there, so that no other index can replace it."""
    return any(
        entry.file.level == "site"
        and entry.key == "constraint"
        and any(word.endswith(_OWN_CONSTRAINTS) for word in entry.words)
        for entry in entries
    )


def reported_by_pyindex(view: SnapshotView, entry: ConfigEntry) -> bool:
    """CFG-001 reports this setting already."""
    traced = entry.file.path in configuration(view).pyindex_traces
    return traced and entry in written_by_pyindex(entry.file)


def left_to_pyindex(entry: ConfigEntry) -> Unjudged:
    path = entry.file.path
    return Unjudged("skipped", f"{path}: reported by CFG-001", about_file(path))


def warning(view: SnapshotView, entry: ConfigEntry, cause: Cause, **params: Param) -> Finding:
    """The cause, found on a setting, with the command that removes it."""
    return cause.found(
        about_file(entry.file.path),
        [evidence(view, entry)],
        commands=[undo(view, entry)],
        advice=None,
        where=entry.where,
        **params,
    )


def warn_once(
    view: SnapshotView, entry: ConfigEntry, addresses: Iterable[str], cause: Cause, **params: Param
) -> Verdict:
    """The warning, unless CFG-001 reports the setting and its addresses are NVIDIA's alone."""
    if reported_by_pyindex(view, entry) and all(map(is_nvidia, addresses)):
        return left_to_pyindex(entry)
    return warning(view, entry, cause, **params)


def place(view: SnapshotView, file: ConfigFile) -> str:
    """The file's path in the Snapshot."""
    return f"target.packaging_config.files[{configuration(view).files.index(file)}]"


def evidence(view: SnapshotView, entry: ConfigEntry) -> Evidence:
    """The Evidence for a setting: its line, and its value as the collector redacted it."""
    value = f"{entry.setting.key} = {' '.join(entry.setting.value.split())}"
    found = view.evidence(place(view, entry.file), value)
    return Evidence(found.fact, found.value, entry.file.path)


def is_file(file: ConfigFile) -> bool:
    """A file, and not a variable; level "environment" is also the file that PIP_CONFIG_FILE names."""
    return file.level != "environment" or file.path.startswith(("/", "<", "~"))


def host_of(word: str) -> str:
    """The host of a URL or of a trusted-host entry ("host:port"); "" where there is none."""
    try:
        return (urlsplit(word if "://" in word else f"//{word}").hostname or "").lower()
    except ValueError:
        return ""


def is_nvidia(word: str) -> bool:
    return host_of(word) in NVIDIA_HOSTS


def is_loopback(word: str) -> bool:
    return host_of(word) in _LOOPBACK


def undo(view: SnapshotView, entry: ConfigEntry) -> str:
    """The command that takes one setting out of where it stands."""
    if not is_file(entry.file):
        return f"unset {word(entry.file.path)}"
    if entry.file.tool == "uv":
        if entry.setting.section == "index":  # a table of its own: its lines belong together
            return f"grep -n -A4 -F '[[index]]' {word(entry.file.path)}"
        key = _pattern(entry.key)
        return edit(entry.file, rf"/^{key}[^]]*\[[^]]*$/,/\]/d;/^{key}/d")
    editable = _EDITABLE.get(entry.file.level)
    if editable and entry.file.path.endswith(editable):
        name = f"{entry.setting.section}.{entry.setting.key}"
        return f"{sudo(entry.file)}{python(view)} -m pip config --{entry.file.level} unset {word(name)}"
    # The key's line and the indented lines that continue its value.
    return edit(
        entry.file,
        f"/^{_pattern(entry.key)}/" + r"{:a;$d;N;/\n[[:space:]]+[^\n]*$/ba;s/^.*\n//}",
    )


def edit(file: ConfigFile, program: str) -> str:
    """A sed command on the file, which keeps the file as it was beside it (.bak)."""
    return f"{sudo(file)}sed -i.bak -E {word(program)} {word(file.path)}"


def _pattern(key: str) -> str:
    """The key in a sed program; what no key of pip's has stands for any letter, and for no command."""
    letters = re.sub(r"[^a-z0-9-]", ".", key)
    return rf"[[:space:]]*{letters.replace('-', '[-_]')}[[:space:]]*[=:]"


def sudo(file: ConfigFile) -> str:
    return "sudo " if file.level == "global" else ""
