"""What the checks on a target share: its distributions, its frameworks, and whether there are GPUs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import wraps

from packaging.version import Version

from ..data.packages import TENSORFLOWS, component
from ..data.versions import parse_version
from ..facts.base import Probe, Unavailable, known
from ..facts.missing import CannotJudge, Skip
from ..facts.target import FRAMEWORKS, Distribution, Environment, Framework, Library
from ..facts.view import SnapshotView, fact, facts_of
from ..findings.model import Verdict, unjudged
from ..findings.subjects import Subject, about
from .installing import by_uv as by_uv
from .installing import pip as pip
from .installing import pip_install as pip_install
from .installing import pip_replace as pip_replace
from .installing import pip_restore as pip_restore
from .installing import pip_uninstall as pip_uninstall
from .installing import python as python

PLACE = "target.packages.distributions"  # in the Snapshot, for evidence
_SITE = "-packages"
_PYTHONS = re.compile(r"/python(\d+\.\d+)/(?:site|dist)-packages(?:/|$)")


def installed(view: SnapshotView) -> dict[str, Distribution]:
    """The target's own distributions by normalised name: of each name the one that Python imports.

    Packages of another environment (ENV-011) are not its own, and shadow nothing here.
    """
    every = facts_of(view.target.packages, "the target's packages").distributions
    borrowed = {id(one) for one in foreign(view)}
    hidden = {one.normalized for one in every if id(one) in borrowed}
    found: dict[str, Distribution] = {}
    for one in every:
        if id(one) not in borrowed and (not one.shadowed or one.normalized in hidden):
            found.setdefault(one.normalized, one)
    return found


def installed_if_known(view: SnapshotView) -> dict[str, Distribution]:
    """As `installed`; empty where the packages are not known."""
    try:
        return installed(view)
    except CannotJudge:
        return {}


def foreign(view: SnapshotView) -> list[Distribution]:
    """Distributions in another environment's packages: another Python's, or brought there by PYTHONPATH."""
    probe = view.target.interpreter
    every = facts_of(view.target.packages, "the target's packages").distributions
    if probe is None or probe.facts is None:
        return []
    own = (probe.facts.prefix.rstrip("/") + "/", probe.facts.base_prefix.rstrip("/") + "/")
    others = [one for one in every if not one.location.startswith(own)]
    paths = python_path(view) if probe.facts.kind != "interpreter" else []
    return [
        one
        for one in others
        if of_another_python(view, one) or (is_below(one.location, paths) and _SITE in one.location)
    ]


def of_another_python(view: SnapshotView, one: Distribution) -> bool:
    """Whether it lies among another Python version's packages, whose compiled files do not load here."""
    version = python_version(view)
    path = _PYTHONS.search(one.location)
    return path is not None and version is not None and path[1] != "{}.{}".format(*version)


def python_path(view: SnapshotView) -> list[str]:
    entries = variables_if_known(view).get("PYTHONPATH", "").split(":")
    return [entry.rstrip("/") for entry in entries if entry.strip()]


def is_below(location: str, entries: list[str]) -> bool:
    return any(
        location.rstrip("/") == entry or location.startswith(entry + "/") for entry in entries
    )


def tensorflows(distributions: dict[str, Distribution]) -> list[Distribution]:
    return [one for name, one in distributions.items() if name in TENSORFLOWS]


def owner_of(distributions: dict[str, Distribution], framework_name: str) -> Distribution | None:
    names = TENSORFLOWS if framework_name == "tensorflow" else {framework_name}
    return next((one for name, one in distributions.items() if name in names), None)


def of_component(distributions: dict[str, Distribution], wanted: str) -> list[Distribution]:
    return [
        one
        for name, one in distributions.items()
        if (part := component(name)) is not None and part.name == wanted
    ]


def version_of(distribution: Distribution | None) -> Version | None:
    return None if distribution is None else parse_version(distribution.version)


def same(one: str, other: str, parts: int = 9) -> bool:
    """Versions agree as far as both are written: "12.1" and "12.1.0.26" do; "8.9" and "8.8" do not."""
    first, second = parse_version(one), parse_version(other)
    if first is None or second is None:
        return one == other
    length = min(len(first.release), len(second.release), parts)
    return first.release[:length] == second.release[:length]


def named(distribution: Distribution) -> str:
    """How a distribution is called in findings: "tensorflow 2.15.1"."""
    return f"{distribution.name} {distribution.version}"


def python_version(view: SnapshotView) -> tuple[int, int] | None:
    """The target's Python as (major, minor); None where it is not known."""
    found = re.match(r"(\d+)\.(\d+)", fact(view.target.interpreter, "version") or "")
    return (int(found[1]), int(found[2])) if found else None


FrameworkJudge = Callable[[SnapshotView, Framework], Iterable[Verdict]]


