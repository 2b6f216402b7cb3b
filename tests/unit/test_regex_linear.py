"""No regular expression takes more than linear time, whatever text it is given.

Each is given texts that are made of its own characters to keep each of its repeats busy (regex_attacks.py).
What takes a moment on a short text is measured on two lengths, side by side and by this process's own time:
what counts is how the time grows, so that a busy or slow machine changes nothing.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from regex_attacks import Use, attacks, cpu_limit, uses, work

from envcheck.install.engines import client
from envcheck.tensorcores import kernel_names

# Patterns that are made when they are used: of escaped names, or of rows of tables, which are tried
# where they stand; or of short texts alone.
MADE_LATER = {
    "checks/framework/causes.py",  # rows
    "findings/commands.py",  # rows, tried in test_remedy_commands.py
    "checks/config_lines.py",  # rows
    "checks/declared.py",  # rows
    "checks/kernel/events.py",  # rows
    "checks/settings.py",  # rows
    "checks/search.py",  # an escaped word, in envcheck's own texts
    "checks/framework/version_causes.py",  # rows
    "collector/inside_troubles.py",  # rows; an escaped cookie
    "collector/linux/pci_names.py",  # a vendor's number
    "collector/redact.py",  # escaped names
    "data/__init__.py",  # rows
    "data/build_errors.py",  # rows
    "data/known_bad.py",  # rows
    "data/products.py",  # rows
    "install/transaction/engine_images.py",  # an escaped name, of the names of files
    "tensorcores/kernel_names.py",  # rows
    "tensorcores/peaks.py",  # rows
}

# What looks at no more of a text than this.
LOOKED_AT = {
    "kernel_names.csv": kernel_names.LOOKED_AT,
    "engine_troubles.csv": client._READ,
}


# Characters; and the seconds from which on an attack is tried with eight times as many.
SIZES = ((2_000, 0.001), (16_000, 0.01), (128_000, 0.1))
# Eight times the characters take 64 times as long where a pattern is quadratic, 8 times where it is linear.
QUADRATIC = 24.0
MEASURABLE = 0.1  # seconds: below, the steps of a process's clock are too coarse
LIMIT = 1.0  # seconds after which an attack is cut off


@cache
def patterns() -> list[Use]:
    """Each pattern once for each of the ways in which it is used."""
    found, _unknown = uses()
    return list({(use.pattern, use.flags, use.call): use for use in found}.values())


def seconds(
    use: Use,
    attack: tuple[Any, Any, Any],
    size: int,
    clock: Callable[[], float] = time.process_time,
) -> float:
    """What an attack of ``size`` characters takes, by that clock."""
    before, pump, after = attack
    function = work(use)
    text = before + pump * (min(size, LOOKED_AT.get(use.where, size)) // len(pump)) + after
    began = clock()
    with contextlib.suppress(TimeoutError), cpu_limit(LIMIT):
        function(text)  # may overrun: the search for where a match begins is not interrupted
    return clock() - began


def superlinear(use: Use) -> str:
    """The first attack whose time grows faster than its length; "" where none does."""
    return next((described(use, attack) for attack in attacks(use) if grows(use, attack)), "")


def grows(use: Use, attack: tuple[Any, Any, Any]) -> bool:
    """Whether eight times the text takes out of all proportion longer."""
    before = 0.001  # of 250 characters, which linear patterns take in microseconds
    for size, enough in SIZES:
        # Some kernels count a process's time in steps of milliseconds: the first look goes by the wall's.
        if seconds(use, attack, size, clock=time.perf_counter) < enough:
            return False
        took = seconds(use, attack, size)
        if took >= LIMIT:
            return True
        if took >= MEASURABLE:
            took = min(took, seconds(use, attack, size))
            return took >= QUADRATIC * before
        before = max(took, 0.001)
    return False


def described(use: Use, attack: tuple[Any, Any, Any]) -> str:
    before, pump, after = attack
    return f"{use.where} {use.call} {use.pattern!r}: {before!r} + {pump!r} * n + {after!r}"


def test_every_pattern_is_linear() -> None:
    assert len(patterns()) > 300
    found = [superlinear(use) for use in patterns()]
    assert not [one for one in found if one]


def test_no_pattern_is_made_elsewhere() -> None:
    _found, unknown = uses()
    assert unknown == MADE_LATER


@pytest.mark.parametrize(
    "pattern", [r"\s+$", r"a.*b", r"(\d+)\.(\d+)", r"(a|a)*b", r"x[\w.]*\.so[\w.]*:"]
)
def test_a_quadratic_pattern_is_found(pattern: str) -> None:
    assert superlinear(Use("here", pattern, 0, "search"))
