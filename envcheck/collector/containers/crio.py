"""What CRI-O is configured to do: its runtimes, from crio.conf and its drop-ins."""

import os

from ..facts import from_error, unavailable
from ..packaging import toml

CONFIG = "/etc/crio/crio.conf"
DROP_INS = "/etc/crio/crio.conf.d"
HOOK_FOLDERS = ("/usr/share/containers/oci/hooks.d", "/run/containers/oci/hooks.d")
HOOK = "nvidia-container-runtime-hook"
NVIDIA = "nvidia-container-runtime"
_LIMIT = 1 << 20  # bytes of one file


def put(facts, context):
    facts.put("config", CONFIG)
    try:
        settings, runtimes = _read(context)
    except (OSError, ValueError) as error:
        why = from_error(error) if isinstance(error, OSError) else unavailable("error", str(error))
        for name in ("runtimes", "default_runtime", "cgroup_driver", "cdi_spec_dirs"):
            facts.put(name, why)
        return
    programs = {name: str(one.get("runtime_path") or "") for name, one in runtimes.items()}
    nvidia = {name: one for name, one in programs.items() if NVIDIA in os.path.basename(one)}
    facts.put("runtimes", sorted(runtimes))
    facts.put("nvidia_runtimes", sorted(nvidia))
    facts.put(
        "missing_programs",
        sorted({one for one in nvidia.values() if not os.path.exists(context.path(one))}),
    )
    facts.put("unread", [])
    for name, key in (("default_runtime", "default_runtime"), ("cgroup_driver", "cgroup_manager")):
        value = settings.get(key)
        facts.put(
            name, value if isinstance(value, str) and value else unavailable("absent", "not set")
        )
    folders = settings.get("cdi_spec_dirs")
    facts.put(
        "cdi_spec_dirs",
        [str(one) for one in folders]
        if isinstance(folders, list)
        else unavailable("absent", "not set"),
    )
    facts.put("cdi_enabled", True)  # it has no switch for it
    hooks = settings.get("hooks_dir")
    facts.put("hooks", _hooks(context, hooks if isinstance(hooks, list) else []))


def _hooks(context, more):
    """The files that make it call NVIDIA's hook in every container that asks for GPUs."""
    found = []
    for folder in sorted(set(HOOK_FOLDERS) | {str(one) for one in more}):
        names = context.names(folder)
        for name in names:
            if name.endswith(".json") and HOOK in context.text(folder + "/" + name):
                found.append(folder + "/" + name)
    return found


def _read(context):
    """(the settings of crio.runtime, {runtime: its settings}). Raises OSError, ValueError."""
    paths = [CONFIG]
    paths += [DROP_INS + "/" + name for name in context.names(DROP_INS)]  # whatever they end in
    settings, runtimes = {}, {}
    for path in paths:
        try:
            document = toml.loads(context.read(path, _LIMIT))
        except (FileNotFoundError, IsADirectoryError):
            continue
        part = toml.table(document, "crio", "runtime")
        for name, one in toml.table(part, "runtimes").items():
            if isinstance(one, dict):
                runtimes.setdefault(name, {}).update(one)
        settings.update({key: value for key, value in part.items() if key != "runtimes"})
    return settings, runtimes
