"""Where pip keeps its configuration, by its own rules, and what stands in it.

pip: "Configuration" in its documentation (pip.pypa.io).
"""

import configparser
import os
import pwd
import stat

from ..credentials import SECRET_NAME, strip
from ..facts import from_error, unavailable

_SIZE = 1 << 20  # bytes of a configuration file
_PIP_SIZE = 1 << 16  # characters
_MOST = 200  # sections of a pip.conf, of which pip knows some twenty, and settings in its [DEFAULT]
_VALUE_LIMIT = 2000  # characters

# What decides where packages come from, whether they are verified, and where they go.
PIP_KEYS = frozenset(
    (
        "index-url extra-index-url index pypi-url find-links trusted-host no-index no-cache-dir "
        "cache-dir cert client-cert proxy pre require-virtualenv only-binary no-binary prefer- "
        "binary constraint require-hashes target user prefix root break-system-packages ignore- "
        "installed no-deps no-build-isolation config-file keyring-provider use-deprecated use- "
        "feature timeout retries uploaded-prior-to"
    ).split()
)


def settings_home(environ):
    """The user's home directory, as pip finds it."""
    home = environ.get("HOME")
    if home:
        return home
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return "/"


def pip_files(environ, prefix):
    """[(level, path)] of the files that pip reads in this environment, in its order."""
    chosen = environ.get("PIP_CONFIG_FILE")
    if chosen == os.devnull:
        return []  # pip's own way to switch all files off
    home = settings_home(environ)
    files = [("global", path + "/pip/pip.conf") for path in _system(environ)]
    files.append(("global", "/etc/pip.conf"))
    if not (chosen and os.path.exists(chosen)):
        files.append(("user", os.path.join(home, ".pip", "pip.conf")))
        files.append(("user", os.path.join(_config_home(environ, home), "pip", "pip.conf")))
    files.append(("site", os.path.join(prefix, "pip.conf")))
    return files + ([("environment", os.path.abspath(chosen))] if chosen else [])


def _system(environ):
    paths = (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":")
    return [path.rstrip("/") for path in paths if path]


def _config_home(environ, home):
    return environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")


def read_file(context, level, path):
    """A ConfigFile's facts, or None where there is no such file."""
    made = {"tool": "pip", "level": level, "path": path}
    try:
        status = os.stat(context.path(path))
    except OSError as error:
        lacking = from_error(error)
        if lacking["unavailable"] == "absent":
            return None
        made["settings"] = lacking
        return made
    made["mode"] = "%04o" % stat.S_IMODE(status.st_mode)
    try:
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("not a regular file")
        text = context.read(path, _SIZE)
        made["settings"] = parse_pip(text)
    except ValueError as error:
        made["settings"] = unavailable("error", "%s: %s" % (path, error))
    except OSError as error:
        made["settings"] = from_error(error)
    return made


def parse_pip(text):
    """The settings of a pip.conf. Raises ValueError, whose message repeats nothing of the file."""
    if len(text) > _PIP_SIZE:  # configparser takes quadratic time for lines that it cannot read
        raise ValueError("it is larger than %d KiB" % (_PIP_SIZE >> 10))
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(text)
        sections = parser.sections()
        if (
            max(len(sections), len(parser.defaults())) > _MOST
        ):  # each of the one has all of the other
            raise ValueError("it has more sections or defaults than pip has commands or options")
        pairs = [
            (section, key, value)
            for section in sections
            for key, value in parser.items(section)
            if _is_reported(key)
        ]
    except configparser.Error as error:
        line = getattr(error, "lineno", None) or next(
            (at for at, _ in getattr(error, "errors", ())), None
        )
        raise ValueError(
            "pip cannot read it (%s%s)"
            % (type(error).__name__, "" if line is None else " at line %d" % line)
        )
    return [setting(section, _pip_name(key), value or "") for section, key, value in pairs]


def _pip_name(key):
    return key.lstrip("-").replace("_", "-").lower()


def _is_reported(key):
    name = _pip_name(key)
    return name in PIP_KEYS or bool(SECRET_NAME.search(name))


def setting(section, key, value):
    """A ConfigSetting's facts: credentials noted, and gone from the value."""
    value = "\n".join(part.strip() for part in value.strip().splitlines() if part.strip())
    shown, credentials = ("", bool(value)) if SECRET_NAME.search(key) else strip(value)
    shown = shown[:_VALUE_LIMIT]
    return {"section": section, "key": key, "value": shown, "credentials": credentials}


def variables(environ):
    """ConfigFile facts of PIP_*: level "environment", and the variable's name for a path."""
    found = []
    for name, value in sorted(environ.items()):
        key = name[4:].replace("_", "-").lower()
        if name.startswith("PIP_") and value and (key in PIP_KEYS or SECRET_NAME.search(key)):
            made = {"tool": "pip", "level": "environment", "path": name}
            found.append(dict(made, settings=[setting("env", key, value)]))
    return found
