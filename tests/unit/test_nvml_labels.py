"""The labels of NVML's numbers, held against the constants of nvidia-ml-py."""

from __future__ import annotations

import re

import pynvml
import pytest

from envcheck.collector.nvml.labels import clock_event_reasons

REASONS = [name for name in vars(pynvml) if re.match(r"nvmlClocks\w+Reason(?!All|None)", name)]


@pytest.mark.parametrize("name", REASONS)
def test_every_clock_event_reason_of_the_binding_has_a_label(name: str) -> None:
    labels = clock_event_reasons(getattr(pynvml, name))
    assert len(labels) == 1 and not labels[0].startswith("reason_")
