"""The check on JAX's parts: jax, jaxlib and the plugins for CUDA are released together."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.utils import canonicalize_name
from packaging.version import Version

from ...facts.missing import NotKnown, Skip
from ...facts.target import Distribution
from ...facts.view import SnapshotView
from ...findings.causes import Cause
from ...findings.model import Passed, Verdict
from ..registry import check
from ..target import installed, named, pip_install, version_of
from .common import found
from .requirements import extra_requirements

_PLUGIN = re.compile(r"jax-cuda(\d{2})-(?:plugin|pjrt)\Z")
_CUDA_EXTRA = re.compile(r"cuda(?:\d{2})?(?:[-_](?:pip|local|cudnn\d+))?\Z")
_MISFIT = "{parts} not go with {jax}"
MISFIT = Cause(
    "jax-parts-differ",
    "fail",
    _MISFIT,
    f"{_MISFIT}.",
    "Install jax with its parts in one command, so that all are of one release.",
)


@check(
    "PKG-017",
    title="JAX's parts are of one release",
    causes=[MISFIT],
    about="jax, jaxlib and the CUDA plugins (jax-cuda12-plugin, jax-cuda12-pjrt) are released together. pip"
    " ties the plugins to jax by the extra jax[cuda12] alone, so that an upgrade of jax or jaxlib by itself"
    " leaves the plugin behind; JAX then ignores it, fails with a mismatched PJRT API, or crashes. Judged by"
    " what the installed jax itself requires, and by the plugin's version, which may not be above jaxlib's.",
    sources=(
        "metadata of the jax wheels (extras cuda, cuda12, cuda13)",
        "jax-ml/jax#22416 and #24901, ma-gilles/recovar#64 (what JAX says, and does, of a newer plugin)",
    ),
)
def jax_parts(view: SnapshotView) -> Iterator[Verdict]:
    distributions = installed(view)
    jax, parts = distributions.get("jax"), _parts(distributions)
    if jax is None or not parts:
        raise Skip("JAX and its parts are not both installed in the target")
    if None in map(version_of, [jax, *parts.values()]):
        raise NotKnown("which releases of JAX's parts these are")
    wrong = misfits(distributions)
    if not wrong:
        yield Passed(", ".join(map(named, [jax, *parts.values()])))
        return
    cuda = next((match[1] for name in parts if (match := _PLUGIN.match(name))), "")
    extra = f"[cuda{cuda}]" if cuda else ""
    others = [one for one in [jax, *parts.values()] if one is not wrong[0]]
    yield found(
        view,
        MISFIT,
        wrong[0],
        *others,
        commands=[pip_install(view, f"jax{extra}=={jax.version}")],
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
    wrong = []
    for name, one in _parts(distributions).items():
        has = version_of(one)
        if has is None:
            continue
        asked = [
            requirement.specifier.contains(has, prereleases=True)
            for requirement in extra_requirements(jax, _CUDA_EXTRA)
            if canonicalize_name(requirement.name) == name and requirement.specifier
        ]
        # Before its metadata named them: jax refuses a jaxlib that is newer than itself.
        fits = any(asked or [Version(has.public) <= Version(version.public)])
        if not fits or not _fits_the_others(name, has, distributions):
            wrong.append(one)
    return wrong


def _fits_the_others(name: str, has: Version, distributions: dict[str, Distribution]) -> bool:
    "No plugin is newer than jaxlib; a plugin's two halves are of one version (reported of the pjrt half)."
    lib = version_of(distributions.get("jaxlib"))
    if name == "jaxlib" or (lib is not None and has.release > lib.release):
        return name == "jaxlib"
    half = distributions.get(name.replace("-pjrt", "-plugin"))
    return half is None or version_of(half) == has
