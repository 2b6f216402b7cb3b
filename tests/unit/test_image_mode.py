"""What a container has to show before it counts as installed."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import fit_machines as m
import pytest
from image_planned import image

from envcheck.cli.terminal import Terminal
from envcheck.collection import Collected
from envcheck.install import survey
from envcheck.install.catalogue import containers
from envcheck.install.fit.select import choose_image
from envcheck.install.images import mode
from envcheck.install.request import InstallOptions, Request


@pytest.mark.parametrize("stack", [containers.own(), *containers.flavours()])
def test_a_container_that_nobody_could_look_into_is_not_verified(
    monkeypatch: pytest.MonkeyPatch, stack: containers.ImageStack
) -> None:
    class Seen:
        def result(self) -> Collected:
            return Collected(m.machine(), {})

    monkeypatch.setattr(survey, "collecting", Seen)

    class Nothing:
        choice = type("Choice", (), {"stack": stack})

    nothing: Any = Nothing()
    with ExitStack() as exits:
        made = mode.ImageMode(Request(mode="container"), InstallOptions(), Terminal(), exits)
        asked = made.verify_options(nothing).must_pass
    assert asked == ["BND-001", *stack.must_pass]


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("registry.example:5000/team-a/py:1", "image-team-a-py"),
        ("registry.example:5000/team-b/py:1", "image-team-b-py"),
        ("docker.io/library/python:3", "image-python"),
    ],
)
def test_images_of_two_teams_are_two_environments(reference: str, name: str) -> None:
    choice = choose_image(Request(mode="container", image=reference), m.machine())
    assert mode.environment_name(choice, image(reference=reference)) == name
