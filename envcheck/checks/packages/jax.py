"""The check on JAX's parts: jax, jaxlib and the plugins for CUDA are released together."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from ...facts.base import known
from ...facts.missing import NotKnown, Skip
from ...facts.target import Distribution
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.subjects import about
from ..registry import check
from ..target import PLACE, installed, named, pip_install, version_of
from .requirements import extra_requirements

_PLUGIN = re.compile(r"jax-cuda(\d{2})-(?:plugin|pjrt)\Z")
_CUDA_EXTRA = re.compile(r"cuda(?:\d{2})?(?:[-_](?:pip|local|cudnn\d+))?\Z")


@check(
    "PKG-017",
    title="JAX's parts are of one release",
    problem="JAX's parts are of several releases",
    about=(
        "jax, jaxlib and the CUDA plugins (jax-cuda12-plugin, jax-cuda12-pjrt) come out together. pip "
        "ties the plugins to jax by the extra jax[cuda12] alone, so that an upgrade of jax or jaxlib by "
        "itself leaves the plugin behind; JAX then leaves it out, fails with a mismatched PJRT API, or "
        "crashes. Judged by what the installed jax itself asks for, and by the plugin's version, which "
        "may not be above jaxlib's. A failure."
    ),
    sources=(
        "metadata of the jax wheels (extras cuda, cuda12, cuda13)",
        "jax-ml/jax#22416 and #24901, ma-gilles/recovar#64 (what JAX says, and does, of a newer plugin)",
    ),
)
def jax_parts(view: SnapshotView) -> Iterator[Verdict]:
    distributions = installed(view)
    jax = distributions.get("jax")
    parts = {n: one for n, one in distributions.items() if n == "jaxlib" or _PLUGIN.match(n)}
    if jax is None or not parts:
        raise Skip("JAX and its parts are not both installed in the target")
    if version_of(jax) is None or None in map(version_of, parts.values()):
        raise NotKnown("which releases of JAX's parts these are")
    wrong = misfits(distributions)
    if not wrong:
        yield Passed(", ".join(named(one) for one in [jax, *parts.values()]))
        return
    words = " and ".join(named(one) for one in wrong)
    verb = "does" if len(wrong) == 1 else "do"
    cuda = next((match[1] for name in parts if (match := _PLUGIN.match(name))), "")
    extra = f"[cuda{cuda}]" if cuda else ""
    yield Finding(
        "fail",
        f"{words} {verb} not go with {named(jax)}.",
        subjects=about("package", wrong[0].name),
        evidence=[
            view.evidence(PLACE, ", ".join(named(one) for one in [jax, *parts.values()])),
        ],
        remedy=Remedy(
            "Install jax with its parts in one go, so that all are of one release.",
            [pip_install(view, f"jax{extra}=={jax.version}")],
        ),
        headline=f"{words} {verb} not go with {named(jax)}",
    )


def misfits(distributions: dict[str, Distribution]) -> list[Distribution]:
    """The parts of JAX that the installed jax, or another part, was not made for."""
    jax = distributions.get("jax")
    version = None if jax is None else version_of(jax)
    if jax is None or version is None:
        return []
    wrong = []
    for name, one in distributions.items():
        has = version_of(one)
        if has is None or not (name == "jaxlib" or _PLUGIN.match(name)):
            continue
        asked = _asked(jax, name)
        if asked:
            fits = any(sets.contains(has, prereleases=True) for sets in asked)
        else:  # before its metadata named it: jax refuses a jaxlib that is newer than itself
            fits = Version(has.public) <= Version(version.public)
        fits = fits and _with_the_others(name, has, distributions)
        if not fits:
            wrong.append(one)
    return wrong


def _asked(jax: Distribution, name: str) -> list[SpecifierSet]:
    """What jax asks of a part: by itself, or else under each of its extras for CUDA."""
    if known(jax.requires) is None:
        return []
    found = extra_requirements(jax, _CUDA_EXTRA)
    return [
        requirement.specifier
        for requirement in found
        if canonicalize_name(requirement.name) == name and requirement.specifier
    ]


def _with_the_others(name: str, has: Version, distributions: dict[str, Distribution]) -> bool:
    """No plugin is newer than jaxlib; a plugin's two halves are of one version (told of the pjrt half)."""
    if name == "jaxlib":
        return True
    lib = distributions.get("jaxlib")
    release = None if lib is None else version_of(lib)
    if release is not None and has.release > release.release:
        return False
    half = distributions.get(name.replace("-pjrt", "-plugin"))
    return half is None or version_of(half) == has
