"""Which container is taken, by what fits, by its configuration or the user's words; and its plan."""

from __future__ import annotations

import re
from typing import Any

import fit_machines as m
import pytest
from image_planned import image, planned
from planned import space

from envcheck.exit_codes import Cannot, UsageError
from envcheck.facts.snapshot import Snapshot
from envcheck.install import validate
from envcheck.install.fit import image_driver
from envcheck.install.fit.models import ImageChoice
from envcheck.install.fit.select import choose_image as choose
from envcheck.install.reports import plan_text
from envcheck.install.request import Request

H100 = m.machine(["H100"], "535.54.03")


def chosen(snapshot: Snapshot = H100, **wish: Any) -> ImageChoice:
    return choose(Request(mode="container", **wish), snapshot)


def refused(error: type[Exception], snapshot: Snapshot = H100, **wish: Any) -> Any:
    with pytest.raises(error) as caught:
        chosen(snapshot, **wish)
    return caught.value


def test_tensorflow_2_comes_first_with_its_newest_release_that_fits() -> None:
    choice = chosen()
    assert choice.candidate.release.reference == "nvcr.io/nvidia/tensorflow:23.06-tf2-py3"
    assert (choice.stack.name, choice.candidate.release.release) == ("ngc-tf2", "23.06")
    assert choice.reasons == ["23.06 is the newest release of ngc-tf2 that fits this machine"]
    assert [one.release.release for one in choice.newer_refused][:2] == ["25.02", "25.01"]
    assert all(one.refusals for one in choice.newer_refused)


def test_a_release_of_both_flavours_is_tensorflow_2() -> None:
    assert chosen(release="22.10").stack.name == "ngc-tf2"
    assert chosen(release="19.09").stack.name == "ngc-tf1", "TensorFlow 2 has none of that month"


def test_a_named_release_that_cannot_is_refused_with_what_would() -> None:
    error = refused(Cannot, m.machine(["A100"], "460.32.03"), release="22.10")
    assert str(error).startswith(
        "ngc-tf2 22.10 cannot be installed here: it needs driver 520 or newer, or on data-centre GPUs"
    )
    assert error.hint == "the newest release that fits: envcheck install ngc-tf2 --release 21.12"


@pytest.mark.parametrize(
    ("wish", "words", "hint"),
    [
        ({"release": "21.01"}, 'no container "21.01" among ngc-tf1 and ngc-tf2', "shows all"),
        (
            {"release": "23.05", "flavour": "tf1"},
            'no container "23.05" among ngc-tf1: a release is a month, 19.09 to 23.03',
            "ngc-tf2 has it",
        ),
        ({"release": "newest"}, "a release is a month, 19.09 to 25.02", "shows all"),
        ({"release": "23.13"}, "a release is a month, 19.09 to 25.02", "shows all"),
        ({"release": "²³.03"}, "a release is a month, 19.09 to 25.02", "shows all"),
        ({"image": "X/Y:1"}, "X/Y", ""),
    ],
)
def test_bad_words_are_one_sentence(wish: dict[str, str], words: str, hint: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)) as caught:
        validate.check(Request(mode="container", **wish))
    assert hint in caught.value.hint
    if "image" not in wish:  # and where that is not asked first
        assert words in str(refused(UsageError, **wish))


@pytest.mark.parametrize("digest", ["", "@sha256:" + "a" * 64])
def test_an_image_of_nvidia_s_is_the_release_that_it_is(digest: str) -> None:
    """By its tag and by its digest: what must pass and what is refused are the release's."""
    image = f"nvcr.io/nvidia/tensorflow:25.02-tf2-py3{digest}"
    choice, same = chosen(image=image), chosen(flavour="tf2", release="25.02")
    assert choice.stack == same.stack and choice.stack.must_pass
    assert choice.candidate.release.release == "25.02"
    assert choice.candidate.release.reference == image
    assert choice.candidate.notes == same.candidate.notes
    old = m.machine(["A100"], "460.32.03")
    error = refused(Cannot, old, image=f"nvcr.io/nvidia/tensorflow:22.10-tf2-py3{digest}")
    assert "it needs driver 520 or newer" in str(error)


