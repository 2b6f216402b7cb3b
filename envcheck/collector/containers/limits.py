"""What an engine may do for a container: raise its limits, put an init program in front of it."""

import os

from ..facts import from_error
from ..runtime import programs
from . import containers_conf
from .processes import running

_CAP_SYS_RESOURCE = 24  # linux/capability.h
# Where docker's server and podman look for the program behind --init, in their order.
INIT = {
    "docker": (
        "/usr/local/libexec/docker/docker-init",
        "/usr/libexec/docker/docker-init",
        "/usr/local/lib/docker/docker-init",
        "/usr/lib/docker/docker-init",
    ),
    "podman": ("/usr/libexec/podman/catatonit",),
}


def put(facts, context):
    """Complete the facts of a docker or podman whose server answered."""
    name = facts.get("name")
    if facts.get("remote") is not False:
        return  # what is here says nothing of the machine where it runs
    _put_init(facts, context, name)
    if facts.get("rootless") is True:
        facts.put("raises_limits", False)  # the kernel asks for it outside of user namespaces
        return
    process = "self"
    if name == "docker":
        servers = running(context, ("dockerd",)).get("dockerd")
        if not servers:
            facts.missing("raises_limits", "absent", "no process named dockerd is seen")
            return
        process = servers[0].number
    try:
        facts.put("raises_limits", may_raise(context.read("/proc/%s/status" % process)))
    except (OSError, ValueError) as error:
        facts.put("raises_limits", from_error(error))


def _put_init(facts, context, name):
    named = containers_conf.init_path(context) if name == "podman" else facts.get("init_path")
    if named:  # by the engine's own settings, and then it is that one or none
        if os.path.exists(context.path(named)):
            facts.put("init_path", named)
        else:
            facts.missing("init_path", "absent", "the settings name " + named)
        return
    found = [path for path in INIT[name] if os.path.exists(context.path(path))]
    if not found and name == "docker":
        found = [path for path in (programs.find(context, "docker-init"),) if path]
    if found:
        facts.put("init_path", found[0])
    else:
        facts.missing("init_path", "absent", "none of " + ", ".join(INIT[name]))


def may_raise(status):
    """Whether the process of this /proc/PID/status has CAP_SYS_RESOURCE. Raises ValueError."""
    for line in status.splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> _CAP_SYS_RESOURCE & 1)
    raise ValueError("no CapEff in it")
