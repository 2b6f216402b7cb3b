"""When a new version counts as verified: nothing fails in it that did not fail before."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from targets import not_imported, on_bare_machine, replace
from whole import with_target

from envcheck.collection import Collected
from envcheck.facts.base import Probe
from envcheck.facts.snapshot import Snapshot
from envcheck.facts.target import Framework
from envcheck.install.request import Request
from envcheck.install.survey import VerifyOptions
from envcheck.install.transaction import record
from envcheck.install.transaction.interfaces import Verification
from envcheck.install.transaction.layout import Version
from envcheck.install.transaction.record import Health, Record
from envcheck.install.verify import verify

NEW = Path("/envs/new")
ANY: dict[str, Any] = {
    **dict.fromkeys(("stack", "release", "title", "inputs", "lock", "envcheck"), ""),
    **dict.fromkeys(("schema", "bytes_total", "bytes_shared"), 1),
    "request": Request(),
    "versions": {},
    "created_at": "",
    "verified_at": "",
}


def judged(
    new: Snapshot,
    old: Path | None = None,
    *,
    must_pass: Sequence[str] = (),
    allow_no_gpu: bool = False,
) -> Verification:
    def look(directory: Path) -> Collected:
        assert directory == NEW
        return Collected(new, {"<home-1>": "/home/margaret"})

    return verify(VerifyOptions(look, list(must_pass), allow_no_gpu), NEW, old)


def verified(folder: Path, failing: list[str]) -> Path:
    """A version that is in use, and what failed when it was verified."""
    version = Version(folder / "1-py3.11-1f0c9a2b")
    version.own.mkdir(parents=True)
    health = Health(verdict="1 problem", failing=failing)
    record.write(version, Record(version=version.id, health=health, **ANY))
    return version.directory


def broken() -> Snapshot:
    return with_target(tensorflow=not_imported(words="ImportError: <home-1>/x.so is missing"))


def test_a_healthy_one_is_verified() -> None:
    verdict = judged(with_target(), must_pass=["FRM-001"])
    assert verdict.failures == [] and verdict.health.failing == []


def test_what_fails_in_it_alone_is_a_reason_with_real_paths(tmp_path: Path) -> None:
    verdict = judged(broken(), verified(tmp_path, []), must_pass=["FRM-001"])
    assert len(verdict.failures) == 1
    assert verdict.failures[0].startswith("FRM-001: ")
    assert "<home-1>" not in verdict.failures[0]


def test_but_what_must_pass_must(tmp_path: Path) -> None:
    verdict = judged(broken(), verified(tmp_path, ["FRM-001"]), must_pass=["FRM-001"])
    assert [failure[:7] for failure in verdict.failures] == ["FRM-001"]


@pytest.mark.parametrize("allowed", [False, True])
def test_what_needs_a_gpu_is_excused_where_that_was_allowed(allowed: bool) -> None:
    verdict = judged(on_bare_machine(), must_pass=["FRM-001", "FRM-002"], allow_no_gpu=allowed)
    assert [failure[:7] for failure in verdict.failures] == ([] if allowed else ["FRM-002"])
    assert verdict.health.unproven == (["FRM-002"] if allowed else [])


def test_an_import_that_was_not_looked_at_is_never_excused() -> None:
    blind = replace(on_bare_machine(), "target", tensorflow=None)
    verdict = judged(blind, must_pass=["FRM-001"], allow_no_gpu=True)
    assert [failure[:7] for failure in verdict.failures] == ["FRM-001"]


def test_a_slow_import_is_said_as_such_with_the_way_out() -> None:
    noise = "oneDNN custom operations are on\ncpu_feature_guard\nrebuild TensorFlow"
    reason = f"gave no answer within 90 s: {noise}"
    slow = Probe[Framework](outcome="timeout", seconds=90.0, reason=reason, evidence=noise)
    verdict = judged(with_target(tensorflow=slow), must_pass=["FRM-001"])
    (result,) = verdict.failures
    assert (
        result.startswith("FRM-007: Importing TensorFlow")
        and "the 90 s that it was given" in result
    )
    assert result.endswith("; install --deadline 900 gives it more time") and "oneDNN" not in result
