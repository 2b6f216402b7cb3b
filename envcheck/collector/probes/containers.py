"""Container engines, NVIDIA's container toolkit and its CDI specifications."""

import json
import os
import re

from .. import account
from ..containers import containers_conf, kubernetes, limits, logs, settings, specs
from ..facts import Facts, from_error, known, unavailable
from ..packaging import toml
from ..runtime import process, programs
from ..worker import forked

DOCUMENT = "machine"
DEADLINE = 8
ANSWER = 5.0  # seconds that an engine may take
STORAGE = 1.0  # seconds that its storage's file system may take
CONFIG = "/etc/nvidia-container-runtime/config.toml"
HOOK_FOLDERS = ("/usr/share/containers/oci/hooks.d", "/etc/containers/oci/hooks.d")
HOOKS = ("nvidia-container-runtime-hook", "nvidia-container-toolkit")  # its name, and the older one

# What each program is asked; all of it side by side.
QUESTIONS = {
    "docker": (("version", ["--version"]), ("info", ["info", "--format", "{{json .}}"])),
    "podman": (("version", ["--version"]), ("info", ["info", "--format", "json"])),
    "apptainer": (("version", ["--version"]),),
    "singularity": (("version", ["--version"]),),
    "enroot": (("version", ["version"]),),
    "nvidia-ctk": (("version", ["--version"]),),
    "nvidia-container-cli": (("version", ["--version"]),),
}
# What lets apptainer start containers without user name spaces.
STARTERS = ["/usr/libexec/%s/bin/starter-suid" % one for one in ("apptainer", "singularity")]
STARTERS += ["/usr/local/libexec/%s/bin/starter-suid" % one for one in ("apptainer", "singularity")]
ENGINES = ("docker", "podman", "apptainer", "singularity", "enroot")


def collect(context):
    facts = Facts("container engines and toolkit")
    found = {name: programs.find(context, name) for name in QUESTIONS}
    if found["apptainer"]:
        found["singularity"] = None  # its package brings a link of the old name
    answers = ask(context, {name: path for name, path in found.items() if path})
    engines = [_engine(context, name, found[name], answers) for name in ENGINES if found[name]]
    engines = [engine for engine in engines if engine is not None]
    _put_storage(context, engines)
    facts.put(
        "engines", [engine.values for engine in engines], "docker info, podman info, --version"
    )
    _put_toolkit(facts, context, found, answers)
    settings.put(facts, context)
    facts.put("errors", logs.errors(context), "/var/log")
    kubernetes.put(facts, context)
    facts.attempt(
        "cdi_specs",
        ", ".join(specs.SPEC_FOLDERS),
        specs.specs,
        context,
        _other_folders(engines, facts.get("kubernetes")),
    )
    return facts


def _other_folders(engines, node):
    """The directories of CDI specifications that an engine is to read."""
    named = [engine.get("cdi_spec_dirs") for engine in engines]
    named.append(known(node.get("cdi_spec_dirs")) if node else None)
    return [folder for folders in named for folder in folders or []]


def ask(context, paths):
    """What every program says: {(name, question): process.Result}."""
    questions = [
        (name, question, [context.path(path)] + arguments)
        for name, path in sorted(paths.items())
        for question, arguments in QUESTIONS[name]
    ]
    children = [
        process.Child(argv, ANSWER, env=context.environ, own_session=False, tied=True)
        for _name, _question, argv in questions
    ]
    process.run_all(children)
    return {
        (name, question): child.result
        for (name, question, _argv), child in zip(questions, children)
    }


def _engine(context, name, path, answers):
    """The engine's facts, or None where the program is another engine's in disguise."""
    version = answers[name, "version"]
    if name == "docker" and b"podman version" in version.stdout:
        return None  # podman-docker's script of that name
    facts = Facts()
    facts.put("name", name)
    facts.put("path", path)
    facts.put("version", _version(version))
    if name == "docker":
        server = programs.find(context, "dockerd")
        facts.put("server_path", server or unavailable("absent", "no program named dockerd"))
        put_docker(facts, answers[name, "info"], context.environ)
        if facts.get("desktop") is None and _context(context).startswith("desktop-"):
            facts.put("desktop", True, "docker's context")
        if facts.get("remote") is False:
            info = _document(answers[name, "info"])
            facts.put("missing_runtimes", _missing_runtimes(context, info.get("Runtimes")))
    elif name in ("apptainer", "singularity"):
        facts.put("rootless", not any(os.path.exists(context.path(one)) for one in STARTERS))
    elif name == "podman":
        put_podman(facts, answers[name, "info"])
        if facts.get("cdi_spec_dirs") is None:
            facts.put("cdi_spec_dirs", containers_conf.cdi_spec_dirs(context))
    if facts.get("rootless") is not None and facts.get("server_version"):
        limits.put(facts, context)
    return facts


