"""What a container's plan reckons, tells and refuses before anything is touched."""

from __future__ import annotations

from typing import Any

import pytest
from image_planned import planned
from planned import space

from envcheck.exit_codes import Cannot
from envcheck.install.reports import plan_text


def needed(plan: Any) -> dict[str, int]:
    """{what: MiB}, whichever file systems share it."""
    return {" and ".join(room.what): room.needed_mib for room in plan.disk_needs}


def sentences(plan: Any) -> dict[str, str]:
    return {step.name: step.sentence for step in plan.steps}


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        ("podman 4.3.1", {"podman's copies of layers": 4000, "podman's storage": 8800}),
        ("docker 27.0", {"docker's storage and docker's copies of layers": 12800}),
    ],
)
def test_every_engine_is_asked_for_the_room_that_it_takes(
    engine: str, expected: dict[str, int]
) -> None:
    assert needed(planned(engine=engine)) == expected


def test_an_image_that_the_engine_has_takes_nothing() -> None:
    plan = planned(held=True)
    assert plan.download_bytes == 0
    assert all(room.needed_mib == 0 for room in plan.disk_needs)
    assert sentences(plan)["fetch"] == "fetch nothing"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"storage": space("/var/lib/containers/storage", 2, 5000)},
            "podman's storage, 4.9 GiB free",
        ),
        ({"place": space("/data", 4, 10)}, "podman's copies of layers, 10.0 MiB free"),
    ],
)
def test_no_room_is_refused_by_name(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(Cannot) as caught:
        planned(**changes)
    assert words in str(caught.value)
    assert "podman system prune" in caught.value.hint


def test_the_steps_in_their_order() -> None:
    plan = planned()
    assert [step.name for step in plan.steps] == ["resolve", "fetch", "wire", "verify", "swap"]
    text = sentences(plan)
    assert (text["fetch"], text["wire"]) == ("fetch 3.9 GiB", "check the GPUs")


def test_what_where_and_why_and_the_question_stand_on_one_screen() -> None:
    text = plan_text.render(planned(), alone=False)
    assert len([*text.splitlines(), "", "Go on? [Y/n]"]) <= 24
