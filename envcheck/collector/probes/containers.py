"""Container engines, NVIDIA's container toolkit and its CDI specifications."""

import json
import os
import re

from ..containers import containers_conf, kubernetes, limits, specs
from ..facts import Facts, from_error, known, unavailable
from ..runtime import bounded, process, programs

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
    """The directories of CDI specifications that an engine is told to read."""
    told = [engine.get("cdi_spec_dirs") for engine in engines]
    told.append(known(node.get("cdi_spec_dirs")) if node else None)
    return [folder for folders in told for folder in folders or []]


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
        put_docker(facts, answers[name, "info"], context.environ)
        if facts.get("remote") is False:
            info = _document(answers[name, "info"])
            facts.put("missing_runtimes", _missing_runtimes(context, info.get("Runtimes")))
    elif name == "podman":
        put_podman(facts, answers[name, "info"])
        if facts.get("cdi_spec_dirs") is None:
            facts.put("cdi_spec_dirs", containers_conf.cdi_spec_dirs(context))
    if facts.get("rootless") is not None:
        limits.put(facts, context)
    return facts


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
    for name in tuple(
        (
            "rootless cgroup_driver cgroup_version runtimes default_runtime storage_driver "
            "storage_path storage_free_mib"
        ).split()
    ):
        facts.missing(name, why["unavailable"], "the server did not answer")


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
    _put_text(facts, "cgroup_driver", info.get("CgroupDriver"))
    _put_text(facts, "cgroup_version", info.get("CgroupVersion"))
    facts.put("runtimes", sorted(str(name) for name in info.get("Runtimes") or {}))
    _put_text(facts, "default_runtime", info.get("DefaultRuntime"))
    _put_text(facts, "storage_driver", info.get("Driver"))
    _put_text(facts, "storage_path", info.get("DockerRootDir"))
    facts.put("selinux", "name=selinux" in options)
    if str(info.get("InitBinary") or "").startswith("/"):  # "init-path" of daemon.json
        facts.put("init_path", info["InitBinary"])
    facts.put("desktop", info.get("OperatingSystem") == "Docker Desktop")
    facts.put("remote", _is_remote(info, environ))
    if "CDISpecDirs" in info:
        facts.put("cdi_enabled", bool(info["CDISpecDirs"]))
        facts.put("cdi_spec_dirs", [str(folder) for folder in info["CDISpecDirs"] or []])
    else:
        facts.missing("cdi_enabled", "not-supported", "this docker knows nothing of CDI")


def _is_remote(info, environ):
    if info.get("OperatingSystem") == "Docker Desktop":
        return True  # in a virtual machine of its own
    host = environ.get("DOCKER_HOST")
    if host:
        return not host.startswith(("unix://", "fd://"))
    client = info.get("ClientInfo") or {}
    name = client.get("Context") if isinstance(client, dict) else None
    if name not in (None, "", "default", "rootless"):
        return unavailable("not-supported", "docker context %s" % name)
    return False


def put_podman(facts, result):
    """result: of `podman info --format json`."""
    info = _document(result)
    version, host, store = (
        info.get(key) if isinstance(info.get(key), dict) else {}
        for key in ("version", "host", "store")
    )
    if not host:
        _put_silent(facts, _no_answer(result))
        return
    security = host.get("security") if isinstance(host.get("security"), dict) else {}
    runtime = host.get("ociRuntime") if isinstance(host.get("ociRuntime"), dict) else {}
    _put_text(facts, "server_version", version.get("Version"))
    rootless = security.get("rootless", host.get("rootless"))
    facts.put(
        "rootless",
        rootless if isinstance(rootless, bool) else unavailable("error", "podman does not say"),
    )
    _put_text(facts, "cgroup_driver", host.get("cgroupManager"))
    _put_text(facts, "cgroup_version", host.get("cgroupVersion"))
    facts.put("runtimes", [str(runtime["name"])] if "name" in runtime else [])
    _put_text(facts, "default_runtime", runtime.get("name"))
    _put_text(facts, "storage_driver", store.get("graphDriverName"))
    _put_text(facts, "storage_path", store.get("graphRoot"))
    labels = security.get("selinuxEnabled")
    if isinstance(labels, bool):
        facts.put("selinux", labels)
    facts.put("remote", host.get("serviceIsRemote") is True)
    folders = next((host[key] for key in host if key.lower() == "cdispecdirs"), None)
    if isinstance(folders, list):
        facts.put("cdi_spec_dirs", [str(folder) for folder in folders])


def _put_text(facts, name, value):
    if value:
        facts.put(name, str(value))
    else:
        facts.missing(name, "error", "the engine does not say")


def _put_storage(context, engines):
    """How much room there is where the engines keep their images, if that is on this machine."""
    local = [
        engine for engine in engines if engine.get("storage_path") and engine.get("remote") is False
    ]
    paths = [context.path(engine.get("storage_path")) for engine in local]
    looks = bounded.call_all([lambda path=path: _free(path) for path in paths], STORAGE)
    for engine, (outcome, value) in zip(local, looks):
        engine.put(
            "storage_free_mib",
            value
            if outcome != "timeout"
            else unavailable("timeout", "statvfs gave no answer within %g s" % STORAGE),
        )


def _free(path):
    stat = os.statvfs(path)
    return stat.f_bavail * stat.f_frsize // 1048576


def _put_toolkit(facts, context, found, answers):
    for field, program in (("toolkit", "nvidia-ctk"), ("cli", "nvidia-container-cli")):
        path = found[program]
        if path is None:
            absent = unavailable("absent", "no program named " + program)
            facts.put(field + "_path", absent)
            facts.put(field + "_version", absent)
        else:
            facts.put(field + "_path", path, "PATH")
            facts.put(
                field + "_version", _version(answers[program, "version"]), program + " --version"
            )
    hooks = [path for path in (programs.find(context, name) for name in HOOKS) if path]
    facts.put(
        "hook_path",
        hooks[0] if hooks else unavailable("absent", "no program named " + HOOKS[0]),
        "PATH",
    )
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
    try:
        settings = specs.read_toml(context.read(CONFIG))
    except OSError as error:
        names = ("toolkit_config", "toolkit_mode", "toolkit_no_cgroups", "toolkit_ldconfig")
        for name in (*names, "toolkit_ldconfig_there"):
            facts.put(name, from_error(error), CONFIG)
        return
    facts.put("toolkit_config", CONFIG, CONFIG)
    mode = settings.get(("nvidia-container-runtime", "mode"))
    facts.put("toolkit_mode", mode or unavailable("absent", "not set"), CONFIG)
    cgroups = settings.get(("nvidia-container-cli", "no-cgroups"))
    facts.put(
        "toolkit_no_cgroups",
        unavailable("absent", "not set") if cgroups is None else cgroups == "true",
        CONFIG,
    )
    ldconfig = settings.get(("nvidia-container-cli", "ldconfig")) or ""
    facts.put("toolkit_ldconfig", ldconfig or unavailable("absent", "not set"), CONFIG)
    on_host = ldconfig.startswith("@/")  # without the @ it is a path of the container's
    facts.put(
        "toolkit_ldconfig_there",
        os.path.exists(context.path(ldconfig[1:]))
        if on_host
        else unavailable("absent", "no path of the host's"),
        CONFIG,
    )
