"""The check on the versions of engines and of NVIDIA's container library."""

from __future__ import annotations

from ...facts.base import ProgramSetting
from ...facts.host import Host
from .. import containers as shared
from ..declared import declared_rows
from ..reading import NotKnown, SnapshotView, facts_or, known
from ..settings import Conditions, wrong_here
from ..verdicts import Passed, Verdicts, about, check, unjudged

_ROWS = declared_rows(__name__)


@check("CTR-006")
def versions(view: SnapshotView) -> Verdicts:
    shared.need_gpus(view)
    containers, host = shared.containers_of(view), facts_or(view.machine.host, Host)
    names, node = {one.name for one in containers.engines}, containers.kubernetes
    called = "docker" in names or bool(known(containers.oci_hooks)) or node is not None
    conditions: Conditions = {
        "no-hook": lambda: not known(containers.oci_hooks),
        "cgroup-2": lambda: known(host.cgroup_version) == 2,
        "device-rules": lambda: (
            called
            and known(containers.toolkit_mode) != "cdi"
            and known(containers.toolkit_no_cgroups) is not True
        ),
    }
    found = {
        one.name: (one.version if one.name == "podman" else one.server_version, one.path)
        for one in containers.engines
        if one.name in ("docker", "podman")
    }
    found["libnvidia-container"] = (containers.cli_version, "nvidia-container-cli")
    tools = [
        ProgramSetting(name=f"{name}.version", value=known(version) or "", source=path)
        for name, (version, path) in found.items()
    ]
    if any(one.name == "podman.version" and not one.value for one in tools):
        yield unjudged(NotKnown("podman's version"), about("engine", "podman"))
        return
    yield from wrong_here(view, _ROWS, "machine.containers.engines", tools, conditions)
    yield Passed(", ".join(f"{one.name[:-8]} {one.value}" for one in tools if one.value))
