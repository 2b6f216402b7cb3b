"""What a plan reckons, and what it refuses before anything is touched."""

from __future__ import annotations

import msgspec
import pytest
from planned import MIB, cached, choice, lock, planned, space, stack

from envcheck.exit_codes import Cannot, UsageError
from envcheck.install.fit.models import Candidate, Refusal
from envcheck.install.request import Request
from envcheck.install.validate import check_path


def test_what_is_in_the_store_is_not_fetched() -> None:
    locked = lock()
    plan = planned(locked=locked, cached=cached(locked, "nvidia-cudnn-cu12"))
    assert plan.download_bytes == 421 * MIB
    assert plan.in_store_bytes == 500 * MIB
    assert [p.name for p in plan.packages if p.in_store] == ["nvidia-cudnn-cu12"]
    assert plan.steps[1].sentence == "fetch 421 MiB"


def test_one_file_system_holds_everything_once() -> None:
    """Hard links: the environment takes no second room for what uv's cache holds."""
    (only,) = planned().disk_needs
    unpacked = round(921 * 1.94)
    assert only.needed_mib == pytest.approx(unpacked + 40 + unpacked * 0.05, abs=2)
    assert only.what == ["uv's unpacked wheels", "the environment"]


def test_another_file_system_gets_copies() -> None:
    plan = planned(environment=space("/data/envs/nvidia-tf1", device=2))
    by_path = {r.path: r.needed_mib for r in plan.disk_needs}
    unpacked = round(921 * 1.94)
    assert by_path["/data/envs/nvidia-tf1"] == pytest.approx(unpacked * 1.05 + 40, abs=2)
    assert by_path["/cache/uv"] == pytest.approx(unpacked, abs=2)
    assert any("copied and not hard-linked" in note for note in plan.notes)


def test_why_newer_ones_are_passed_over() -> None:
    newer = Candidate(
        release=msgspec.structs.replace(stack().releases[0], release="24.01"),
        refusals=[Refusal(kind="driver", sentence="needs driver 535, and this machine has 470")],
    )
    plan = planned(msgspec.structs.replace(choice(), newer_refused=[newer]))
    assert plan.reasons == [
        "23.03 is the newest release of nvidia-tf1",
        "24.01 is skipped: it needs driver 535, and this machine has 470",
    ]


def test_no_disk_says_how_much_is_missing_and_where() -> None:
    with pytest.raises(Cannot) as error:
        planned(
            environment=space("/data/envs/nvidia-tf1", device=2, free_mib=1000),
            cache=space("/cache/uv", free_mib=900),
        )
    text = str(error.value)
    assert "at /cache/uv (about 1.7 GiB for uv's unpacked wheels, 900 MiB free)" in text
    assert "more needed at /cache/uv" in text
    assert "at /data/envs/nvidia-tf1 (about 1.9 GiB for the environment" in text
    assert "envcheck prune" in error.value.hint and error.value.exit_code == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"environment": {"read_only": True}},
            "/p, for the environment, is on a file system mounted",
        ),
        ({"cache": {"writable": False}}, "/p, for the cache, cannot be written to by this user"),
    ],
)
def test_places_that_cannot_be_used(change: dict[str, dict[str, bool]], words: str) -> None:
    places = {name: space("/p", **fields) for name, fields in change.items()}
    with pytest.raises(Cannot, match=words):
        planned(**places)


@pytest.mark.parametrize(
    ("directory", "words"),
    [
        ("/data/a\nb", "line end"),
        ("/data/a:b", "a colon"),
        ("/data/a\\b", "a backslash"),
        ("/data/\udce4", "cannot be printed"),
        ("/data" + "/xxxxxxxxx" * 370, "too long"),
    ],
)
def test_paths_that_tools_cannot_take(directory: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check_path(directory, "23.03-py3.8-0badcafe", Request())
