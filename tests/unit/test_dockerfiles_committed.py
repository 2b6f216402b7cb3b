"""The Dockerfiles in the repository are pinned, and so is what is beside them."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "Dockerfiles"


def test_the_committed_bases_are_pinned() -> None:
    for path in FOLDER.glob("*.Dockerfile"):
        bases = re.findall(r"^(?:ARG BASE=|FROM )([^$\s]+)", path.read_text(), re.MULTILINE)
        assert bases and all(re.search(r"@sha256:[0-9a-f]{64}$", base) for base in bases), path


def test_the_committed_lists_have_hashes_and_name_no_host() -> None:
    lists = sorted(FOLDER.glob("*/*.txt"))
    assert len(lists) == 2
    for path in lists:
        lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
        assert lines
        assert all(re.fullmatch(r"\S+==\S+( --hash=sha256:\w{64})+", one) for one in lines)
