"""The files in Dockerfiles/ are what the template gives, and what is beside them is pinned."""

from __future__ import annotations

import re

from committed_dockerfiles import FOLDER, texts


def test_the_committed_dockerfiles_are_the_templates_and_pinned() -> None:
    for name, text in texts().items():
        assert (FOLDER / name).read_text() == text, "tests/unit/committed_dockerfiles.py writes it"
        (base,) = re.findall(r"^ARG BASE=(.+)$", text, re.MULTILINE)
        assert re.search(r"@sha256:[0-9a-f]{64}$", base)
        for line in text.replace("\\\n", "").splitlines():
            assert line.count(" pip install ") == line.count("--require-hashes")


def test_the_committed_lists_have_hashes_and_name_no_host() -> None:
    lists = sorted(FOLDER.glob("*/*.txt"))
    assert len(lists) == 4
    for path in lists:
        lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
        assert lines
        assert all(re.fullmatch(r"\S+==\S+( --hash=sha256:\w{64})+", one) for one in lines)
