"""The styles, and their models' files."""

from __future__ import annotations

import pytest

from envcheck.collector.bench import styles


@pytest.mark.parametrize("name", styles.MODELS)
def test_every_style_writes_every_model(name: str) -> None:
    held = {
        "session": ("samples", "forward", "loss", "optimizer"),
        "keras": ("make", "samples", "loss", "OPTIMIZER", "SETTINGS"),
        "torch": ("make", "samples", "optimizer", "RATE"),
        "jax": ("init", "apply", "loss", "data", "OPTIMIZER", "RATE"),
    }
    assert set(held) == set(styles.NAMES)
    for style, names in held.items():
        file = styles.model(style, name)
        assert all(hasattr(file, one) for one in names), (style, name)


def test_a_style_of_another_name_is_refused() -> None:
    with pytest.raises(ValueError, match="'chainer' is no style"):
        styles.load("chainer")
