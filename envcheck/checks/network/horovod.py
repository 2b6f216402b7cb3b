"""The check on what Horovod moves tensors with."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.base import known
from ...facts.missing import CannotJudge, Skip
from ...facts.target import FRAMEWORKS
from ...facts.view import SnapshotView, facts_of, need
from ...findings.causes import Cause
from ...findings.model import Passed, Verdict
from ...findings.subjects import about
from ..driver_state import NO_GPUS_THERE
from ..purpose import cpu_builds
from ..registry import check
from ..target import installed, named, pip_install
from .common import gpus

_BUILD_NAMES = {"tensorflow": "TENSORFLOW", "torch": "PYTORCH", "mxnet": "MXNET"}


def built_with(view: SnapshotView) -> set[str]:
    """ "nccl", "mpi", "gloo": what the extensions of the target's Horovod hold; none where none was found."""
    try:
        packages = facts_of(view.target.packages, "the target's packages")
    except CannotJudge:
        return set()
    extensions = known(packages.horovod_extensions) or []
    return {name for one in extensions for name in known(one.operations) or []}


WITHOUT_NCCL = Cause(
    "horovod-without-nccl",
    "warn",
    headline="Horovod was built without NCCL",
    sentence="{package}'s extension for {frameworks} was built without NCCL: every gradient goes through the"
    " host's memory{through}, and training on several GPUs is hardly faster than on one.",
    remedy="Build it again with NCCL, whose headers must be there (libnccl-dev, or HOROVOD_NCCL_HOME).",
)


@check(
    "NET-009",
    title="Horovod moves tensors between GPUs with NCCL",
    causes=[WITHOUT_NCCL],
    about="Horovod decides when it is built what it moves tensors with. Built without NCCL (it is the"
    " default: HOROVOD_GPU_OPERATIONS=NCCL was not set, or NCCL's headers were not found) every gradient goes"
    " from the GPU through the host's memory and MPI or Gloo: training on several GPUs is then no faster than"
    " on one. `horovodrun --check-build` leaves NCCL's box empty. Judged by the extension's file, without"
    " importing it: the calls that it makes, and the libraries that it is linked to.",
    sources=(
        "horovod#3103",
        "horovod#2077",
        "Horovod, docs/gpus.rst and docs/install.rst: HOROVOD_GPU_OPERATIONS",
        "Horovod 0.28.1, common/ops/nccl_operations.cc",
    ),
    follows=(*NO_GPUS_THERE, "PKG-011", "ACC-014"),
)
def horovod(view: SnapshotView) -> Iterator[Verdict]:
    distributions = installed(view)
    package = distributions.get("horovod") or distributions.get("nvidia-horovod")
    if package is None:
        raise Skip("no Horovod in the target")
    if cpu_builds(view):
        raise Skip("the target's frameworks use no GPU")
    if not gpus(view):
        raise Skip("there is no GPU")
    packages = facts_of(view.target.packages, "the target's packages")
    extensions = need(packages.horovod_extensions, "Horovod's extensions")
    present = [one for one in extensions if one.present]
    if not present:
        raise Skip("it has no extension (PKG-011)")
    lacking = [
        one
        for one in present
        if "nccl" not in need(one.operations, "what Horovod's extension was built with")
    ]
    if not lacking:
        linked = sorted({known(one.nccl) or "" for one in present} - {""})
        yield Passed(f"{named(package)} with NCCL" + (f" ({', '.join(linked)})" if linked else ""))
        return
    what = " and ".join(FRAMEWORKS.get(one.framework, one.framework) for one in lacking)
    others = sorted({name for one in lacking for name in known(one.operations) or []} - {"cuda"})
    through = " and ".join({"mpi": "MPI", "gloo": "Gloo"}.get(name, name) for name in others)
    shown = ", ".join(
        f"{one.framework}: {' '.join(known(one.operations) or [])}" for one in lacking
    )
    builds = "".join(
        f"HOROVOD_WITH_{_BUILD_NAMES.get(one.framework, one.framework.upper())}=1 "
        for one in lacking
    )
    install = pip_install(view, f"{package.name}=={package.version}")
    yield WITHOUT_NCCL.found(
        about("package", package.name),
        [view.evidence("target.packages.horovod_extensions", shown)],
        commands=[
            f"HOROVOD_GPU_OPERATIONS=NCCL {builds}{install} --no-cache-dir --no-binary=horovod"
            " --no-build-isolation --force-reinstall --no-deps",
            "horovodrun --check-build",
        ],
        package=named(package),
        frameworks=what,
        through=f" and {through}" if through else "",
    )
