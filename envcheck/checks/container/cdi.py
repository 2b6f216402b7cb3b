"""Checks on CDI specifications: do they describe this machine, and can the engine read their version."""

from __future__ import annotations

from collections.abc import Iterator

from ...data import cdi_versions
from ...facts.base import known
from ...facts.containers import CdiSpec, Engine
from ...facts.missing import CannotJudge, NotKnown, Skip
from ...facts.view import SnapshotView, need
from ...findings.model import Finding, Passed, Remedy, Unjudged, Verdict, unjudged
from ...findings.shell import word
from ...findings.subjects import about, about_file
from ..containers import (
    KIND,
    NO_DEVICE_NODES,
    PODMAN_CDI,
    at_least,
    containers_of,
    evidence,
    need_gpus,
    serving,
)
from ..registry import check
from ..system_commands import on_system

# podman reads one directory alone in between, and what containers.conf names from the first on.
PODMAN_ONE_FOLDER = (5, 5)
PODMAN_BOTH_AGAIN = (5, 6)


@check(
    "CTR-004",
    title="The CDI specifications describe this machine as it is",
    problem="a CDI specification does not fit this machine",
    about="A CDI specification lists the driver's files by their full names, with the driver's version in"
    " them. After a driver upgrade or a change of GPUs, one that was written before names files that are"
    " gone, and every container that asks for a GPU by CDI fails to start ('no such file or directory')."
    " Judged by whether each host path that it names is there.",
    sources=(
        "nvidia-container-toolkit#450",
        "CDI specification, SPEC.md",
        "webkit-container-sdk#23",
        "nvidia-container-toolkit#885",
    ),
    follows=(*NO_DEVICE_NODES, "DRV-002"),
)
def cdi_is_current(view: SnapshotView) -> Iterator[Verdict]:
    for place, spec in _specifications(view, KIND, None):
        try:
            yield _judge(view, place, spec)
        except CannotJudge as why:
            yield unjudged(why, about_file(spec.path))


def _specifications(view: SnapshotView, *kinds: str | None) -> list[tuple[int, CdiSpec]]:
    """Those of these kinds with their places in the list; None: of a kind that is not known."""
    need_gpus(view)
    specs = need(containers_of(view).cdi_specs, "CDI specifications")
    judged = [(place, spec) for place, spec in enumerate(specs) if known(spec.kind) in kinds]
    if not judged:
        raise Skip("there is no CDI specification of NVIDIA's GPUs")
    return judged


def _judge(view: SnapshotView, place: int, spec: CdiSpec) -> Verdict:
    missing = need(spec.missing_paths, f"the paths in {spec.path}")
    other = _other_driver(view, spec)
    if not missing and other:
        return _outdated(view, place, spec, other)
    if not missing:
        devices = known(spec.devices) or []
        return Passed(f"{spec.path}, {len(devices)} devices")
    nodes = all(path.startswith("/dev/nvidia") for path in missing)
    generate = f"sudo nvidia-ctk cdi generate --output={word(spec.path)}"
    return Finding(
        "warn",
        f"{spec.path} names {_first(missing)}: containers that ask for a GPU by CDI do not start.",
        subjects=about_file(spec.path),
        evidence=[
            view.evidence(
                f"machine.containers.cdi_specs[{place}].missing_paths", ", ".join(missing[:5])
            )
        ],
        remedy=Remedy(
            "Create the device nodes; where a GPU has gone for good, write the specification again."
            if nodes
            else "Write the specification again for the driver that is installed now.",
            ["sudo nvidia-modprobe -c 0 -u", generate]
            if nodes
            else [generate, "nvidia-ctk cdi list"],
        ),
    )


