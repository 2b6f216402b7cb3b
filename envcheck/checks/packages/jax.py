"""The check on JAX's parts: jax, jaxlib and the plugins for CUDA are released together."""

from __future__ import annotations

import re

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from ..declared import declared_causes
from ..reading import Distribution, NotKnown, Skip, SnapshotView
from ..target import installed, named, pip_install, version_of
from ..verdicts import Passed, Verdicts, check
from .common import found
from .requirements import extra_requirements

CAUSE = declared_causes(__name__)

_PLUGIN = re.compile(r"jax-cuda(\d{2})-(?:plugin|pjrt)\Z")
_CUDA_EXTRA = re.compile(r"cuda(?:\d{2})?(?:[-_](?:pip|local|cudnn\d+))?\Z")


@check("PKG-017")
def jax_parts(view: SnapshotView) -> Verdicts:
    distributions = installed(view)
    jax, parts = distributions.get("jax"), _parts(distributions)
    if jax is None or not parts:
        raise Skip("JAX and its parts are not both installed in the target")
    every = [jax, *parts.values()]
    if None in map(version_of, every):
        raise NotKnown("which releases of JAX's parts these are")
    wrong = misfits(distributions)
    if not wrong:
        yield Passed(", ".join(map(named, every)))
        return
    cuda = next((match[1] for name in parts if (match := _PLUGIN.match(name))), "")
    wanted = [f"jax[cuda{cuda}]=={jax.version}"] if cuda else [f"jax=={jax.version}"]
    wanted += [] if cuda else [f"jaxlib<={jax.version}"]  # jax alone asks for no newest one
    yield found(
        view,
        CAUSE["jax-parts-differ"],
        wrong[0],
        *(one for one in every if one is not wrong[0]),
        commands=[pip_install(view, *wanted)],
        parts=" and ".join(map(named, wrong)) + (" does" if len(wrong) == 1 else " do"),
        jax=named(jax),
    )


def _parts(distributions: dict[str, Distribution]) -> dict[str, Distribution]:
    return {n: one for n, one in distributions.items() if n == "jaxlib" or _PLUGIN.match(n)}


def misfits(distributions: dict[str, Distribution]) -> list[Distribution]:
    """The parts of JAX that the installed jax, or another part, was not made for."""
    jax = distributions.get("jax")
    version = version_of(jax)
    if jax is None or version is None:
        return []
    lib = version_of(distributions.get("jaxlib"))
    required = extra_requirements(jax, _CUDA_EXTRA)
    wrong = []
    for name, one in _parts(distributions).items():
        has = version_of(one)
        if has is None:
            continue
        asked = [
            _any_build(requirement.specifier).contains(has, prereleases=True)
            for requirement in required
            if canonicalize_name(requirement.name) == name and requirement.specifier
        ]
        # Before its metadata named them: jax refuses a jaxlib that is newer than itself.
        fits = any(asked or [Version(has.public) <= Version(version.public)])
        if (
            name != "jaxlib"
        ):  # no plugin is newer than jaxlib, and its two halves are of one version
            half = distributions.get(name.replace("-pjrt", "-plugin"), one)
            fits = fits and (lib is None or has.release <= lib.release) and version_of(half) == has
        if not fits:
            wrong.append(one)
    return wrong


def _any_build(wanted: SpecifierSet) -> SpecifierSet:
    """Without the CUDA in a version ("==0.3.25+cuda11.cudnn82"): whether that is missing, FRM-005 says."""
    return SpecifierSet(re.sub(r"\+[\w.]+", "", str(wanted)))
