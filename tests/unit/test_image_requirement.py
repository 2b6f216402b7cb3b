"""What an image's own configuration says that it needs, and what is refused before the fetch."""

from __future__ import annotations

import fit_machines as m
import pytest
from image_planned import image

from envcheck.exit_codes import Cannot
from envcheck.facts.snapshot import Snapshot
from envcheck.install.fit import image_driver

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
