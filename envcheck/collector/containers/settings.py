"""How container engines and NVIDIA's toolkit are configured: their files, and options of docker's server."""

import json
import os
import re
import sys

from .. import account
from ..packaging import toml
from .processes import running

TOOLKIT = "/etc/nvidia-container-runtime/config.toml"
# {whose settings: its files, of which later ones count before earlier ones}; "~" is the user's home.
FILES = (
    ("docker", "/etc/docker/daemon.json"),
    ("docker", "/var/snap/docker/current/config/daemon.json"),
    ("docker-rootless", "~/.config/docker/daemon.json"),
    ("toolkit", TOOLKIT),
    ("containerd", "/etc/containerd/config.toml"),
    ("crio", "/etc/crio/crio.conf"),
    ("crio", "/etc/crio/crio.conf.d/"),
    ("crio-unread", "/etc/crio/conf.d/"),  # where some toolkits wrote, and CRI-O does not look
)
UNITS = ("/usr/lib/systemd/system", "/lib/systemd/system", "/etc/systemd/system")
_LIMIT = 1 << 20  # bytes of one file
_MOST = 400  # settings
_TEXT = 500  # characters of a value
# The names that options of dockerd have in daemon.json, where they are others.
_IN_FILE = {
    "H": "hosts",
    "host": "hosts",
    "add-runtime": "runtimes",
    "exec-opt": "exec-opts",
    "insecure-registry": "insecure-registries",
    "registry-mirror": "registry-mirrors",
    "g": "data-root",
    "graph": "data-root",
    "s": "storage-driver",
    "label": "labels",
    "log-opt": "log-opts",
    "storage-opt": "storage-opts",
    "cdi-spec-dir": "cdi-spec-dirs",
    "default-ulimit": "default-ulimits",
}


def put(facts, context):
    found, broken = {}, []
    for owner, path in _files(context):
        try:
            text = context.read(path, _LIMIT)
            document = _document(text, path) if text.strip() else {}
        except OSError:
            continue
        except (ValueError, RecursionError) as error:
            if not path.endswith(".json") and sys.version_info < (3, 11):
                continue  # our own reader does not take all of TOML
            broken.append({"path": path, "owner": owner, "error": str(error)[:_TEXT]})
            continue
        for name, value in _scalars(document, owner):
            found[name] = _setting(context, name, value, path)
    for name, value, source in _server_options(context):
        found["dockerd." + name] = _setting(context, "dockerd." + name, value, source)
    facts.put("settings", [found[name] for name in sorted(found)][:_MOST], "configuration files")
    facts.put("broken_files", broken, "configuration files")


def _files(context):
    for owner, path in FILES:
        path = path.replace("~", account.home(context), 1)
        if path.endswith("/"):
            for name in context.names(path):
                yield owner, path + name
        else:
            yield owner, path


def _document(text, path):
    """Raises ValueError."""
    document = json.loads(text) if path.endswith(".json") else toml.loads(text)
    if not isinstance(document, dict):
        raise ValueError("it is no object")
    return document


def _scalars(value, name):
    """(name, text) of each value; of containerd only what stands above its first table."""
    if isinstance(value, dict):
        for key, item in value.items():
            if name != "containerd" or not isinstance(item, dict):
                for pair in _scalars(item, "%s.%s" % (name, key)):
                    yield pair
    elif isinstance(value, list):
        yield name, ",".join(str(item) for item in value)
    elif isinstance(value, bool):
        yield name, "true" if value else "false"
    else:
        yield name, str(value)


def _setting(context, name, value, source):
    path = value[1:] if value.startswith("@/") else value
    missing = bool(re.match(r"/[\w./+@-]+\Z", path)) and not os.path.exists(context.path(path))
    return {"name": name, "value": value[:_TEXT], "source": source, "missing": missing}


def _server_options(context):
    """[(name as in daemon.json, value, where it stands)] of the options that dockerd is started with."""
    servers = running(context, ("dockerd",)).get("dockerd")
    line, source = _unit(context)
    words = servers[0].arguments if servers and "/snap/" not in servers[0].arguments[0] else line
    words = [word for word in words[1:] if not word.startswith("$")]
    found = []
    for place, word in enumerate(words):
        if not word.startswith("-"):
            continue
        name, _equals, value = word.lstrip("-").partition("=")
        if not value and place + 1 < len(words) and not words[place + 1].startswith("-"):
            value = words[place + 1]
        found.append((_IN_FILE.get(name, name), value or "true", source))
    return found


def _unit(context):
    """The words of docker.service's last ExecStart, and the file that has it."""
    paths = ["%s/docker.service" % folder for folder in UNITS]
    for folder in UNITS[1:]:
        drop_ins = "%s/docker.service.d" % folder
        paths += ["%s/%s" % (drop_ins, name) for name in context.names(drop_ins)]
    words, source = [], "docker.service"
    for path in paths:
        text = re.sub(r"\\\n\s*", " ", context.text(path))
        for line in re.findall(r"^ExecStart=(.*)$", text, re.M):
            words, source = line.split(), path
    return words, source