OLD = m.machine(["A100"], "470.82.01")
NEW = m.machine(["H100"], "535.54.03")
GAMER = m.machine(["RTX 3090"], "470.82.01")
REQUIRE = "cuda>=12.1 brand=tesla,driver>=450,driver<451 brand=tesla,driver>=470,driver<471"


BLACKWELL = "cuda>=13.0 brand=unknown,driver>=535,driver<536 brand=tesla,driver>=580"
SOME = m.machine(["H100"], "570.124.06")


@pytest.mark.parametrize(
    ("snapshot", "require", "more"),
    [
        (SOME, BLACKWELL, {}),
        (SOME, "cuda>=13.0", {}),
        (GAMER, REQUIRE, {}),
        (OLD, "cuda>=13.0 brand=tesla,driver>=535,driver<536", {}),
        (SOME, "cuda>=13.0", {"NVIDIA_DISABLE_REQUIRE": "false"}),
    ],
)
def test_what_an_image_requires_of_the_driver_by_name_is_refused(
    snapshot: Snapshot, require: str, more: dict[str, str]
) -> None:
    own = image(environment={"NVIDIA_REQUIRE_CUDA": require, **more})
    with pytest.raises(Cannot, match="requires another driver") as caught:
        image_driver.check_driver(own, snapshot)
    assert "update the driver" in caught.value.hint


@pytest.mark.parametrize(
    ("snapshot", "require", "more"),
    [
        (NEW, REQUIRE, {}),
        (OLD, REQUIRE, {}),  # a data-centre GPU, on a branch that the image lists
        (SOME, "cuda>=13.0", {"NVIDIA_DISABLE_REQUIRE": "true"}),
        (GAMER, "cuda>=13.0 brand=geforce,driver>=470,driver<471", {}),  # its brand is not known
        (m.without_gpu(), "cuda>=13.0", {}),
        (SOME, "", {}),
        (SOME, "arch=arm64", {}),
        (SOME, "cuda>=" + "9" * 5000, {}),
        (SOME, "\x1b[31m,,,=", {}),
    ],
)
def test_what_is_met_or_not_known_is_not_refused(
    snapshot: Snapshot, require: str, more: dict[str, str]
) -> None:
    own = image(environment={"NVIDIA_REQUIRE_CUDA": require, **more})
    image_driver.check_driver(own, snapshot)


def sentences(plan: Any) -> dict[str, str]:
    return {step.name: step.sentence for step in plan.steps}


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        ("podman 4.3.1", {"podman's copies of layers": 4000, "podman's storage": 8800}),
        ("docker 27.0", {"docker's storage and docker's copies of layers": 12800}),
    ],
)
def test_every_engine_is_asked_for_the_room_that_it_takes(
    engine: str, expected: dict[str, int]
) -> None:
    needs = planned(engine=engine).disk_needs
    assert {" and ".join(room.what): room.needed_mib for room in needs} == expected


def test_an_image_that_the_engine_has_takes_nothing() -> None:
    plan = planned(held=True)
    assert plan.download_bytes == 0
    assert all(room.needed_mib == 0 for room in plan.disk_needs)
    assert sentences(plan)["fetch"] == "fetch nothing"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"storage": space("/var/lib/containers/storage", 2, 5000)},
            "podman's storage, 4.9 GiB free",
        ),
        ({"place": space("/data", 4, 10)}, "podman's copies of layers, 10.0 MiB free"),
    ],
)
def test_no_room_is_refused_by_name(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(Cannot) as caught:
        planned(**changes)
    assert words in str(caught.value)
    assert "podman system prune" in caught.value.hint


def test_the_steps_in_their_order() -> None:
    plan = planned()
    assert [step.name for step in plan.steps] == ["resolve", "fetch", "wire", "verify", "swap"]
    text = sentences(plan)
    assert (text["fetch"], text["wire"]) == ("fetch 3.9 GiB", "check the GPUs")


def test_what_where_and_why_and_the_question_stand_on_one_screen() -> None:
    text = plan_text.render(planned(), alone=False)
    assert len([*text.splitlines(), "", "Go on? [Y/n]"]) <= 24
