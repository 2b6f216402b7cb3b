"""The check on versions of a framework that are known to be slow at something."""

from __future__ import annotations

from collections.abc import Iterator

from ...data.slow_versions import slow_versions
from ...data.versions import parse_version
from ...facts.base import known
from ...facts.evidence import Evidence
from ...facts.missing import NotKnown, Skip
from ...facts.target import FRAMEWORKS, Framework
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.subjects import about
from ..environment.common import newest_generation
from ..registry import check
from ..target import each_framework, need_gpus, pip_install, sees_gpus, variables


@check(
    "FRM-011",
    title="The framework is not known to be slow here",
    problem="this version is known to be slow in mixed precision",
    about=(
        "Some releases choose slow kernels for some layers: in TensorFlow 2.2 to 2.4, convolutions of 16-bit "
        "numbers (Conv3D, DepthwiseConv2D, some Conv2D) do not use the Tensor Cores or take a slow "
        "algorithm, so that mixed precision is slower than none. What a program asks for cannot be seen from "
        "outside: a warning where the environment asks for mixed precision, and else a detail."
    ),
    sources=("tensorflow#39985, #48127, #41715 (slow_versions.csv)",),
    follows=("PCI-001", "FRM-001", "FRM-002", "FRM-007", "GPU-020"),
)
def known_slow(view: SnapshotView) -> Iterator[Verdict]:
    need_gpus(view)
    if newest_generation(view) < 7:
        raise Skip("no visible GPU has Tensor Cores")

    def judge(facts: Framework) -> Iterator[Verdict]:
        title = FRAMEWORKS[facts.name]
        version = parse_version(known(facts.version) or "")
        if version is None:
            raise NotKnown(f"which {title} this is")
        if not sees_gpus(facts):
            raise Skip(f"{title} sees no GPU")
        rows = slow_versions(facts.name, version)
        what = "; ".join(row.what for row in rows)
        if not rows:
            yield Passed(f"{title} {version}: nothing is on record")
            return
        if not _asks_for_half(view, facts):
            yield Passed(
                f"{title} {version}, in mixed precision: {what} (not in {rows[0].without})"
            )
            return
        yield Finding(
            "warn",
            f"{title} {version} in mixed precision: {what}.",
            subjects=about("framework", title),
            evidence=[
                view.evidence(f"target.{facts.name}.version"),
                *(Evidence(f"target.{facts.name}.version", row.what, row.source) for row in rows),
            ],
            remedy=Remedy(
                f"Use {title} {rows[0].without} or later, where that was not seen any more.",
                [pip_install(view, f"{facts.name}>={rows[0].without}")],
            ),
        )

    yield from each_framework(view, judge)


def _asks_for_half(view: SnapshotView, facts: Framework) -> bool:
    asked = any(
        name.startswith("TF_ENABLE_AUTO_MIXED_PRECISION") and value.strip() not in ("", "0")
        for name, value in variables(view).items()
    )
    return asked or "16" in facts.settings.get("mixed_precision", "")
