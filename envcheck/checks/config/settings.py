"""Checks on pip's and uv's configuration: leftovers in it, and what it does without being asked."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.view import SnapshotView
from ...findings.causes import Cause
from ...findings.model import Passed, Verdict
from ...findings.shell import word
from ...findings.subjects import about_file
from ..registry import check
from ..target import installed_if_known, pip_uninstall
from . import common
from .common import ConfigEntry, per_file

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
    about="nvidia-pyindex rewrites pip's configuration when it is installed, in up to five files: it adds"
    " NVIDIA's index, switches off TLS verification for it and switches off the cache, and uninstalling it"
    " does not undo that. envcheck itself never edits these files.",
    sources=(common.PYINDEX, "NVIDIA/tensorflow#98 and #81; pypa/pip#14250 and #11981"),
)
def pyindex(view: SnapshotView) -> Iterator[Verdict]:
    config = common.configuration(view)
    if not config.pyindex_traces:
        yield Passed("no traces of nvidia-pyindex")
        return
    has_package = "nvidia-pyindex" in installed_if_known(view)
    uninstall = [pip_uninstall(view, "nvidia-pyindex")] if has_package else []
    for path in config.pyindex_traces:
        file = next((one for one in config.files if one.path == path), None)
        entries = [] if file is None else common.written_by_pyindex(file)
        keys = {entry.key for entry in entries}
        effects = ", ".join(effect for key, effect in _EFFECTS.items() if key in keys)
        commands = [_undo_pyindex(view, one) for one in entries]
        traces = view.evidence("target.packaging_config.pyindex_traces", path)
        yield LEFTOVERS.found(
            about_file(path),
            [common.evidence(view, one) for one in entries] or [traces],
            commands=[
                *(dict.fromkeys(commands) or [f"grep -n -i nvidia {word(path)}"]),
                *uninstall,
            ],
            file=path,
            effects=f": {effects}" if effects else "",
        )


def _undo_pyindex(view: SnapshotView, entry: ConfigEntry) -> str:
    if entry.key == "no-cache-dir" or all(map(common.is_nvidia, entry.words)):
        return common.undo(view, entry)
    # The user's own index stands beside NVIDIA's.
    return common.edit(entry.file, r"s#(https?://)?[^[:space:]]*nvidia\.com[^[:space:]]*##")


DETOUR = Cause(
    "installs-elsewhere",
    "warn",
    "pip's settings change what is installed",
    "{setting} in {where} {effect}.",
    "Remove the setting.",
)


@check(
    "CFG-007",
    title="Packages are installed into the target, and whole",
    causes=[DETOUR],
    about="Some settings (PIP_TARGET, PIP_USER, PIP_NO_DEPS, PIP_PRE ...) change without a message into which"
    " directory every installation goes, or what it leaves out: it then reports success and leaves the target"
    " unchanged.",
    sources=(common.PIP,),
)
@per_file("no setting leads elsewhere")
def detours(view: SnapshotView, entries: list[ConfigEntry]) -> Iterator[Verdict]:
    for entry in entries:
        effect = _DETOURS.get(entry.key)
        # "no-binary" takes names: a choice for a few packages is fine.
        everything = entry.key != "no-binary" or ":all:" in entry.words
        # pip reads [install] for its own command; [list] or [freeze] change nothing here.
        relevant = entry.setting.section in ("global", "install", "env", "", "pip")
        if effect and everything and relevant and entry.file.tool == "pip" and entry.enabled:
            setting = entry.setting.key
            yield common.warning(view, entry, DETOUR, setting=setting, effect=effect)
