"""The check on what Horovod moves tensors with."""

from __future__ import annotations

from ...facts.target import FRAMEWORKS
from ..declared import declared_causes
from ..purpose import cpu_builds
from ..reading import Skip, SnapshotView, fact, facts_of, known, need
from ..target import installed, named, pip_install
from ..verdicts import Passed, Verdicts, about, check
from .common import gpus

CAUSE = declared_causes(__name__)

BUILD_NAMES = {"tensorflow": "TENSORFLOW", "torch": "PYTORCH", "mxnet": "MXNET"}


def built_with(view: SnapshotView) -> set[str]:
    """ "nccl", "mpi", "gloo": what the extensions of the target's Horovod hold; none where none was found."""
    target = view.snapshot.target
    extensions = None if target is None else fact(target.packages, "horovod_extensions")
    return {name for one in extensions or [] for name in known(one.operations) or []}


@check("NET-009")
def horovod(view: SnapshotView) -> Verdicts:
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
    operations = {
        one.framework: need(one.operations, "what Horovod's extension was built with")
        for one in extensions
        if one.present
    }
    if not operations:
        raise Skip("it has no extension (PKG-011)")
    lacking = {name: has for name, has in operations.items() if "nccl" not in has}
    if not lacking:
        linked = sorted({known(one.nccl) or "" for one in extensions if one.present} - {""})
        yield Passed(f"{named(package)} with NCCL" + (f" ({', '.join(linked)})" if linked else ""))
        return
    others = sorted({name for has in lacking.values() for name in has} - {"cuda"})
    through = " and ".join({"mpi": "MPI", "gloo": "Gloo"}.get(name, name) for name in others)
    shown = ", ".join(f"{name}: {' '.join(has)}" for name, has in lacking.items())
    builds = "".join(f"HOROVOD_WITH_{BUILD_NAMES.get(name, name.upper())}=1 " for name in lacking)
    install = pip_install(view, f"{package.name}=={package.version}")
    yield CAUSE["horovod-without-nccl"].found(
        about("package", package.name),
        [view.evidence("target.packages.horovod_extensions", shown)],
        commands=[
            f"HOROVOD_GPU_OPERATIONS=NCCL {builds}{install} --no-cache-dir --no-binary=horovod"
            " --no-build-isolation --force-reinstall --no-deps",
            "horovodrun --check-build",
        ],
        package=named(package),
        frameworks=" and ".join(FRAMEWORKS.get(name, name) for name in lacking),
        through=f" and {through}" if through else "",
    )
