"""What containers.conf tells podman: of CDI, and of its init program."""

import os

from ..facts import unavailable
from ..packaging import toml

FILES = ("/usr/share/containers/containers.conf", "/etc/containers/containers.conf")
DROP_INS = ("/usr/share/containers/containers.conf.d", "/etc/containers/containers.conf.d")
_LIMIT = 1 << 20  # bytes of one file


def cdi_spec_dirs(context):
    """The directories that it names, of the last file that names some."""
    found = _setting(context, "engine", "cdi_spec_dirs", list)
    if found is None:
        return unavailable("absent", "not set in containers.conf")
    return [str(folder) for folder in found]


def init_path(context):
    """The program that --init puts in front, by the last file that names one; None where none does."""
    for table in ("containers", "engine"):
        found = _setting(context, table, "init_path", str)
        if found:
            return found
    return None


def _setting(context, table, name, kind):
    """The last file's; None where none has it, or another kind of value."""
    found = None
    for path in _paths(context):
        try:
            whole = toml.loads(context.read(path, _LIMIT)).get(table)
        except (OSError, ValueError):
            continue
        value = whole.get(name) if isinstance(whole, dict) else None
        if isinstance(value, kind):
            found = value
    return found


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
    names = context.names(folder)
    return [folder + "/" + name for name in names if name.endswith(".conf")]
