"""What containers.conf tells podman of CDI."""

import os

from ..facts import unavailable
from ..packaging import toml

FILES = ("/usr/share/containers/containers.conf", "/etc/containers/containers.conf")
DROP_INS = ("/usr/share/containers/containers.conf.d", "/etc/containers/containers.conf.d")
_LIMIT = 1 << 20  # bytes of one file


def cdi_spec_dirs(context):
    """The directories that it names, of the last file that names some."""
    found = None
    for path in _paths(context):
        try:
            engine = toml.loads(context.read(path, _LIMIT)).get("engine")
        except (OSError, ValueError):
            continue
        folders = engine.get("cdi_spec_dirs") if isinstance(engine, dict) else None
        if isinstance(folders, list):
            found = [str(folder) for folder in folders]
    return unavailable("absent", "not set in containers.conf") if found is None else found


def _paths(context):
    home = context.environ.get("XDG_CONFIG_HOME") or (
        os.path.join(context.environ["HOME"], ".config") if context.environ.get("HOME") else ""
    )
    for file, folder in zip(FILES, DROP_INS):
        yield file
        for path in _below(context, folder):
            yield path
    if home.startswith("/"):
        yield home + "/containers/containers.conf"
        for path in _below(context, home + "/containers/containers.conf.d"):
            yield path
    if context.environ.get("CONTAINERS_CONF"):
        yield context.environ["CONTAINERS_CONF"]


def _below(context, folder):
    try:
        names = sorted(os.listdir(context.path(folder)))
    except OSError:
        return []
    return [folder + "/" + name for name in names if name.endswith(".conf")]
