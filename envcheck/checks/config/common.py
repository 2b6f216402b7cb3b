"""pip's and uv's settings as the configuration checks read them, and the commands that undo one."""

from __future__ import annotations

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
from ...findings.model import Passed, Unjudged, Verdict, unjudged
from ...findings.shell import word
from ...findings.subjects import about_file
from ..target import python

PYINDEX = "nvidia-pyindex 1.0.9's setup.py"
PIP = "pip's documentation, configuration"
# Index hosts that NVIDIA has used: nvidia-pyindex writes the first, newer NVIDIA stubs the second.
_NVIDIA_HOSTS = ("pypi.ngc.nvidia.com", "pypi.nvidia.com", "developer.download.nvidia.com")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
# The constraint file that envcheck puts beside an index of a stack's own, in the environments it makes.
_OWN_CONSTRAINTS = "/.envcheck/constraints.txt"
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
        return self.setting.value.replace(",", " ").split()


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
            verdicts: list[Verdict] = []
            unread = 0
            files = configuration(view).files
            for file in files:
                try:
                    settings = need(file.settings, file.path)
                    verdicts += judge(view, [ConfigEntry(file, one) for one in settings])
                except CannotJudge as why:
                    unread += isinstance(file.settings, Unavailable)
                    verdicts.append(unjudged(why, about_file(file.path)))
            yield from verdicts
            if not files or len(verdicts) == unread < len(files):
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
    """Whether envcheck made the environment: a constraint file pins what comes from its second index."""
    return any(
        entry.file.level == "site"
        and entry.key == "constraint"
        and any(word.endswith(_OWN_CONSTRAINTS) for word in entry.words)
        for entry in entries
    )


def warning(
    view: SnapshotView,
    entry: ConfigEntry,
    cause: Cause,
    addresses: list[str],
    **params: Param,
) -> Verdict:
    """The cause, found on a setting, with the command that removes it; left to CFG-001 where that is
    nvidia-pyindex's and ``addresses`` are NVIDIA's alone."""
    path = entry.file.path
    traced = path in configuration(view).pyindex_traces and entry in written_by_pyindex(entry.file)
    if traced and all(map(is_nvidia, addresses)):
        return Unjudged("skipped", f"{path}: reported by CFG-001", about_file(path))
    where = path if is_file(entry.file) else f"the environment variable {path}"
    return cause.found(
        about_file(path),
        [evidence(view, entry)],
        commands=[undo(view, entry)],
        advice=None,
        where=where,
        **params,
    )


def evidence(view: SnapshotView, entry: ConfigEntry) -> Evidence:
    """The Evidence for a setting: its line, and its value as the collector redacted it."""
    value = f"{entry.setting.key} = {' '.join(entry.setting.value.split())}"
    number = configuration(view).files.index(entry.file)
    found = view.evidence(f"target.packaging_config.files[{number}]", value)
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
    return host_of(word) in _NVIDIA_HOSTS


def is_loopback(word: str) -> bool:
    return host_of(word) in _LOOPBACK


def undo(view: SnapshotView, entry: ConfigEntry) -> str:
    """The command that takes one setting out of where it stands."""
    file, key = entry.file, _pattern(entry.key)
    if not is_file(file):
        return f"unset {word(file.path)}"
    if file.tool == "uv":
        if entry.setting.section == "index":  # a table of its own: its lines belong together
            return f"grep -n -A4 -F '[[index]]' {word(file.path)}"
        return edit(file, rf"/^{key}[^]]*\[[^]]*$/,/\]/d;/^{key}/d")
    editable = _EDITABLE.get(file.level)
    if editable and file.path.endswith(editable):
        name = word(f"{entry.setting.section}.{entry.setting.key}")
        return f"{sudo(file)}{python(view)} -m pip config --{file.level} unset {name}"
    # The key's line and the indented lines that continue its value.
    return edit(file, f"/^{key}/" + r"{:a;$d;N;/\n[[:space:]]+[^\n]*$/ba;s/^.*\n//}")


def edit(file: ConfigFile, program: str) -> str:
    """A sed command on the file, which keeps the file as it was beside it (.bak)."""
    return f"{sudo(file)}sed -i.bak -E {word(program)} {word(file.path)}"


def _pattern(key: str) -> str:
    """One of pip's or uv's keys in a sed program."""
    return rf"[[:space:]]*{key.replace('-', '[-_]')}[[:space:]]*[=:]"


def sudo(file: ConfigFile) -> str:
    return "sudo " if file.level == "global" else ""
