"""The check on pip's and uv's configuration: what nvidia-pyindex has left in it."""

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
from .common import ConfigEntry

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
