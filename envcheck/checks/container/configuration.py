"""The check on the files that container engines and NVIDIA's toolkit are configured by."""

from __future__ import annotations

from ...facts.base import ProgramSetting
from ...facts.containers import Containers
from ...facts.host import Host
from .. import containers as shared
from ..declared import declared_causes, declared_rows
from ..reading import SnapshotView, Unavailable, facts_or, known, need
from ..settings import Conditions, wrong_here
from ..system_commands import systemctl
from ..verdicts import Passed, Verdicts, about_file, check, word

CAUSE = declared_causes(__name__)

_THEN = {
    "docker": "docker's server does not start with it",
    "docker-rootless": "the rootless docker's server does not start with it",
    "toolkit": "NVIDIA's runtime and hook end with an error, and no container with a GPU starts",
    "containerd": "containerd does not start with it",
    "crio": "CRI-O does not start with it",
}
_UNITS = {"docker-rootless": "docker", "toolkit": "docker"}
_BUILT_IN = ("runc", "io.containerd.runc.v2")  # docker's own runtimes


@check("CTR-014")
def configured(view: SnapshotView) -> Verdicts:
    shared.need_gpus(view)
    containers = shared.containers_of(view)
    settings = need(containers.settings, "the engines' settings")
    for file in containers.broken_files:
        owner, tool = file.owner, "json.tool" if file.path.endswith(".json") else "tomllib"
        look = f"python3 -m json.tool {word(file.path)}"
        if tool == "tomllib":
            look = f"python3 -c 'import tomllib, sys; tomllib.load(sys.stdin.buffer)' <{word(file.path)}"
        verb = "--user restart" if owner == "docker-rootless" else "restart"
        edit = '"${EDITOR:-vi}"' if owner == "docker-rootless" else "sudoedit"
        restart = systemctl(verb, _UNITS.get(owner, owner))
        yield CAUSE["configuration-broken"].found(
            about_file(file.path),
            [view.evidence("machine.containers.broken_files", f"{file.path}: {file.error}")],
            commands=[look, f"{edit} {word(file.path)}", restart],
            path=file.path,
            error=file.error,
            then=_THEN.get(owner, "nothing reads it"),
        )
    by_name = {one.name: one for one in settings}
    if any(e.name == "docker" and _is_down(e.server_version) for e in containers.engines):
        yield from _twice(view, by_name)
    yield from _of_table(view, "CTR-014")
    yield Passed(f"{len(settings)} settings")


@check("CTR-015")
def toolkit_fits(view: SnapshotView) -> Verdicts:
    shared.need_gpus(view)
    yield from _of_table(view, "CTR-015")
    yield Passed("none of its settings is for another machine")


def _of_table(view: SnapshotView, code: str) -> Verdicts:
    containers = shared.containers_of(view)
    settings = need(containers.settings, "the engines' settings")
    conditions = _conditions(view, containers, {one.name: one for one in settings})
    yield from wrong_here(
        view, declared_rows(__name__, code), "machine.containers.settings", settings, conditions
    )


def _is_down(version: object) -> bool:
    return isinstance(version, Unavailable) and version.unavailable == "error"


def _twice(view: SnapshotView, by_name: dict[str, ProgramSetting]) -> Verdicts:
    for name, option in by_name.items():
        owner, _, key = name.partition(".")
        same = [one for n, one in by_name.items() if f"{n}.".startswith(f"docker.{key}.")]
        if owner == "dockerd" and same:
            path = same[0].source
            yield CAUSE["option-given-twice"].found(
                about_file(path),
                [view.evidence("machine.containers.settings", f"{key}: {option.source}, {path}")],
                commands=[
                    f"sudoedit {word(path)}",
                    f"{systemctl('edit', 'docker')}   # [Service] ExecStart= and ExecStart=/usr/bin/dockerd",
                    systemctl("restart", "docker"),
                ],
                name=key,
                unit=option.source,
                path=path,
            )


def _conditions(
    view: SnapshotView, containers: Containers, by_name: dict[str, ProgramSetting]
) -> Conditions:
    node, host = containers.kubernetes, facts_or(view.machine.host, Host)
    engine = known(node.engine) if node is not None else None
    systems = [known(host.os_id), *(known(host.os_like) or [])]
    mounts = by_name.get("toolkit.accept-nvidia-visible-devices-as-volume-mounts")

    def runtime_unknown() -> bool:
        name, options = by_name["docker.default-runtime"].value, by_name.get("dockerd.runtimes")
        defined = any(one.startswith(f"docker.runtimes.{name}.") for one in by_name)
        return not defined and name not in _BUILT_IN and options is None

    return {
        "not-by-mounts": lambda: mounts is None or mounts.value != "true",
        "not-ubuntu": lambda: "ubuntu" not in systems,  # whose ldconfig has another name
        "x86": lambda: known(host.architecture) == "x86_64",
        "containerd": lambda: engine == "containerd",
        "cri-o": lambda: engine == "cri-o",
        "runtime-unknown": runtime_unknown,
    }
