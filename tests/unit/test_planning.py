"""What a plan reckons, and what it refuses before anything is touched."""

from __future__ import annotations

import msgspec
import pytest
from planned import (
    MIB,
    cached,
    choice,
    lock,
    package,
    planned,
    space,
    stack,
)

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
    assert "fetch 3 files" in plan.steps[1].sentence


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


def test_what_uv_has_unpacked_takes_no_more_room() -> None:
    locked = lock()
    (only,) = planned(locked=locked, cached=cached(locked)).disk_needs
    assert only.what == ["the environment"]
    assert only.needed_mib < 200


def test_the_measured_size_wins_over_the_estimate() -> None:
    release = msgspec.structs.replace(stack().releases[0], installed_mib=5000)
    plan = planned(choice(stack(releases=[release])))
    assert plan.disk_needs[0].needed_mib == 5000 + 40 + 250
    assert not plan.disk_needs[0].estimated


def test_unknown_sizes_are_filled_from_the_catalogue() -> None:
    release = msgspec.structs.replace(stack().releases[0], download_mib=700)
    locked = lock(package("a", "1", None), package("b", "1", 5 * MIB))
    plan = planned(choice(stack(releases=[release])), locked)
    assert (plan.sizes_unknown, plan.download_bytes) == (1, 700 * MIB)


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


def test_releases_passed_over_for_the_same_reasons_are_told_together() -> None:
    driver = Refusal(kind="driver", sentence="needs driver 535")
    libc = Refusal(kind="libc", sentence="needs glibc 2.31")
    newer = [
        Candidate(release=msgspec.structs.replace(stack().releases[0], release=name), refusals=told)
        for name, told in [
            *((f"25.{month:02}", [driver]) for month in range(6, 0, -1)),
            ("24.02", [driver, libc]),
        ]
    ]
    plan = planned(msgspec.structs.replace(choice(), newer_refused=newer))
    assert plan.reasons[1:] == [
        "25.06, 25.05, 25.04 and 3 more are skipped: each needs driver 535",
        "24.02 is skipped: it needs driver 535; it needs glibc 2.31",
    ]


def test_no_disk_says_how_much_is_missing_and_where() -> None:
    with pytest.raises(Cannot) as error:
        planned(
            environment=space("/data/envs/nvidia-tf1", device=2, free_mib=1000),
            cache=space("/cache/uv", free_mib=900),
        )
    told = str(error.value)
    assert "at /cache/uv (about 1.7 GiB for uv's unpacked wheels, 900 MiB free)" in told
    assert "more needed at /cache/uv" in told
    assert "at /data/envs/nvidia-tf1 (about 1.9 GiB for the environment" in told
    assert "envcheck prune" in error.value.hint and error.value.exit_code == 3


def test_room_that_nobody_knows_is_no_refusal() -> None:
    places = {name: space(f"/{name}", free_mib=None) for name in ("environment", "cache")}
    (only,) = planned(**places).disk_needs
    assert only.free_mib is None and only.missing_mib == 0


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
        ('/data/a"b', "a quotation mark"),
        ("/data/$HOME", "a dollar sign"),
        ("/data/a\\b", "a backslash"),
        ("/data/\udce4", "cannot be printed"),
        ("/data/" + "x" * 256, "too long"),
        ("/data" + "/xxxxxxxxx" * 370, "too long"),
    ],
)
def test_paths_that_tools_cannot_take(directory: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check_path(directory, "23.03-py3.8-0badcafe", Request())


def test_a_container_s_path_is_free_of_what_shells_cannot_carry() -> None:
    container = Request(mode="container")
    check_path("/data:1", "", container)
    check_path("/data" + "/xxxxxxxxx" * 370, "", container)
    for directory, words in (("/data/a\nb", "cannot be printed"), ("/" + "x" * 300, "too long")):
        with pytest.raises(UsageError, match=words):
            check_path(directory, "", container)
