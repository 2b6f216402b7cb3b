"""What a container has to show before it counts as installed."""

from __future__ import annotations

from typing import Any

import pytest

from envcheck.install.catalogue import containers
from envcheck.install.container import carry
from envcheck.install.request import Request


@pytest.mark.parametrize("stack", [containers.own(), *containers.flavours()])
def test_a_container_that_nobody_could_look_into_is_not_verified(
    monkeypatch: pytest.MonkeyPatch, stack: containers.ImageStack
) -> None:
    class Stop(Exception):
        pass

    asked: list[str] = []

    def verifier(_look: Any, *, must_pass: list[str], **_rest: Any) -> None:
        asked.extend(must_pass)
        raise Stop

    monkeypatch.setattr(carry, "DoctorVerifier", verifier)

    class Nothing:
        choice = type("Choice", (), {"stack": stack})
        request = Request(mode="container")
        snapshot = None

    nothing: Any = Nothing()
    with pytest.raises(Stop):
        carry.carry_out(nothing, nothing, nothing, nothing)
    assert asked == ["BND-001", *stack.must_pass]