def _context(context):
    """The context that docker's client takes its server from; "" where that is the machine's own."""
    try:
        settings = json.loads(context.text(account.home(context) + "/.docker/config.json") or "{}")
        return str(context.environ.get("DOCKER_CONTEXT") or settings.get("currentContext") or "")
    except (ValueError, AttributeError):
        return ""


def _missing_runtimes(context, runtimes):
    """The programs of NVIDIA's that docker is configured to start containers with, and that are not there."""
    missing = []
    for runtime in (runtimes if isinstance(runtimes, dict) else {}).values():
        path = str(runtime.get("path") or "") if isinstance(runtime, dict) else ""
        if "nvidia-container-runtime" not in path:
            continue
        there = os.path.exists(context.path(path)) if "/" in path else programs.find(context, path)
        if not there:
            missing.append(path)
    return sorted(missing)


def _version(result):
    text = result.stdout.decode("utf-8", "replace")
    match = re.search(r"(?<![\d.])\d+(?:\.\d+)+[\w.+~-]*", text)
    if result.ok and match:
        return match.group(0)
    return _no_answer(result)


def _no_answer(result):
    words = result.tail(3)
    reason = "timeout" if result.outcome == "timeout" else "error"
    if "permission denied" in words.lower():
        reason = "no-permission"
    elif (
        not words and result.outcome == "exited" and result.code >= 0
    ):  # no engine ends without a word
        reason = "not-supported"
    return unavailable(reason, words if words and reason != "timeout" else result.describe())


def _document(result):
    """The JSON object that the engine printed, whatever its exit status, or {}."""
    text = result.stdout.decode("utf-8", "replace")
    try:
        document = json.loads(text[text.find("{") :] or "{}")
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _put_silent(facts, why):
    """The server did not answer: ``why`` with its words stands once, the bare reason everywhere else."""
    facts.put("server_version", why)
    for name in ("rootless", "runtimes", "storage_free_mib") + tuple(_DOCKER):
        facts.missing(name, why["unavailable"], "the server did not answer")


# {fact: its path in what the engine prints}
_DOCKER = {
    "cgroup_driver": "CgroupDriver",
    "cgroup_version": "CgroupVersion",
    "default_runtime": "DefaultRuntime",
    "storage_driver": "Driver",
    "storage_path": "DockerRootDir",
}
_PODMAN = {
    "server_version": "version/Version",
    "cgroup_driver": "host/cgroupManager",
    "cgroup_version": "host/cgroupVersion",
    "default_runtime": "host/ociRuntime/name",
    "storage_driver": "store/graphDriverName",
    "storage_path": "store/graphRoot",
}


def _at(info, path):
    """What stands at a path of keys in a document; None where it does not."""
    for key in path.split("/"):
        info = info.get(key) if isinstance(info, dict) else None
    return info


def _put_texts(facts, info, table):
    for name, path in table.items():
        value = _at(info, path)
        facts.put(name, str(value) if value else unavailable("error", "the engine does not say"))


def put_docker(facts, result, environ):
    """result: of `docker info --format '{{json .}}'`."""
    info = _document(result)
    if not info.get("ServerVersion"):
        errors = info.get("ServerErrors")
        why = _no_answer(result)
        if errors and not result.stderr.strip():  # docker up to 27 says it here and nowhere else
            text = " ".join(str(error) for error in errors)
            why = unavailable("no-permission" if "permission denied" in text else "error", text)
        _put_silent(facts, why)
        return
    options = [str(option) for option in info.get("SecurityOptions") or []]
    facts.put("server_version", str(info["ServerVersion"]))
    facts.put("rootless", "name=rootless" in options)
    facts.put("runtimes", sorted(str(name) for name in info.get("Runtimes") or {}))
    _put_texts(facts, info, _DOCKER)
    facts.put("selinux", "name=selinux" in options)
    if str(info.get("InitBinary") or "").startswith("/"):  # "init-path" of daemon.json
        facts.put("init_path", info["InitBinary"])
    desktop = info.get("OperatingSystem") == "Docker Desktop"
    facts.put("desktop", desktop)
    # Docker Desktop has a virtual machine of its own.
    facts.put("remote", True if desktop else _is_remote(info, environ))
    if "CDISpecDirs" in info:
        facts.put("cdi_enabled", bool(info["CDISpecDirs"]))
        facts.put("cdi_spec_dirs", [str(folder) for folder in info["CDISpecDirs"] or []])
    else:
        facts.missing("cdi_enabled", "not-supported", "this docker knows nothing of CDI")


