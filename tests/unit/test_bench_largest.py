"""The largest batch: the search by itself, then on a made-up GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench_world import GPU, World, row

from envcheck.collector.bench.running.batch import MOST, BatchSearch, even


def search(
    start: int, fits: int, free: int | None, fixed: int = 1000, each: float = 50.0
) -> BatchSearch:
    """A search on a device where memory is a line, and batches up to ``fits`` fit."""
    found = BatchSearch(start, free)
    following = found.next()
    while following is not None:
        batch, predicted = following
        memory = int(fixed + each * batch) if free is not None else None
        ok = batch <= fits
        found.tried(batch, predicted, "ok" if ok else "out-of-memory", memory if ok else None)
        following = found.next()
    return found


def test_two_small_ones_predict_it() -> None:
    found = search(16, 180, free=10_000)
    assert [one["batch"] for one in found.told] == [16, 32, 168]
    assert [one["predicted"] for one in found.told] == [False, False, True]
    assert found.largest == 168 and found.by == "prediction" and not found.is_bound


def test_what_does_not_fit_is_left_by_halves_of_the_step() -> None:
    found = search(16, 120, free=10_000)
    tried = [one["batch"] for one in found.told]
    assert tried[:4] == [16, 32, 168, 96] and len(tried) <= MOST
    assert found.largest in (112, 120) and not found.is_bound


def test_without_figures_batches_are_doubled_until_the_bound() -> None:
    found = search(16, 10_000, free=None)
    assert [one["batch"] for one in found.told] == [16, 32, 64, 128, 256, 512]
    assert found.largest == 512 and found.by == "doubling" and found.is_bound


def test_doubling_ends_where_it_does_not_fit() -> None:
    found = search(16, 70, free=None)
    assert found.largest == 64 and not found.is_bound


def test_a_start_that_does_not_fit_is_halved() -> None:
    assert search(64, 20, free=10_000).largest == 16
    assert search(64, 0, free=10_000).largest == 0


@pytest.mark.parametrize("start", [1, 3, 7, 16, 100, 512])
@pytest.mark.parametrize("fits", [0, 1, 2, 5, 17, 63, 1000, 100_000])
@pytest.mark.parametrize("free", [None, 0, 500, 4000, 80_000])
def test_it_ends_and_what_it_names_has_fitted(start: int, fits: int, free: int | None) -> None:
    found = search(start, fits, free)
    assert len(found.told) <= MOST
    tried = [one["batch"] for one in found.told]
    assert len(tried) == len(set(tried)) and all(batch >= 1 for batch in tried)
    assert found.largest == max([0] + [batch for batch in tried if batch <= fits])


def test_memory_that_does_not_grow_predicts_nothing() -> None:
    assert search(16, 100_000, free=10_000, each=0.0).by == "doubling"


def test_what_is_no_matter_of_memory_ends_it() -> None:
    found = BatchSearch(16, 10_000)
    found.tried(16, False, "ok", 1800)
    found.tried(32, False, "crashed")
    assert found.next() is None and found.largest == 16


def test_batches_are_multiples_of_eight_from_sixteen_on() -> None:
    assert [even(batch) for batch in (1, 7, 16, 17, 31, 100)] == [1, 7, 16, 16, 24, 96]


def test_each_try_is_a_process_and_the_row_is_measured_at_the_largest(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    world = World(monkeypatch, tmp_path, big={"fixed": 500, "each": 40})
    small, big = world.run(
        [row("small", gpus=[GPU]), row("big", gpus=[GPU], batch=32, largest=True)]
    )
    assert [one.batch for one in big.tried] == [32, 64, big.row.batch]
    assert [one.predicted for one in big.tried] == [False, False, True]
    assert big.tried[0].memory_mib == 500 + 40 * 32 + 500
    assert 200 < big.row.batch <= 225 and big.outcome == "ok" and len(big.repetitions) == 3
    assert big.evidence["largest_by"] == "prediction" and big.evidence["largest_is_bound"] is False
    # With its memory known, it is not even tried beside the other.
    assert not big.in_turn and not small.in_turn and len(world.children) == 3 + 2
    assert [what for name, what in world.orders if name == "big"].count("build") == 3 + 1


def test_the_pool_and_a_margin_stand_in_for_the_drivers_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    world = World(monkeypatch, tmp_path, big={"fixed": 500, "each": 40})
    world.driver = False
    (big,) = world.run([row("big", gpus=[GPU], batch=32, largest=True)])
    assert big.tried[0].memory_mib == 500 + 40 * 32 + 600 and big.outcome == "ok"


def test_on_a_cpu_it_is_doubled_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    world = World(monkeypatch, tmp_path)
    (big,) = world.run([row("big", batch=4, largest=True)])
    assert big.row.batch == 128 and big.evidence["largest_by"] == "doubling"
    assert big.evidence["largest_is_bound"] is True


def test_no_batch_fits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    world = World(monkeypatch, tmp_path, big={"fixed": 50_000})
    big, other = world.run(
        [row("big", gpus=[GPU], batch=4, largest=True), row("other", gpus=[GPU])]
    )
    assert big.outcome == "out-of-memory" and "CUDA out of memory" in big.reason
    assert [one.batch for one in big.tried] == [4, 2, 1] and other.outcome == "ok"
