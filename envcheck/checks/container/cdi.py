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
from ...findings.subjects import about_file
from ..containers import KIND, NO_DEVICE_NODES, containers_of, evidence, need_gpus, serving
from ..registry import check
from ..system_commands import on_system


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
    ),
    follows=NO_DEVICE_NODES,
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
    if not missing:
        devices = known(spec.devices) or []
        return Passed(f"{spec.path}, {len(devices)} devices")
    nodes = all(path.startswith("/dev/") for path in missing)
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
