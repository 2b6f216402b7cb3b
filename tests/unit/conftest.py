"""Fails every unit test in which a remedy of envcheck's own lost its commands (findings/commands.py)."""

from collections.abc import Generator

import pytest
import refusals


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    refusals.found.clear()
    yield
    by_chance = hasattr(getattr(item, "obj", None), "hypothesis")  # made of any text
    assert by_chance or not refusals.found, "remedies whose commands are not printed"
