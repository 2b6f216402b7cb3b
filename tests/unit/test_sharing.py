"""What is shared among many Snapshots changes nothing: each is read and judged as it is alone."""

from __future__ import annotations

import msgspec
import pytest
from known_machines import machines, profile

from envcheck.attributes.values import attributes
from envcheck.checks.engine import diagnose
from envcheck.facts import sharing
from envcheck.facts import snapshot as snapshots
from envcheck.facts.snapshot import SnapshotError
from envcheck.facts.view import SnapshotView, view_of


def test_every_machine_is_judged_as_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """In both orders, with all results kept: most known machines differ from a healthy one in one section."""
    monkeypatch.setattr(sharing, "_MOST", 10_000)
    many = sharing.ManySnapshots()
    computed = 0
    for name, snapshot in [*machines().items(), *reversed(machines().items())]:
        alone = snapshot, diagnose(snapshot, profile=profile()), attributes(SnapshotView(snapshot))
        found = many.load(msgspec.json.encode(snapshot), profile())
        view = view_of(found)

        def counted(view: SnapshotView = view) -> object:
            nonlocal computed
            computed += 1
            return attributes(view)

        shared = found, diagnose(found, profile=profile()), view.equal(attributes, counted)
        assert msgspec.json.encode(shared) == msgspec.json.encode(alone), name
    assert computed <= len(machines())


WHOLE = msgspec.json.encode(machines()["demo healthy.json"])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        WHOLE[:-1],
        WHOLE.replace(b'"schema":1', b'"schema":9'),
        WHOLE.replace(b'"nvml":{"outcome":"ok"', b'"nvml":{"outcome":1'),
        WHOLE.replace(b'"bits":"', b'"bits":"-'),
        WHOLE.replace(b'"simulated":"', b'"simulated":1,"x":"'),
    ],
)
def test_what_is_no_snapshot_is_refused_in_the_same_words(data: bytes) -> None:
    many = sharing.ManySnapshots()
    many.load(WHOLE)
    with pytest.raises(SnapshotError) as alone:
        snapshots.load(data)
    with pytest.raises(SnapshotError) as among_many:
        many.load(data)
    assert str(alone.value) == str(among_many.value)


def test_a_crash_is_not_remembered() -> None:
    many = sharing.ManySnapshots()

    def crash() -> None:
        raise MemoryError

    for compute in (crash, crash):
        with pytest.raises(MemoryError):
            view_of(many.load(WHOLE)).equal(crash, compute)
    assert view_of(many.load(WHOLE)).equal(crash, lambda: 1) == 1
