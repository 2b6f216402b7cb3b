"""pip's configuration as it reaches the target, and what nvidia-pyindex left in it."""

import sys

from ..facts import Facts, is_unavailable
from ..packaging import configuration

DOCUMENT = "target"
DEADLINE = 10

_NGC = "pypi.ngc.nvidia.com"


def collect(context):
    facts = Facts(source="pip's configuration files and variables")
    prefix = context.params.get("prefix", sys.prefix)
    files = []
    seen = set()
    for place in configuration.pip_files(context.environ, prefix):
        config = configuration.read_file(context, *place) if place not in seen else None
        seen.add(place)
        if config is not None:
            files.append(config)
    facts.put("pyindex_traces", [config["path"] for config in files if has_pyindex_trace(config)])
    facts.put("files", files + configuration.variables(context.environ))
    return facts


def has_pyindex_trace(config):
    """Whether a pip file holds NVIDIA's extra index the way nvidia-pyindex 1.0.9 writes it."""
    settings = config.get("settings", [])
    if is_unavailable(settings):
        return False
    values = {}
    for setting in settings:
        values.setdefault(setting["key"], []).append(setting["value"])
    if not any(_NGC in value for value in values.get("extra-index-url", ())):
        return False
    trusted = any(_NGC in value for value in values.get("trusted-host", ()))
    uncached = any(
        value.lower() in ("true", "1", "yes", "on") for value in values.get("no-cache-dir", ())
    )
    return trusted or uncached
