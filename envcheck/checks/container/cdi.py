"""The check on CDI specifications: do they still describe this machine."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.containers import CdiSpec
from ...facts.missing import CannotJudge, Skip
from ...facts.view import SnapshotView, known, need
from ...findings.model import Finding, Passed, Remedy, Verdict, unjudged
from ...findings.shell import word
from ...findings.subjects import about_file
from ..containers import KIND, NO_DEVICE_NODES, containers_of, need_gpus
from ..registry import check


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
    need_gpus(view)
    specs = need(containers_of(view).cdi_specs, "CDI specifications")
    judged = [(place, s) for place, s in enumerate(specs) if known(s.kind) in (KIND, None)]
    if not judged:
        raise Skip("there is no CDI specification of NVIDIA's GPUs")
    for place, spec in judged:
        try:
            yield _judge(view, place, spec)
        except CannotJudge as why:
            yield unjudged(why, about_file(spec.path))


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
