"""The waves of a roll-out, as Ansible's `serial` means them. Pure."""

from __future__ import annotations

import re

from ...exit_codes import UsageError

DEFAULT = "1,10%,100%"

_AMOUNT = re.compile(r"(\d{1,6})(%?)", re.ASCII)


def parse(text: str) -> list[str]:
    """ "1,10%,100%" as a list. Raises UsageError."""
    waves = [one.strip() for one in text.split(",")]
    for one in waves:
        if not _is_amount(one) or not int(one.removesuffix("%")):
            raise UsageError(
                f"--waves {text}: {one!r} is neither a number of machines nor a percentage",
                hint=f"--waves {DEFAULT} is one machine, then a tenth of all, then the rest",
            )
    return waves


def sizes(waves: list[str], count: int) -> list[int]:
    """How many machines each wave has: the last one is repeated until all have had their turn."""
    found: list[int] = []
    remaining = count
    while remaining > 0:
        wave = waves[min(len(found), len(waves) - 1)]
        share = int(wave.removesuffix("%"))
        size = max(count * share // 100, 1) if wave.endswith("%") else share
        found.append(min(size, remaining))
        remaining -= found[-1]
    return found


def max_fail(text: str) -> str:
    """A number of machines or a share of them. Raises UsageError."""
    if not _is_amount(text.strip()):
        words = "neither a number of machines nor a percentage"
        raise UsageError(f"--max-fail {text}: {words}", hint="--max-fail 2, or --max-fail 5%")
    return text.strip()


def _is_amount(text: str) -> bool:
    found = _AMOUNT.fullmatch(text)
    return found is not None and not (found[2] and int(found[1]) > 100)
