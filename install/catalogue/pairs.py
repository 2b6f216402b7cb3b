"""Two frameworks in one environment (`--with`): two stacks as one, "tensorflow-with-torch"."""

from __future__ import annotations

from packaging.utils import canonicalize_name
from packaging.version import Version

from ...checks.fitness import code_for, tensorflow_list
from ...data.packages import TENSORFLOWS
from ...exit_codes import Cannot
from .model import Release, Stack

WITH = "-with-"


def pair(first: Stack, second: Stack) -> Stack:
    """The releases of the first, each with the newest of the second that goes with it.

    Which packages suit each other is the resolver's to say. Raises Cannot where no two releases go together.
    """
    names = [canonicalize_name(one.distribution) for one in (first, second)]
    if names[0] == names[1] or TENSORFLOWS.issuperset(names):
        raise Cannot(
            f"{first.name} and {second.name} are the same framework: one would overwrite the other"
        )
    found = []
    for one in first.releases:
        fitting = (other for other in second.releases if not _against(first, one, second, other))
        if other := next(fitting, None):
            found.append(_release(one, second, other))
    if not found:
        usual = [one for one in first.releases if not one.prerelease] or first.releases
        why = _against(first, usual[0], second, second.releases[0])
        raise Cannot(
            f"{first.name} and {second.name} cannot be in one environment: {why}",
            f"perhaps --with {', --with '.join(second.otherwise)}" if second.otherwise else "",
        )
    return Stack(
        name=f"{first.name}{WITH}{second.name}",
        title=f"{first.title}; with {second.title}",
        distribution=first.distribution,
        requirement=first.requirement,
        gpu=first.gpu or second.gpu,
        architectures=[one for one in first.architectures if one in second.architectures],
        source=f"{first.source}; {second.source}",
        cpu_flags=_both(first.cpu_flags, second.cpu_flags),
        indexes=list({one.name: one for one in [*second.indexes, *first.indexes]}.values()),
        sdists=list({one.sha256: one for one in [*first.sdists, *second.sdists]}.values()),
        constraints=_both(first.constraints, second.constraints),
        must_pass=_both(first.must_pass, second.must_pass),
        environment={**second.environment, **first.environment},
        provides={**second.provides, **first.provides},
        otherwise=[first.name],
        releases=found,
    )


def older(stack: Stack, release: str) -> str:
    """What to try where the resolver finds that two releases do not go together; "" of a single stack."""
    names = [one.release for one in stack.releases]
    left = names[names.index(release) + 1 :] if WITH in stack.name else []
    return f"older releases may go together: --release {left[0]}" if left else ""


def _against(first: Stack, one: Release, second: Stack, other: Release) -> str:
    """Why two releases cannot be in one environment, whatever the resolver says; "" where they can."""
    if not {*one.python} & {*other.python}:
        return (
            f"{first.name} {one.release} is for Python {', '.join(one.python)},"
            f" and {second.name} {other.release} for {', '.join(other.python)}"
        )
    if other.broken or other.prerelease:
        return f"{second.name} {other.release} is no release to choose"
    majors = [release.cuda.partition(".")[0] for release in (one, other)]
    if first.gpu and second.gpu and (majors[0] != majors[1] or not all(majors)):
        return (
            f"{first.name} {one.release} brings libraries of CUDA {one.cuda or 'that is not known'}, and"
            f" {second.name} {other.release} those of CUDA {other.cuda or 'that is not known'}; the cuDNN and"
            " NCCL of both are the same files, so one would overwrite the other"
        )
    return ""


def _release(one: Release, second: Stack, other: Release) -> Release:
    wanted = second.requirement.format(version=other.version)
    return Release(
        release=f"{one.release}+{canonicalize_name(second.distribution)}{other.release}",
        version=one.version,
        python=[minor for minor in one.python if minor in other.python],
        source=f"{one.source}; {other.source}",
        glibc=max(one.glibc, other.glibc, key=_number),
        cuda=max(one.cuda, other.cuda, key=_number),
        cudnn=one.cudnn or other.cudnn,
        tensorrt=one.tensorrt,
        compute_capabilities=_common(one.compute_capabilities, other.compute_capabilities),
        constraints=_both(one.constraints, other.constraints),
        extra_requirements=[*one.extra_requirements, wanted, *other.extra_requirements],
        broken=one.broken,
        prerelease=one.prerelease,
        released=one.released,
        download_mib=max(one.download_mib, other.download_mib),  # the CUDA libraries are in both
    )


def _common(first: list[str], second: list[str]) -> list[str]:
    """The machine code that GPUs need which both builds run on; none where one build's list is not known."""
    if not first or not second:
        return first or second
    entries = [one for one in _both(first, second) if one.startswith("sm_")]
    return [
        one
        for one in entries
        if all(_runs(one, tensorflow_list(built)) for built in (first, second))
    ]


def _runs(entry: str, built: list[str]) -> bool:
    digits = entry.removeprefix("sm_").rstrip("af")
    return code_for(f"{digits[:-1]}.{digits[-1]}", built).kind != "none"


def _both(first: list[str], second: list[str]) -> list[str]:
    return list(dict.fromkeys([*first, *second]))


def _number(version: str) -> Version:
    return Version(version or "0")