def _other_driver(view: SnapshotView, spec: CdiSpec) -> tuple[str, str] | None:
    """(the specification's driver, the one that runs), where those differ and the driver answers."""
    kernel, nvml = view.machine.kernel, view.machine.nvml
    module = None if kernel is None or kernel.facts is None else known(kernel.facts.driver_version)
    answers = nvml is not None and nvml.facts is not None and known(nvml.facts.init_code) == 0
    named = known(spec.driver_versions) or []
    if not module or not answers or not named or module in named:
        return None
    return named[0], module


def _outdated(view: SnapshotView, place: int, spec: CdiSpec, versions: tuple[str, str]) -> Finding:
    theirs, ours = versions
    return Finding(
        "warn",
        f"{spec.path} brings the libraries of driver {theirs} into containers, and {ours} runs: they say"
        " 'Driver/library version mismatch'.",
        subjects=about_file(spec.path),
        evidence=[
            view.evidence(f"machine.containers.cdi_specs[{place}].driver_versions", theirs),
            view.evidence("machine.kernel.driver_version"),
        ],
        remedy=Remedy(
            "Write the specification again for the driver that runs now.",
            [f"sudo nvidia-ctk cdi generate --output={word(spec.path)}", "nvidia-ctk cdi list"],
        ),
    )


def _first(missing: list[str]) -> str:
    if len(missing) == 1:
        return f"{missing[0]}, which is not there"
    return f"{missing[0]} and {len(missing) - 1} more that are not there"


@check(
    "CTR-007",
    title="The engine reads the version of the CDI specification",
    problem="podman cannot read the CDI specification",
    about="A CDI specification names the version of the CDI format that it is written in. podman passes over"
    " one that is newer than itself without a word, and then says 'unresolvable CDI devices"
    " nvidia.com/gpu=all': toolkit 1.19.1 writes 0.7.0, which the podman of Debian 12 and Ubuntu 24.04 does"
    " not read. Judged by the version in each specification and what is known of the podman that is here.",
    sources=(
        "nvidia-container-toolkit#1860",
        "nvidia-container-toolkit#1940",
        "nvidia-container-toolkit#38",
        "CDI specification, SPEC.md",
    ),
    follows=NO_DEVICE_NODES,
)
def cdi_version_is_read(view: SnapshotView) -> Iterator[Verdict]:
    judged = _specifications(view, KIND)
    engine = next((engine for engine in serving(view) if engine.name == "podman"), None)
    if engine is None:
        raise Skip("podman is not installed")
    release = need(engine.server_version, "podman's version")
    for place, spec in judged:
        version = known(spec.version)
        rejected = None if version is None else cdi_versions.rejects("podman", release, version)
        if rejected:
            yield _unread(view, engine, place, spec)
        elif rejected is None:
            why = NotKnown(f"whether podman {release} reads CDI {version or 'of this version'}")
            yield Unjudged("skipped", str(why), about_file(spec.path))
        else:
            yield Passed(f"{spec.path}: CDI {version}, which podman {release} reads")


def _unread(view: SnapshotView, engine: Engine, place: int, spec: CdiSpec) -> Finding:
    release = known(engine.server_version) or ""
    least = cdi_versions.rejected_from("podman", release)
    return Finding(
        "warn",
        f"{spec.path} is of CDI version {known(spec.version)}, and podman {release} reads none from {least}"
        " on: `podman run --device nvidia.com/gpu=all` ends with 'unresolvable CDI devices'.",
        subjects=about_file(spec.path),
        evidence=[
            view.evidence(f"machine.containers.cdi_specs[{place}].version"),
            evidence(view, engine, "server_version"),
        ],
        remedy=Remedy(
            "Upgrade podman; or write the specification with a toolkit that is older (1.18.2 writes one"
            " that podman 4.9 reads).",
            [
                *on_system(view, "podman-versions"),
                *on_system(view, "older-toolkit"),
                f"sudo nvidia-ctk cdi generate --output={word(spec.path)}",
            ],
        ),
    )


