"""The check on what Horovod was built for."""

from __future__ import annotations

from .. import target
from ..declared import declared_causes
from ..network.horovod import BUILD_NAMES
from ..reading import FRAMEWORKS, Skip, SnapshotView, facts_of, need
from ..target import installed, named
from ..verdicts import Passed, Verdicts, check
from .common import found

CAUSE = declared_causes(__name__)

_HOLDS = "{package} holds no extension for {frameworks}: `import horovod` succeeds, and training across GPUs"
_WITH_IT, _THERE = f"{_HOLDS} with it fails.", f"{_HOLDS} fails there."


@check("PKG-011")
def horovod(view: SnapshotView) -> Verdicts:
    distributions = installed(view)
    package = distributions.get("horovod") or distributions.get("nvidia-horovod")
    if package is None:
        raise Skip("no Horovod in the target")
    packages = facts_of(view.target.packages, "the target's packages")
    extensions = need(packages.horovod_extensions, "Horovod's extensions")
    built = [one.framework for one in extensions if one.present]
    has = {"tensorflow": bool(target.tensorflows(distributions)), "torch": "torch" in distributions}
    lacking = [name for name, there in has.items() if there and name not in built]
    if built and not lacking:
        yield Passed(f"{named(package)}, built for {', '.join(built)}")
        return
    wanted = "".join(f"HOROVOD_WITH_{BUILD_NAMES[name]}=1 " for name in lacking or ["tensorflow"])
    install = target.pip_restore(view, package.name, package.version)
    options = "--no-cache-dir --no-build-isolation"
    yield found(
        view,
        CAUSE["horovod-extension-missing"] if built else CAUSE["horovod-empty"],
        package,
        evidence=[view.evidence("target.packages.horovod_extensions")],
        commands=[f"{wanted}HOROVOD_GPU_OPERATIONS=NCCL {install} {options}"],
        frameworks=" and ".join(FRAMEWORKS[name] for name in lacking) or "any framework",
    )
