"""A node of Kubernetes: the engine behind its kubelet, and what the kubelet has to hand out."""

import json
import os
import re

from ..facts import Facts, from_error, unavailable
from . import containerd
from .processes import option, running

# The programs that are, or contain, a kubelet, and the distribution that they belong to.
KUBELETS = (
    ("kubelet", "kubelet"),
    ("k3s-server", "k3s"),
    ("k3s-agent", "k3s"),
    ("k3s", "k3s"),
    ("kubelite", "microk8s"),
)
PLUGIN = "nvidia-device-plugin"[:15]  # as /proc/PID/comm has it
BESIDE = ("rke2", "k0s", "containerd", "crio", "dockerd", "cri-dockerd", PLUGIN)
FOLDER = "/var/lib/kubelet"
CHECKPOINT = FOLDER + "/device-plugins/kubelet_internal_checkpoint"
CPU_MANAGER = FOLDER + "/cpu_manager_state"
DRA = FOLDER + "/plugins/gpu.nvidia.com"
_ENDPOINT = re.compile(r"^containerRuntimeEndpoint:\s*[\"']?([^\s\"']+)", re.M)


def put(facts, context):
    """Put the node's facts; nothing where no kubelet is seen to run."""
    programs = running(context, [name for name, _what in KUBELETS] + list(BESIDE))
    kubelet = next(((name, what) for name, what in KUBELETS if name in programs), None)
    if kubelet is None:
        return
    name, distribution = kubelet
    if distribution == "kubelet":
        distribution = next((one for one in ("rke2", "k0s") if one in programs), distribution)
    node = Facts()
    node.put("distribution", distribution)
    engine = _engine(context, programs[name][0].arguments, programs)
    node.put("engine", engine)
    if engine == "containerd":
        containerd.put(node, context, programs.get("containerd", []), distribution)
    if PLUGIN in programs:
        node.attempt("passes_devices", "", _passes_devices, context, programs[PLUGIN][0])
    arguments = programs[name][0].arguments
    node.attempt("cpu_manager_policy", CPU_MANAGER, _cpu_manager_policy, context, arguments)
    node.attempt("offered", CHECKPOINT, _offered, context)
    facts.put("kubernetes", node.values, "/proc, the engine's configuration and " + FOLDER)


def _engine(context, arguments, programs):
    """The engine's name, by the kubelet's endpoint, else by what runs."""
    endpoint = option(arguments, "--container-runtime-endpoint", "-container-runtime-endpoint")
    if endpoint is None:
        try:
            match = _ENDPOINT.search(context.read(FOLDER + "/config.yaml"))
        except OSError:
            match = None
        endpoint = match.group(1) if match else None
    if endpoint:
        for part, name in (("crio", "cri-o"), ("docker", "docker"), ("containerd", "containerd")):
            if part in endpoint:
                return name
        return unavailable("not-supported", endpoint)
    if "--docker" in arguments or "cri-dockerd" in programs:
        return "docker"
    if "crio" in programs:
        return "cri-o"
    if "dockerd" in programs and "containerd" in programs:
        return unavailable("error", "docker and containerd run, and the kubelet does not say which")
    for name in ("containerd", "dockerd"):
        if name in programs:
            return "docker" if name == "dockerd" else name
    return unavailable("absent", "no engine is seen to run")


def _cpu_manager_policy(context, arguments):
    asked = option(arguments, "--cpu-manager-policy")
    return str(asked or json.loads(context.read(CPU_MANAGER)).get("policyName") or "none")[:40]


def _passes_devices(context, plugin):
    """Whether the device plugin names device nodes, or CDI devices, to the kubelet itself."""
    if option(plugin.arguments, "--pass-device-specs") in ("true", "1"):
        return True
    if plugin.arguments[-1] == "--pass-device-specs":
        return True
    strategies = option(plugin.arguments, "--device-list-strategy") or ""
    for word in context.read("/proc/%s/environ" % plugin.number).split("\0"):
        name, _equals, value = word.partition("=")
        if name == "PASS_DEVICE_SPECS" and value.lower() in ("true", "1"):
            return True
        if name == "DEVICE_LIST_STRATEGY":
            strategies += value
        if name == "CONFIG_FILE" and value:
            return unavailable("error", "the device plugin's configuration is in its container")
    return "cdi" in strategies


def _offered(context):
    """How many devices of each of NVIDIA's resources device plugins registered."""
    if os.path.isdir(context.path(DRA)):
        return unavailable("not-supported", "NVIDIA's DRA driver hands out the GPUs")
    try:
        text = context.read(CHECKPOINT, 16 << 20)
    except FileNotFoundError:
        os.listdir(context.path(os.path.dirname(CHECKPOINT)))  # may this user look there at all?
        return []
    except OSError as error:
        return from_error(error)
    registered = (json.loads(text).get("Data") or {}).get("RegisteredDevices") or {}
    return [
        {"resource": str(name), "count": len(devices or [])}
        for name, devices in sorted(registered.items())
        if str(name).startswith("nvidia.com/")
    ]
