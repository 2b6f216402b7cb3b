"""Lists of hosts: folded as Slurm and clush read them, and unfolded again."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from envcheck.findings import shell
from envcheck.fleet import hosts

QUOTED = re.compile(r"'[^']*'|\"'\"")
PLAIN = re.compile(r"[A-Za-z0-9@%+=:._/,\[\]-]*")


def unfolded(text: str) -> list[str]:
    names = []
    for part in filter(None, re.split(r",(?![^\[]*\])", text)):
        found = re.fullmatch(r"(.*)\[([0-9,-]+)\](.*)", part)
        for piece in found[2].split(",") if found else []:
            first, _, last = piece.partition("-")
            numbers = range(int(first), int(last or first) + 1)
            names += [f"{found[1]}{str(n).zfill(len(first))}{found[3]}" for n in numbers if found]
        names += [] if found else [part]
    return names


FOLDED = {
    "gpu[01-16,20]": [*(f"gpu{n:02}" for n in range(1, 17)), "gpu20"],
    "rack1-gpu[01-04].example.org": [f"rack1-gpu{n:02}.example.org" for n in range(1, 5)],
    "rack1-gpu[01-04],rack2-gpu[01-04]": [
        f"rack{r}-gpu{n:02}" for r in (1, 2) for n in range(1, 5)
    ],
    "rack1-gpu[01-02],rack2-gpu01": ["rack1-gpu01", "rack1-gpu02", "rack2-gpu01"],
    "n[8-11]": ["n8", "n9", "n10", "n11"],
    "n[08-11]": ["n08", "n09", "n10", "n11"],
    "n[98-101]": ["n98", "n99", "n100", "n101"],
    "n[1-2,01]": ["n1", "n2", "n01"],
    "10.0.0.[1-3]": ["10.0.0.1", "10.0.0.2", "10.0.0.3"],
    "login": ["login"],
    "alone7": ["alone7", "alone7"],
    "'a host','b,c',n1": ["n1", "a host", "b,c"],
    "gpu20261123000000[1-2]": [],
    "": [],
}


@pytest.mark.parametrize("text", [text for text, names in FOLDED.items() if names])
def test_names_are_folded(text: str) -> None:
    assert hosts.folded(FOLDED[text]) == text


names = st.lists(
    st.one_of(
        st.text(max_size=8),
        st.from_regex(r"[a-c]?[0-9]{1,4}(-n[0-9]{1,3})?(\.x1)?", fullmatch=True),
    ),
    max_size=30,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(names)
@example(["", "a", "[", '"', "a\\", "٣", "a٣", "²1"])
@example(["0", "00", "000", "1", "01", "9", "10", "09"])
@example(["a1b1", "a1b2", "a2b1", "a2b2", "a01b1"])
@example(["gpu01$(reboot)", "`id`", "a;b", "a'b", "~", "*", "a&", "$HOME", '"$(x)"'])
def test_a_shell_reads_the_names_and_nothing_else(listed: list[str]) -> None:
    text = hosts.folded(listed)
    bare = QUOTED.sub("", text)
    assert PLAIN.fullmatch(bare), bare
    odd = {
        name
        for name in listed
        if not PLAIN.fullmatch(name) or "," in name or "[" in name or "]" in name
    }
    assert all(shell.word(name) in text for name in odd) and "\n" not in text and "\x1b" not in text
    plain = ",".join(one for one in bare.split(",") if one)
    assert sorted(unfolded(plain)) == sorted({*listed} - odd - {""})
