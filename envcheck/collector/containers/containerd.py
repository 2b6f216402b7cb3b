"""What containerd is configured to do for Kubernetes: its runtimes, in each version of its configuration."""

import fnmatch
import os

from ..facts import from_error, unavailable
from ..packaging import toml
from .processes import option

CONFIG = "/etc/containerd/config.toml"
RANCHERS = "/var/lib/rancher/%s/agent/etc/containerd/config.toml"  # of k3s and rke2
DROP_INS = "/etc/containerd/conf.d"
# Where each version of the configuration keeps what is about Kubernetes.
SECTIONS = {1: "cri", 2: "io.containerd.grpc.v1.cri", 3: "io.containerd.cri.v1.runtime"}
NVIDIA = "nvidia-container-runtime"
_LIMIT = 1 << 20  # bytes of one file
_FILES = 50


def put(facts, context, processes, distribution):
    """processes: the containerds that run."""
    path = _config(context, processes, distribution)
    facts.put("config", path)
    try:
        files = _read(context, path)
    except (OSError, ValueError) as error:
        for name in (
            "runtimes",
            "default_runtime",
            "cgroup_driver",
            "cdi_enabled",
            "cdi_spec_dirs",
        ):
            facts.put(name, _why(error))
        return
    section, runtimes = {}, {}
    unread = []
    for name, document in files:
        version = _version(document, files)
        plugins = toml.table(document, "plugins")
        part = toml.table(plugins, SECTIONS[version])
        section.update({key: value for key, value in part.items() if not isinstance(value, dict)})
        engine = toml.table(part, "containerd")
        section.update({key: value for key, value in engine.items() if not isinstance(value, dict)})
        for runtime, settings in toml.table(engine, "runtimes").items():
            runtimes.setdefault(runtime, {}).update(settings if isinstance(settings, dict) else {})
        _put_older(runtimes, plugins)
        for other in SECTIONS.values():
            hidden = toml.table(plugins, other) if other != SECTIONS[version] else {}
            if _nvidia(toml.table(hidden, "containerd", "runtimes")):
                unread.append({"path": name, "reason": "section", "section": other})
    unread += _not_imported(context, path, [name for name, _document in files])
    _put(facts, section, runtimes, unread)
    programs = [program for _name, program in sorted(_nvidia(runtimes).items())]
    gone = [one for one in programs if one[:1] == "/" and not os.path.exists(context.path(one))]
    facts.put("missing_runtimes", sorted(set(gone)))


def _put(facts, section, runtimes, unread):
    nvidia = _nvidia(runtimes)
    facts.put("runtimes", sorted(runtimes))
    facts.put("nvidia_runtimes", sorted(nvidia))
    facts.put("unread", unread)
    default = section.get("default_runtime_name")
    facts.put("default_runtime", default if isinstance(default, str) and default else "runc")
    cgroups = {
        bool(toml.table(settings, "options").get("SystemdCgroup")) for settings in runtimes.values()
    }
    facts.put("cgroup_driver", "systemd" if True in cgroups else "cgroupfs")
    cdi = section.get("enable_cdi")
    facts.put("cdi_enabled", cdi if isinstance(cdi, bool) else unavailable("absent", "not set"))
    folders = section.get("cdi_spec_dirs")
    facts.put(
        "cdi_spec_dirs",
        [str(one) for one in folders]
        if isinstance(folders, list)
        else unavailable("absent", "not set"),
    )


def _config(context, processes, distribution):
    """The configuration file of the kubelet's containerd: docker has one of its own."""
    usual = RANCHERS % distribution
    usual = usual if os.path.exists(context.path(usual)) else CONFIG
    found = [option(one.arguments, "--config", "-c", "-config") or usual for one in processes]
    own = [path for path in found if "/docker/" not in path]
    named = [path for path in own if "/%s/" % distribution in path]
    return (named or own or [usual])[0]


def _read(context, path):
    """[(file, document), ...] of the configuration and what it imports. Raises OSError, ValueError."""
    try:
        main = toml.loads(context.read(path, _LIMIT))
    except FileNotFoundError:
        main = {}  # its defaults
    files = [(path, main)]
    for pattern in _list(main, "imports"):
        for name in _matching(context, os.path.join(os.path.dirname(path), str(pattern)))[:_FILES]:
            if name != path:
                files.append((name, toml.loads(context.read(name, _LIMIT))))
    return files


def _matching(context, pattern):
    folder, name = os.path.split(pattern)
    names = context.names(folder)
    return [os.path.join(folder, one) for one in sorted(fnmatch.filter(names, name))]


def _version(document, files):
    """Of a file's own version, else the first file's."""
    for one in (document, files[0][1]):
        version = one.get("version")
        if isinstance(version, int) and version in SECTIONS:
            return version
    return 1


def _put_older(runtimes, plugins):
    """containerd before 1.3 has its runtime in a section of its own."""
    program = toml.table(plugins, "linux").get("runtime") or toml.table(
        plugins, "io.containerd.runtime.v1.linux"
    ).get("runtime")
    if isinstance(program, str) and NVIDIA in program:
        runtimes.setdefault("runc", {}).setdefault("options", {})["BinaryName"] = program


def _nvidia(runtimes):
    """{runtime: its program} of those that are NVIDIA's."""
    found = {}
    for name, settings in runtimes.items():
        if not isinstance(settings, dict):
            continue
        program = toml.table(settings, "options").get("BinaryName") or settings.get(
            "runtime_engine"
        )
        if isinstance(program, str) and NVIDIA in os.path.basename(program):
            found[name] = program
    return found


def _not_imported(context, path, read):
    """The drop-ins that tell of NVIDIA's runtime and that nothing imports."""
    if path != CONFIG:
        return []
    unread = []
    for name in _matching(context, DROP_INS + "/*.toml"):
        if name not in read and NVIDIA in context.text(name):
            unread.append({"path": name, "reason": "not-imported", "section": ""})
    return unread


def _why(error):
    return from_error(error) if isinstance(error, OSError) else unavailable("error", str(error))


def _list(parent, name):
    found = parent.get(name)
    return found if isinstance(found, list) else []
