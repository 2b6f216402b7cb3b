"""The files in Dockerfiles/ are what the template gives, and what is beside them is whole."""

from __future__ import annotations

import re

import pytest
from committed_dockerfiles import FOLDER, texts

from envcheck import __version__
from envcheck.install.export import requirement_lists

WRITE = "python tests/unit/committed_dockerfiles.py writes it"


@pytest.mark.parametrize("name", ["wheel-tf1.Dockerfile", "wheel-tf2.Dockerfile", "ngc.Dockerfile"])
def test_a_committed_dockerfile_is_the_templates(name: str) -> None:
    assert (FOLDER / name).read_text() == texts()[name], WRITE


def test_everything_in_them_is_pinned() -> None:
    for text in texts().values():
        (base,) = re.findall(r"^ARG BASE=(.+)$", text, re.MULTILINE)
        assert re.search(r"@sha256:[0-9a-f]{64}$", base)
        for line in text.replace("\\\n", "").splitlines():
            if " pip install " in line:
                assert line.count(" pip install ") == line.count("--require-hashes")


def test_the_committed_lists_are_locks_and_name_no_host() -> None:
    kept = requirement_lists.read(FOLDER / "wheel-tf2")
    assert kept is not None and kept.of.stack == "tensorflow"
    assert sum(len(one.lines) for one in kept.lists) > 40 and len(kept.of.digest) == 64
    for path in sorted(FOLDER.glob("*/*.txt")):
        assert "://" not in path.read_text(), path
    for folder in ("wheel-tf2", "ngc"):
        of = requirement_lists.read_of(FOLDER / folder / requirement_lists.ENVCHECK)
        assert of is not None and (of.release, of.python) == (__version__, "3.12"), (
            f"envcheck install --dockerfile Dockerfiles/{folder} writes it anew"
        )
