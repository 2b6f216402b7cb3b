"""The plan as people and programs read it."""

from __future__ import annotations

import json

import pytest
from planned import MIB, lock, package, planned
from test_transaction import noted

from envcheck import json_text
from envcheck.install.plan.models import WheelPlan
from envcheck.install.reports import plan_text
from envcheck.install.reports.installed import Envelope, Failure
from envcheck.install.transaction.record import Installed


@pytest.fixture(autouse=True)
def on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Printed commands start with "envcheck", wherever the tests run."""
    monkeypatch.setenv("ENVCHECK_COMMAND", "envcheck")


def text(plan: WheelPlan, **options: bool) -> str:
    return plan_text.render(plan, width=80, **options)


def test_what_where_and_why_and_the_question_stand_on_one_screen() -> None:
    many = [package(f"nvidia-cuda-library-{n}-cu12", "12.5.3.2", (99 - n) * MIB) for n in range(33)]
    output = text(planned(locked=lock(*many)), alone=False)
    assert len([*output.splitlines(), "", "Go on? [Y/n]"]) <= 24
    assert "nvidia-cuda-library-4-cu12 12.5.3.2 (95.0 MiB)" in output
    assert "nvidia-cuda-library-5-cu12" not in output
    assert "and 28 more, 2.2 GiB (-v lists them)" in output
    verbose = text(planned(locked=lock(*many)), verbose=True)
    assert all(one.name in verbose for one in many)


def test_every_envelope_has_the_same_keys() -> None:
    envelope_keys = ["result", "exit_code", "error", "plan", "environment"]
    failed = Envelope(
        result="failed", exit_code=5, error=Failure(sentence="it did not", hint="try again")
    )
    good = Envelope(result="installed", exit_code=0, plan=planned(), environment=environment())
    for envelope in (failed, good):
        assert list(json.loads(json_text.render(envelope))) == envelope_keys
    assert json.loads(json_text.render(failed))["error"] == {
        "sentence": "it did not",
        "hint": "try again",
    }
    keys = "mode stack release title reasons notes directory version steps rooms download_bytes"
    more = "in_store_bytes python interpreter installer packages provided sizes_unknown"
    assert list(json.loads(json_text.render(good))["plan"]) == [*keys.split(), *more.split()]


def environment() -> Installed:
    return Installed(
        directory="/data/my envs/nvidia-tf1",
        prefix="/data/my envs/nvidia-tf1/current",
        version="23.03-py3.8-0badcafe",
        already=False,
        before="22.12-py3.8-01234567",
        record=noted("23.03-py3.8-0badcafe"),
    )
