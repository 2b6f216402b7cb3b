"""The check on the CUDA that packages are made for, by names and versions: cupy-cuda12x, 0.16.0+cu118."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from ...data.capabilities import capability
from ...data.package_gpus import package_gpus
from ...data.versions import parse_version
from ..declared import declared_causes
from ..framework.fit import driver_cuda
from ..reading import CannotJudge, Distribution, Skip, SnapshotView, fact, known
from ..system_commands import on_system
from ..target import (
    framework,
    installed,
    named,
    need_gpus,
    pip_install,
    pip_replace,
    variables,
    version_of,
)
from ..verdicts import Finding, Passed, Remedy, Verdicts, check
from ..visible import VisibleDevice, capabilities, visible
from .common import found

CAUSE = declared_causes(__name__)

_NAMED = re.compile(r"-cu(?:da)?(1\d)(\d?)(x?)\Z")
# Whose CUDA is that of the framework which requires them.
_OF_FRAMEWORKS = re.compile(r"nvidia-|jax-|tensorrt")
_TAG = re.compile(r"cpu\Z|cu(\d{2})\d")
_FOR_EACH = re.compile(r"_cuda(\d{2})(\d)(?:_\w{1,20})?\.so\Z")
_FAMILY = re.compile(
    r"torch(?:vision|audio|text|data|-scatter|-sparse|-cluster|-spline-conv)|xformers|pyg-lib|flash-attn"
)


@check("PKG-022")
def for_cuda(view: SnapshotView) -> Verdicts:
    need_gpus(view)
    distributions = installed(view)
    by_name = [
        (one, match)
        for name, one in distributions.items()
        if (match := _NAMED.search(name)) and not _OF_FRAMEWORKS.match(name)
    ]
    tagged = [one for name, one in distributions.items() if _FAMILY.fullmatch(name) and _tag(one)]
    torch = distributions.get("torch")
    old, notes = _too_old(view, distributions)
    wrong = old + [finding for one, match in by_name for finding in _judge(view, one, match)]
    wrong += [finding for one in tagged if torch for finding in _beside(view, one, torch)]
    wrong += list(_without_own(view, distributions)) if torch else []
    yield from wrong
    if not wrong and not by_name and not (tagged and torch) and not notes:
        raise Skip("no package here says which CUDA it is made for")
    if not wrong:
        names = ", ".join(map(named, [*(one for one, _ in by_name), *tagged]))
        yield Passed("; ".join(notes) or names, note=bool(notes))


def _too_old(
    view: SnapshotView, distributions: dict[str, Distribution]
) -> tuple[list[Finding], list[str]]:
    """What packages do not compute on a GPU here: (findings, notes)."""
    gpus = {one.capability: one.name or "a GPU" for one in _visible(view) if one.capability}
    findings, notes = [], []
    for row in package_gpus():
        low = [one for one in gpus if (has := parse_version(one)) and has < row.least]
        for name, one in distributions.items() if low else ():
            version = version_of(one)
            fits = row.packages.fullmatch(name) and version is not None
            if not fits or not SpecifierSet(row.versions).contains(version or "", True):
                continue
            gpu = gpus[low[0]]
            if row.note:
                needs = f"{named(one)} needs compute capability {row.least}"
                notes.append(f"{needs} ({gpu}: {low[0]}): {row.says}")
                continue
            findings.append(
                found(
                    view,
                    CAUSE["gpu-too-old-for-package"],
                    one,
                    gpu=gpu,
                    capability=low[0],
                    least=str(row.least),
                    says=row.says,
                    commands=[pip_install(view, f"{one.name}{row.instead}")],
                )
            )
    return findings, notes


def _visible(view: SnapshotView) -> list[VisibleDevice]:
    try:
        return visible(view).chosen
    except CannotJudge:
        return []


def _judge(view: SnapshotView, one: Distribution, name: re.Match[str]) -> Iterator[Finding]:
    major, api = int(name[1]), driver_cuda(view)
    if api and int(api.partition(".")[0]) < major:
        older = pip_replace(view, _for(one, name, int(api.partition(".")[0])), one.name)
        update = [*on_system(view, "update-driver"), f"# or: {older}"]
        advice = Remedy(CAUSE["package-newer-than-driver"].remedy, update)
        yield found(
            view,
            CAUSE["package-newer-than-driver"],
            one,
            advice=advice,
            cuda=major,
            driver_cuda=api,
        )
        return
    for gpu in capabilities(view):
        row = capability(gpu)
        first, last = (Version(text) if text else None for text in _range(row))
        if (first and first.major > major) or (last and last.major < major):
            wanted = first if first and first.major > major else last
            command = pip_replace(
                view, _for(one, name, wanted.major if wanted else major), one.name
            )
            limits = f"{first} and later" if wanted is first else f"{last} and earlier"
            yield found(
                view,
                CAUSE["package-without-code"],
                one,
                commands=[command],
                cuda=major,
                capability=gpu,
                range=limits,
            )
            return


def _range(row: object) -> tuple[str, str]:
    return getattr(row, "first_cuda", ""), getattr(row, "last_cuda", "")


def _for(one: Distribution, name: re.Match[str], major: int) -> str:
    """The same package for another CUDA: "cupy-cuda12x" of cupy-cuda11x."""
    start = one.normalized[: name.start(1)]
    return f"{start}{major}{'0' if name[2] else ''}{name[3]}"


def _tag(one: Distribution) -> str:
    """ "cpu" or "12" of a version such as 0.16.0+cu121; "" where it says neither."""
    tag = _TAG.search(getattr(version_of(one), "local", None) or "")
    return "" if tag is None else tag[1] or "cpu"


def _beside(view: SnapshotView, one: Distribution, torch: Distribution) -> Iterator[Finding]:
    facts = framework(view, "torch")
    cuda = (known(facts.built_cuda) if facts else "") or ""
    own = _tag(torch) or cuda.partition(".")[0]
    if own in ("", "cpu") or _tag(one) == own:
        return
    version = version_of(one)
    digits = re.search(r"cu\d{3}", torch.version) or [f"cu{''.join(cuda.split('.')[:2])}"]
    again = pip_install(view, f"{one.name}=={getattr(version, 'public', one.version)}")
    index = f"--index-url https://download.pytorch.org/whl/{digits[0]}"
    built = "without CUDA" if _tag(one) == "cpu" else f"for CUDA {_tag(one)}"
    commands = [f"{again} --force-reinstall --no-deps {index}"]
    yield found(
        view,
        CAUSE["built-beside-another-cuda"],
        one,
        torch,
        commands=commands,
        built=built,
        cuda=own,
    )


def _without_own(view: SnapshotView, distributions: dict[str, Distribution]) -> Iterator[Finding]:
    """Packages with a library for each CUDA, of which none is PyTorch's."""
    facts, torch = framework(view, "torch"), distributions["torch"]
    cuda = ".".join(((known(facts.built_cuda) if facts else "") or "").split(".")[:2])
    there: dict[str, set[str]] = {}
    for file in (fact(view.target.loader, "linked") or []) if cuda else []:
        if own := _FOR_EACH.search(file.path):
            there.setdefault(known(file.distribution) or "", set()).add(f"{own[1]}.{own[2]}")
    for name, versions in there.items():
        one = distributions.get(canonicalize_name(name))
        if one is not None and cuda not in versions and "BNB_CUDA_VERSION" not in variables(view):
            ordered = sorted(versions, key=Version)
            yield found(
                view,
                CAUSE["no-library-for-cuda"],
                one,
                torch,
                evidence=[view.evidence("target.loader.linked", ", ".join(ordered))],
                commands=[pip_install(view, f"{one.name}>{one.version}")],
                cuda=cuda,
                there=f"{ordered[0]} to {ordered[-1]}",
            )