def per_framework(
    gpus: bool = True, imported: bool = True, built_with_cuda: bool = False
) -> Callable[[FrameworkJudge], Callable[[SnapshotView], Iterator[Verdict]]]:
    """Make the decorated judge of one framework the judge of each that the target holds.

    A missing fact leaves that framework unjudged, and no other.

    gpus: skip the check on a machine without GPUs. imported: leave out frameworks that do not import
    (FRM-001 reports them). built_with_cuda: leave out builds without CUDA (FRM-005 reports them).
    """

    def decorate(judge: FrameworkJudge) -> Callable[[SnapshotView], Iterator[Verdict]]:
        @wraps(judge)
        def each(view: SnapshotView) -> Iterator[Verdict]:
            if gpus:
                need_gpus(view)
            asked = [name for name in FRAMEWORKS if getattr(view.target, name) is not None]
            if not asked:
                raise Skip("no TensorFlow, PyTorch or JAX was found in the target")
            for name in asked:
                title, probe = FRAMEWORKS[name], getattr(view.target, name)
                try:
                    facts = (imported_framework if imported else facts_of)(probe, title)
                    if built_with_cuda and known(facts.cuda_build) is False:
                        raise Skip(f"{title} was built without CUDA")
                    yield from judge(view, facts)
                except CannotJudge as why:
                    yield unjudged(why, about("framework", title))

        return each

    return decorate


def imported_framework(probe: Probe[Framework] | None, title: str) -> Framework:
    """The facts of a framework that was imported; raises CannotJudge otherwise."""
    facts = facts_of(probe, title)
    if not facts.imported:
        raise Skip(f"{title} does not import")
    return facts


def title_of(facts: Framework) -> str:
    return FRAMEWORKS[facts.name]


def about_framework(facts: Framework) -> list[Subject]:
    return about("framework", title_of(facts))


def framework_version(facts: Framework) -> Version | None:
    return parse_version(known(facts.version) or "")


def framework_facts(view: SnapshotView) -> list[Framework]:
    """The frameworks that were looked at and answered, in FRAMEWORKS' order."""
    probes = (getattr(view.target, name) for name in FRAMEWORKS)
    return [probe.facts for probe in probes if probe is not None and probe.facts is not None]


def framework(view: SnapshotView, name: str) -> Framework | None:
    return next((one for one in framework_facts(view) if one.name == name), None)


def imports(view: SnapshotView, name: str) -> bool:
    """It was imported: proof that beats what versions let one expect."""
    facts = framework(view, name)
    return facts is not None and facts.imported


def sees_gpus(facts: Framework) -> bool:
    return bool(known(facts.gpus))


def gpus_present(view: SnapshotView) -> bool | None:
    """Whether the machine has an NVIDIA GPU; None where nothing in the Snapshot says so."""
    try:
        listed = bool(view.gpus)
    except CannotJudge:
        listed = False
    if listed or (fact(view.machine.cuda, "device_count") or 0) > 0:
        return True
    devices = fact(view.machine.pci, "devices")
    if devices is None or (fact(view.machine.host, "wsl") is True and not devices):
        return None
    return any(device.kind == "gpu" for device in devices)


def need_gpus(view: SnapshotView) -> None:
    """Raises Skip on a machine without an NVIDIA GPU, or one of which that is not known."""
    present = gpus_present(view)
    if present is None:
        raise Skip("whether this machine has an NVIDIA GPU is not in this snapshot")
    if not present:
        raise Skip("this machine has no NVIDIA GPU")


def loader_libraries(view: SnapshotView) -> list[Library]:
    return facts_of(view.target.loader, "the target's libraries").libraries


def mapped(facts: Framework) -> dict[str, list[Library]]:
    """The libraries that a framework's process really mapped, by name."""
    found: dict[str, list[Library]] = {}
    for library in facts.libraries:
        if known(library.path):
            found.setdefault(library.name, []).append(library)
    return found


def soname(library: Library) -> str:
    """ "libcudnn.so.8" of a Library: its SONAME, else its file's name, else its own."""
    given = known(library.soname)
    file = (known(library.path) or "").rpartition("/")[2]
    return given or (file if ".so" in file else library.name)


def loaded(library: Library) -> bool:
    return not isinstance(library.path, Unavailable)


def directory(library: Library) -> str:
    return (known(library.path) or "").rpartition("/")[0]


def variables(view: SnapshotView) -> dict[str, str]:
    """The target's environment variables that change how a GPU stack behaves; envcheck's own without one."""
    return facts_of(environment(view), "the target's environment variables").variables


def environment(view: SnapshotView) -> Probe[Environment] | None:
    """The section with the variables: the machine's where no target was looked at."""
    own = view.machine.environment if view.snapshot.target is None else None
    return own or view.target.environment


def variables_if_known(view: SnapshotView) -> dict[str, str]:
    """As `variables`; empty where they are not known."""
    return fact(environment(view), "variables") or {}