def _is_remote(info, environ):
    host = environ.get("DOCKER_HOST")
    if host:
        return not host.startswith(("unix://", "fd://"))
    name = _at(info, "ClientInfo/Context")
    if name not in (None, "", "default", "rootless"):
        return unavailable("not-supported", "docker context %s" % name)
    return False


def put_podman(facts, result):
    """result: of `podman info --format json`."""
    info = _document(result)
    host = info.get("host")
    if not host or not isinstance(host, dict):
        _put_silent(facts, _no_answer(result))
        return
    _put_texts(facts, info, _PODMAN)
    rootless = _at(host, "security/rootless")
    if not isinstance(rootless, bool):
        rootless = unavailable("error", "podman does not say")
    facts.put("rootless", rootless)
    runtime = _at(host, "ociRuntime/name")
    facts.put("runtimes", [] if runtime is None else [str(runtime)])
    labels = _at(host, "security/selinuxEnabled")
    if isinstance(labels, bool):
        facts.put("selinux", labels)
    facts.put("remote", host.get("serviceIsRemote") is True)
    folders = next((host[key] for key in host if key.lower() == "cdispecdirs"), None)
    if isinstance(folders, list):
        facts.put("cdi_spec_dirs", [str(folder) for folder in folders])


def _put_storage(context, engines):
    """How much room there is where the engines keep their images, if that is on this machine."""
    local = [one for one in engines if one.get("storage_path") and one.get("remote") is False]
    paths = [context.path(one.get("storage_path")) for one in local]
    looks = forked.call_all([lambda path=path: _free(path) for path in paths], STORAGE)
    late = unavailable("timeout", "statvfs gave no answer within %g s" % STORAGE)
    for engine, (outcome, value) in zip(local, looks):
        engine.put("storage_free_mib", late if outcome == "timeout" else value)


def _free(path):
    stat = os.statvfs(path)
    return stat.f_bavail * stat.f_frsize // 1048576


def _put_toolkit(facts, context, found, answers):
    for field, program in (("toolkit", "nvidia-ctk"), ("cli", "nvidia-container-cli")):
        path = version = unavailable("absent", "no program named " + program)
        if found[program] is not None:
            path, version = found[program], _version(answers[program, "version"])
        facts.put(field + "_path", path, "PATH")
        facts.put(field + "_version", version, program + " --version")
    hooks = [path for path in (programs.find(context, name) for name in HOOKS) if path]
    absent = unavailable("absent", "no program named " + HOOKS[0])
    facts.put("hook_path", hooks[0] if hooks else absent, "PATH")
    facts.attempt("oci_hooks", ", ".join(HOOK_FOLDERS), _oci_hooks, context)
    _put_config(facts, context)


def _oci_hooks(context):
    """The files that make podman call NVIDIA's hook."""
    found = []
    for folder in HOOK_FOLDERS:
        try:
            names = sorted(os.listdir(context.path(folder)))
        except FileNotFoundError:
            continue
        for name in names:
            path = folder + "/" + name
            if name.endswith(".json") and any(hook in context.read(path) for hook in HOOKS):
                found.append(path)
    return found


def _put_config(facts, context):
    names = ("config", "mode", "no_cgroups")
    try:
        settings = toml.loads(context.read(CONFIG))
    except (OSError, ValueError) as error:
        values = [from_error(error)] * len(names)
    else:
        unset = unavailable("absent", "not set")
        cli = toml.table(settings, "nvidia-container-cli")
        cgroups = cli.get("no-cgroups")
        mode = str(toml.table(settings, "nvidia-container-runtime").get("mode") or "") or unset
        no_cgroups = unset if cgroups is None else str(cgroups).lower() == "true"
        values = [CONFIG, mode, no_cgroups]
    for name, value in zip(names, values):
        facts.put("toolkit_" + name, value, CONFIG)