@check(
    "CTR-011",
    title="The engines read the directory that the CDI specification is in",
    problem="an engine looks elsewhere for CDI specifications",
    about="CDI specifications lie in /etc/cdi and /var/run/cdi (which is /run/cdi), and an engine reads the"
    " directories that it is configured for: podman 5.5 reads /etc/cdi alone unless containers.conf names"
    " more, while NVIDIA's toolkit from 1.18 on, and NixOS, write to /var/run/cdi. The device is then"
    " 'unresolvable', though `nvidia-ctk cdi list` shows it. Judged by what each engine says that it reads,"
    " by containers.conf, and by what is known of podman's releases.",
    sources=(
        "nixpkgs#420638, #417312; podman#26569; containers/common#2460, #2462",
        "podman#25717 (--cdi-spec-dir, cdi_spec_dirs from 5.5 on)",
        "docker documentation, dockerd: cdi-spec-dirs",
    ),
    follows=NO_DEVICE_NODES,
)
def cdi_is_where_engines_look(view: SnapshotView) -> Iterator[Verdict]:
    judged = [spec for _place, spec in _specifications(view, KIND)]
    readers = [(engine, _directories(engine)) for engine in serving(view)]
    asked = [(engine, folders) for engine, folders in readers if folders]
    if not asked:
        raise Skip("no engine here that reads CDI specifications")
    for engine, folders in asked:
        if any(_same(_folder(spec.path), folder) for spec in judged for folder in folders):
            yield Passed(f"{engine.name}: {', '.join(folders)}")
        else:
            yield _elsewhere(view, engine, folders, judged[0])


def _directories(engine: Engine) -> list[str]:
    """Where the engine looks for CDI specifications; [] where it does not, or that is not known."""
    told = known(engine.cdi_spec_dirs)
    if engine.name == "docker":
        return told or []
    if engine.name != "podman" or not at_least(known(engine.server_version), PODMAN_CDI):
        return []
    configurable = at_least(known(engine.server_version), PODMAN_ONE_FOLDER)
    if told is not None and configurable:
        return told
    both = at_least(known(engine.server_version), PODMAN_BOTH_AGAIN)
    return ["/etc/cdi"] if configurable and not both else ["/etc/cdi", "/var/run/cdi"]


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _same(first: str, second: str) -> bool:
    """/var/run is a link to /run."""
    one, other = (
        f"{path}/".replace("/var/run/", "/run/", 1).rstrip("/") for path in (first, second)
    )
    return one == other


def _elsewhere(view: SnapshotView, engine: Engine, folders: list[str], spec: CdiSpec) -> Finding:
    here = _folder(spec.path)
    if engine.name == "docker":
        text = (
            'Name the directory in /etc/docker/daemon.json ("cdi-spec-dirs"), or write the specification'
            " where docker looks."
        )
        commands = [f"sudo nvidia-ctk cdi generate --output={word(folders[0] + '/nvidia.yaml')}"]
    else:
        text = (
            f"Write the specification where podman looks, or name {here} to it: for one command with"
            " --cdi-spec-dir, for all in containers.conf ([engine], cdi_spec_dirs; on NixOS"
            " virtualisation.containers.containersConf.settings)."
        )
        commands = [
            f"podman --cdi-spec-dir={word(here)} run --rm --device nvidia.com/gpu=all ubuntu nvidia-smi -L",
            f"sudo nvidia-ctk cdi generate --output={word(folders[0] + '/nvidia.yaml')}",
        ]
    release = known(engine.server_version) or ""
    return Finding(
        "warn",
        f"{engine.name} {release} reads CDI specifications from {' and '.join(folders)}, and NVIDIA's is in"
        f" {here}: it ends with 'unresolvable CDI devices nvidia.com/gpu=all'.",
        subjects=[*about("engine", engine.name), *about_file(spec.path)],
        evidence=[
            evidence(view, engine, "server_version"),
            evidence(view, engine, "cdi_spec_dirs", ", ".join(folders)),
            view.evidence("machine.containers.cdi_specs", spec.path),
        ],
        remedy=Remedy(text, commands),
    )
