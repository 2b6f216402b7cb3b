"""No regular expression takes more than linear time, whatever text it is given.

Each is given texts that are made of its own characters to keep each of its repeats busy (regex_attacks.py).
This is no benchmark: what is linear takes a millisecond of 16 KB, and may take hundreds of times as long;
what is quadratic takes seconds. Time is this process's own, so that a busy machine changes nothing.
"""

from __future__ import annotations

import pytest
from regex_attacks import Use, attacks, cpu_limit, uses, work

from envcheck.install.engines import troubles
from envcheck.tensorcores import kernel_names

# Patterns that are made when they are used: of escaped names, or of rows of tables, which are tried
# where they stand; or of short texts alone.
MADE_LATER = {
    "checks/causes.py",  # rows of IMPORT, NO_GPU, …
    "checks/kernel_load.py",  # rows
    "checks/search.py",  # an escaped word, in envcheck's own texts
    "checks/version_causes.py",  # rows
    "collector/configuration.py",  # an escaped key
    "collector/inside_troubles.py",  # rows; an escaped cookie
    "collector/probes/nvml_binding.py",  # the name of a file
    "collector/probes/pci_names.py",  # a vendor's number
    "collector/redact.py",  # escaped names
    "collector/toml.py",  # two words and a number of digits
    "data/data_centre_gpus.py",  # rows
    "install/engines/troubles.py",  # rows
    "install/transaction/held_file.py",  # an escaped name, of the names of files
    "tensorcores/kernel_names.py",  # rows
    "tensorcores/peaks.py",  # rows
}

# What looks at no more of a text than this.
LOOKED_AT = {
    "kernel_names.csv": kernel_names.LOOKED_AT,
    "envcheck.install.engines.troubles.TROUBLES": troubles.LOOKED_AT,
}


def slow(use: Use, size: int, seconds: float) -> str:
    """The first text that takes longer; "" where none does."""
    function = work(use)
    size = min(size, LOOKED_AT.get(use.where, size))
    for before, pump, after in attacks(use):
        if not pump:
            continue
        text = before + pump * (size // len(pump)) + after
        try:
            with cpu_limit(seconds):
                function(text)
        except TimeoutError:
            return f"{use.where} {use.call} {use.pattern!r}: {before!r} + {pump!r} * n + {after!r}"
    return ""


@pytest.mark.slow
def test_every_pattern_is_linear() -> None:
    found, _unknown = uses()
    assert len(found) > 300
    told = [slow(use, 16_000, 0.3) for use in dict.fromkeys(found)]
    assert not [one for one in told if one]


@pytest.mark.slow
def test_every_pattern_is_linear_in_a_megabyte() -> None:
    found, _unknown = uses()
    told = [slow(use, 1_000_000, 5.0) for use in dict.fromkeys(found)]
    assert not [one for one in told if one]


def test_no_pattern_is_made_elsewhere() -> None:
    _found, unknown = uses()
    assert unknown == MADE_LATER


@pytest.mark.parametrize(
    "pattern",
    [r"\s+$", r"a.*b", r"(\d+)\.(\d+)", r"(a|a)*b", r"x[\w.]*\.so[\w.]*:"],
)
def test_a_quadratic_pattern_is_found(pattern: str) -> None:
    assert slow(Use("here", pattern, 0, "search"), 64_000, 0.5)
