"""The check on pip's configuration: what nvidia-pyindex has left in it."""

from __future__ import annotations

from urllib.parse import urlsplit

from ...data.releases import wheel_pythons
from ...facts.target import ConfigFile, ConfigSetting
from ..declared import declared_causes
from ..installing import pip_config
from ..reading import SnapshotView, facts_of, known
from ..target import installed_if_known, pip_uninstall, python_version, tensorflows
from ..verdicts import Evidence, Passed, Verdicts, about, about_file, check, word

CAUSE = declared_causes(__name__)

# Index hosts that NVIDIA has used: nvidia-pyindex writes the first, newer NVIDIA stubs the second.
_NVIDIA_HOSTS = ("pypi.ngc.nvidia.com", "pypi.nvidia.com", "developer.download.nvidia.com")
# The constraint file that envcheck puts beside an index of a stack's own, in the environments it makes.
_OWN_CONSTRAINTS = "/.envcheck/constraints.txt"
# Of a level's files, the one that `pip config --LEVEL` edits; pip reads the others too.
_EDITABLE = {"global": "/etc/pip.conf", "user": "/pip/pip.conf", "site": "/pip.conf"}
_EFFECTS = {
    "extra-index-url": "every installation also asks NVIDIA's index",
    "trusted-host": "its certificate is not verified",
    "no-cache-dir": "nothing that was downloaded is kept",
}


@check("CFG-001")
def pyindex(view: SnapshotView) -> Verdicts:
    config = facts_of(view.target.packaging_config, "pip's and uv's configuration")
    if not config.pyindex_traces:
        yield Passed("no traces of nvidia-pyindex")
        return
    packages, version = installed_if_known(view), python_version(view)
    has_package = "nvidia-pyindex" in packages
    python = "" if version is None else "{}.{}".format(*version)
    if has_package and python and python not in wheel_pythons() and not tensorflows(packages):
        yield CAUSE["no-wheel-for-this-python"].found(
            about("package", "nvidia-tensorflow"),
            [view.evidence("target.interpreter.version")],
            python=python,
            pythons=", ".join(wheel_pythons()),
        )
    uninstall = [pip_uninstall(view, "nvidia-pyindex")] if has_package else []
    for path in config.pyindex_traces:
        file = next((one for one in config.files if one.path == path), None)
        settings = [] if file is None else _written_by_pyindex(file)
        keys = {_key(one) for one in settings}
        effects = ", ".join(effect for key, effect in _EFFECTS.items() if key in keys)
        commands = [] if file is None else [_undo(view, file, one) for one in settings]
        where = f"target.packaging_config.files[{config.files.index(file)}]" if file else ""
        evidence = [
            Evidence(where, f"{one.key} = {' '.join(one.value.split())}", path) for one in settings
        ]
        traces = view.evidence("target.packaging_config.pyindex_traces", path)
        yield CAUSE["pyindex-settings"].found(
            about_file(path),
            evidence or [traces],
            commands=[*(dict.fromkeys(commands) or [_show(path)]), *uninstall],
            file=path,
            effects=f": {effects}" if effects else "",
        )


def _key(one: ConfigSetting) -> str:
    """pip's own spelling: "extra-index-url"."""
    return one.key.rpartition(".")[2].lower().replace("_", "-")


def _words(one: ConfigSetting) -> list[str]:
    return one.value.replace(",", " ").split()


def _is_nvidia(text: str) -> bool:
    """Whether a URL, or a trusted-host entry ("host:port"), is NVIDIA's."""
    try:
        host = urlsplit(text if "://" in text else f"//{text}").hostname or ""
    except ValueError:
        return False
    return host.lower() in _NVIDIA_HOSTS


def _written_by_pyindex(file: ConfigFile) -> list[ConfigSetting]:
    settings = known(file.settings) or []
    # The index that envcheck gave an environment stays: a constraint file pins what comes from it.
    guarded = file.level == "site" and any(
        _key(one) == "constraint" and any(w.endswith(_OWN_CONSTRAINTS) for w in _words(one))
        for one in settings
    )
    keys = ("trusted-host",) if guarded else ("extra-index-url", "trusted-host")
    return [
        one
        for one in settings
        if _key(one) == "no-cache-dir" or (_key(one) in keys and any(map(_is_nvidia, _words(one))))
    ]


def _undo(view: SnapshotView, file: ConfigFile, one: ConfigSetting) -> str:
    """The command that takes the setting out, or shows it where it holds the user's own index too."""
    editable = _EDITABLE.get(file.level)
    alone = _key(one) == "no-cache-dir" or all(map(_is_nvidia, _words(one)))
    if not alone or file.tool != "pip" or not editable or not file.path.endswith(editable):
        return _show(file.path)
    name = word(f"{one.section}.{one.key}")
    return pip_config(view, f"--{file.level} unset {name}", as_root=file.level == "global")


def _show(path: str) -> str:
    return f"grep -n -i -E 'nvidia|no-cache-dir' {word(path)}"
