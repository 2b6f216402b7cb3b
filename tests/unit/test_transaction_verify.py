"""When a new version counts as verified: nothing fails in it that did not fail before."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from targets import not_imported, on_bare_machine, replace
from whole import with_target

from envcheck.collection import Collected
from envcheck.exit_codes import Cannot, CouldNotLook, EnvcheckError, PutBack, UsageError
from envcheck.facts.snapshot import Snapshot, load
from envcheck.install.transaction.interfaces import Verdict
from envcheck.install.verify import DoctorVerifier

NEW, OLD = Path("/envs/new"), Path("/envs/old")


def judged(
    new: Snapshot, old: Snapshot | Exception | None = None, **options: object
) -> tuple[Verdict, list[Path]]:
    """The verdict, and which environments were looked at for it."""
    asked: list[Path] = []

    def look(directory: Path) -> Collected:
        asked.append(directory)
        found = new if directory == NEW else old
        if isinstance(found, Exception):
            raise found
        assert found is not None
        return Collected(found, {"<home-1>": "/home/margaret"})

    verifier = DoctorVerifier(look=look, **options)  # type: ignore[arg-type]
    return verifier.verify(NEW, None if old is None else OLD), asked


def broken() -> Snapshot:
    return with_target(tensorflow=not_imported(words="ImportError: <home-1>/x.so is missing"))


def test_a_healthy_one_is_verified_and_nothing_else_is_looked_at() -> None:
    verdict, asked = judged(with_target(), with_target(), must_pass=["FRM-001"])
    assert verdict.failures == [] and verdict.health.failing == []
    assert asked == [NEW]


def test_what_fails_in_it_alone_is_a_reason_with_real_paths() -> None:
    verdict, asked = judged(broken(), with_target(), must_pass=["FRM-001"])
    assert len(verdict.failures) == 1
    assert verdict.failures[0].startswith("FRM-001: ")
    assert "<home-1>" not in verdict.failures[0]
    assert asked == [NEW, OLD]


def test_what_the_old_one_has_too_is_none() -> None:
    verdict, _ = judged(broken(), broken())
    assert verdict.failures == [] and verdict.health.failing == ["FRM-001"]


def test_but_what_must_pass_must() -> None:
    verdict, _ = judged(broken(), broken(), must_pass=["FRM-001"])
    assert [failure[:7] for failure in verdict.failures] == ["FRM-001"]


@pytest.mark.parametrize("error", [CouldNotLook, UsageError, Cannot, PutBack])
def test_an_old_one_that_cannot_be_looked_at_excuses_nothing(error: type[EnvcheckError]) -> None:
    """An environment that does not start, an engine that does not answer, an image that is gone."""
    verdict, _ = judged(broken(), error("no"))
    assert len(verdict.failures) == 1


def test_a_machine_s_own_trouble_is_no_reason() -> None:
    verdict, asked = judged(on_bare_machine(), with_target())
    assert verdict.failures == [] and verdict.health.failing == ["PCI-001"]
    assert asked == [NEW], "the machine's part of the Snapshot has it"


@pytest.mark.parametrize("allowed", [False, True])
def test_what_needs_a_gpu_is_excused_where_that_was_allowed(allowed: bool) -> None:
    verdict, _ = judged(on_bare_machine(), must_pass=["FRM-001", "FRM-002"], allow_no_gpu=allowed)
    assert [failure[:7] for failure in verdict.failures] == ([] if allowed else ["FRM-002"])
    assert verdict.health.unproven == (["FRM-002"] if allowed else [])


def test_an_import_that_was_not_looked_at_is_never_excused() -> None:
    blind = replace(on_bare_machine(), "target", tensorflow=None)
    verdict, _ = judged(blind, must_pass=["FRM-001"], allow_no_gpu=True)
    assert [failure[:7] for failure in verdict.failures] == ["FRM-001"]


def test_activation_s_variables_are_set_while_it_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TF_HAD", "before")
    monkeypatch.delenv("TF_NEW", raising=False)
    seen: list[tuple[str | None, str | None]] = []

    def look(directory: Path) -> Collected:
        seen.append((os.environ.get("TF_HAD"), os.environ.get("TF_NEW")))
        return Collected(with_target(), {})

    DoctorVerifier(look=look, environment={"TF_HAD": "1", "TF_NEW": "2"}).verify(NEW, None)
    assert seen == [("1", "2")]
    assert os.environ["TF_HAD"] == "before" and "TF_NEW" not in os.environ


def test_the_report_and_the_facts_are_kept_as_the_doctor_writes_them() -> None:
    verdict, _ = judged(with_target())
    report = json.loads(verdict.report)
    assert report["verdict"] == verdict.health.verdict and report["schema"] == 1
    assert load(verdict.snapshot) == with_target()
