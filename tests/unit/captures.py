"""Real nvidia-smi output of other people's machines, which lies beside the repository, not in it."""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "../shared/captures"

H200 = "nvidia-smi-sections/nvidia-h200__590.48.01.txt"
H100_MIG = "nvidia-smi-sections/nvidia-h100-mig__590.48.01.txt"
RTX_4080 = "nvidia-smi-sections/nvidia-geforce-rtx-4080-super__595.71.05.txt"


def path(name: str) -> Path:
    """A capture's path ("nvidia-smi-xml/tesla-t4.xml"); skips the test where it is not there."""
    found = FOLDER / name
    if not found.is_file():
        pytest.skip(f"no captures beside the repository: {name}")
    return found


def xml(name: str) -> str:
    return path(f"nvidia-smi-xml/{name}.xml").read_text(encoding="utf-8")
