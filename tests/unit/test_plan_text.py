"""The plan as people and programs read it, and whether a lock that somebody brought is for this machine."""

from __future__ import annotations

import json

import msgspec
import pytest
from planned import MIB, NVIDIA, PUBLIC, interpreter, lock, package, planned, stack
from test_transaction import noted

from envcheck import json_text
from envcheck.exit_codes import Cannot
from envcheck.install.plan.models import WheelPlan
from envcheck.install.reports import plan_text
from envcheck.install.reports.installed import Envelope, Failure
from envcheck.install.transaction.record import Installed
from envcheck.install.wheels.given_lock import check_fits
from envcheck.install.wheels.pip_conf import public_of


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


def test_a_lock_for_another_machine() -> None:
    brought = lock(
        package("a", "1", 1), package("b", "1", 1, end="-cp38-cp38-manylinux_2_28_x86_64.whl")
    )
    here = msgspec.structs.replace(
        interpreter(), tags=["cp38-cp38-manylinux_2_17_x86_64", "py3-none-any"]
    )
    newer = msgspec.structs.replace(here, tags=["cp38-cp38-manylinux_2_28_x86_64", *here.tags])
    check_fits(brought, newer, "bundle")
    with pytest.raises(Cannot, match=r"b-1-cp38.*manylinux_2_17_x86_64\) cannot take"):
        check_fits(brought, here, "bundle")
    with pytest.raises(Cannot, match=r"is for Python 3.8, and /usr/bin/python3.8 is 3.11.7"):
        check_fits(brought, msgspec.structs.replace(here, version="3.11.7"), "bundle")
    with pytest.raises(Cannot, match="is for x86_64, and this machine's Python is aarch64"):
        check_fits(brought, msgspec.structs.replace(here, architecture="aarch64"), "bundle")


def test_the_public_index_is_what_no_other_claims() -> None:
    assert public_of(stack(), lock()) == PUBLIC
    assert public_of(stack(), lock(package("nvidia-cudnn", "1", MIB, NVIDIA))) == ""
