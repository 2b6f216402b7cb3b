"""What all styles write alike."""

from __future__ import annotations

from envcheck.collector.bench import architecture

ROW = {"model": "bert-large", "small": False, "train": True, "steps": 0, "image": 0}


def test_bert() -> None:
    assert architecture.bert(ROW) == (24, 1024, 16, 30522)
    assert architecture.bert({**ROW, "small": True}) == (2, 128, 2, 1000)
    assert [architecture.masked(length) for length in (1, 16, 128, 512)] == [1, 2, 19, 77]


def test_rows_that_train_drop_and_rows_that_are_compared_do_not() -> None:
    assert architecture.dropped(ROW) == 0.1
    for changed in ({"steps": 400}, {"train": False}, {"small": True}):
        assert architecture.dropped({**ROW, **changed}) == 0.0


def test_unet() -> None:
    assert architecture.unet({**ROW, "model": "unet-3d"}) == (3, 3, 32, 64)
    asked = {**ROW, "model": "unet-2d", "small": True, "image": 48}
    assert architecture.unet(asked) == (2, 4, 8, 48)
