"""The check on the programs that NVIDIA's container library is told to run."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.base import known
from ...facts.missing import Skip
from ...facts.view import SnapshotView, need
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.subjects import about_file
from ..containers import NO_GPU, containers_of, need_gpus
from ..registry import check


@check(
    "CTR-013",
    title="The toolkit's ldconfig is there",
    problem="the toolkit's ldconfig is missing",
    about="NVIDIA's container library runs the host's ldconfig on a container's files, by the path in its"
    " configuration. Ubuntu calls it /sbin/ldconfig.real, Debian and others /sbin/ldconfig: a configuration"
    " of the other's ends each start with a GPU in 'ldcache error: open failed'. Engines that give GPUs by"
    " CDI do without it.",
    sources=("nvidia-docker#614", "nvidia-docker#1399"),
    follows=NO_GPU,
)
def ldconfig_is_there(view: SnapshotView) -> Iterator[Verdict]:
    need_gpus(view)
    containers = containers_of(view)
    need(containers.toolkit_config, "the toolkit's configuration")
    path = known(containers.toolkit_ldconfig)
    there = known(containers.toolkit_ldconfig_there)
    if path is None or there is None:
        yield Passed("the toolkit's configuration names no ldconfig of the host's")
        return
    if known(containers.toolkit_mode) == "cdi":
        raise Skip("the toolkit is in CDI mode, which does without ldconfig")
    if there:
        yield Passed(path)
        return
    right = "@/sbin/ldconfig" if path.endswith(".real") else "@/sbin/ldconfig.real"
    yield Finding(
        "warn",
        f"The toolkit is told to run {path[1:]}, which is not on this machine: no container with a GPU"
        " starts (ldcache error).",
        subjects=about_file(path[1:]),
        evidence=[view.evidence("machine.containers.toolkit_ldconfig")],
        remedy=Remedy(
            "Name the ldconfig that this system has.",
            [
                f"sudo nvidia-ctk config --set nvidia-container-cli.ldconfig={right} --in-place",
                "ls -l /sbin/ldconfig*",
            ],
        ),
    )
