"""A container installation as a transaction: its image is held by the engine, or the engine is as it was."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from image_transaction_parts import (
    SIZE,
    FakeEngine,
    ImageBuilder,
    ImageJudge,
    fake_engine,
    holds_exactly,
    image_in_use,
    install_image,
    nothing_is_held_that_nobody_tells_of,
    reference,
)
from transaction_parts import in_child, is_tidy

from envcheck.exit_codes import CouldNotLook, NotPutBack, PutBack
from envcheck.install.prune import prune
from envcheck.install.transaction import engine_images, roots
from envcheck.install.transaction.layout import Root
from envcheck.install.transaction.uninstall import uninstall

EVERY_STEP = ["hold", "was held", "layer", "pulled", "configure", "verify"]


pytestmark = pytest.mark.usefixtures("scratch_home")
engine = pytest.fixture(fake_engine)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "a root with spaces"


def failing(
    engine: FakeEngine, at: str, error: Callable[[], BaseException]
) -> dict[str, ImageBuilder | ImageJudge]:
    def fail(step: str) -> None:
        if step == at:
            raise error()

    return {"builder": ImageBuilder("2", engine, fail), "verify": ImageJudge(at=fail)}


@pytest.mark.parametrize("step", EVERY_STEP)
@pytest.mark.parametrize("error", [lambda: CouldNotLook("away"), KeyboardInterrupt, ValueError])
def test_an_error_in_a_step_leaves_the_engine_as_it_was_but_for_a_whole_image(
    root: Path, engine: FakeEngine, step: str, error: Callable[[], BaseException]
) -> None:
    install_image(root, "1", engine)
    with pytest.raises((PutBack, KeyboardInterrupt)):
        install_image(root, "2", engine, **failing(engine, step, error))
    is_tidy(root, versions=1)
    assert set(engine.images()) == {"1"}
    nothing_is_held_that_nobody_tells_of(root, engine)
    assert image_in_use(root, engine) == "1"
    assert not install_image(root, "2", engine).already
    holds_exactly(root, engine, {"1", "2"})


def test_an_image_that_was_there_before_stays(root: Path, engine: FakeEngine) -> None:
    engine.add("2", "mine:1")
    with pytest.raises(PutBack):
        install_image(root, "2", engine, **failing(engine, "verify", ValueError))
    assert engine.images() == {"2": {"mine:1"}}
    install_image(root, "2", engine)
    done = uninstall(Root(root))
    assert engine.images() == {"2": {"mine:1"}} and not root.exists()
    assert done.images == []


def test_an_engine_that_does_not_answer_is_named_with_what_removes_the_image(
    root: Path, engine: FakeEngine
) -> None:
    def hang() -> BaseException:
        engine.answers = False
        return CouldNotLook("podman hangs")

    install_image(root, "1", engine)
    with pytest.raises(NotPutBack) as left:
        install_image(root, "2", engine, **failing(engine, "pulled", hang))
    tag = "localhost/envcheck/tiny:2-tf1-00000000"
    assert f"the image {tag} in podman: podman does not answer" in str(left.value)
    assert f"/usr/bin/podman rmi {tag}" in left.value.hint
    assert "held.json" in left.value.hint and "what is in use has not changed" in left.value.hint
    with pytest.raises(NotPutBack, match="an interrupted installation cannot be removed"):
        install_image(root, "2", engine)
    engine.answers = True
    assert image_in_use(root, engine) == "1"
    install_image(root, "3", engine)
    holds_exactly(root, engine, {"1", "3"})


def test_the_same_image_of_two_versions_goes_with_the_last(root: Path, engine: FakeEngine) -> None:
    first = install_image(root, "1", engine).version
    Root(root).version(first).start.unlink()  # damaged: it is made anew, with the same image
    second = install_image(root, "1", engine).version
    assert (first, second) == ("1-tf1-00000000", "1-tf1-00000000-2")
    held = engine_images.of(Root(root).version(second))
    assert held is not None and not held.before, "envcheck itself has brought it"
    assert uninstall(Root(root), first).images == []
    holds_exactly(root, engine, {"1"})
    done = uninstall(Root(root))
    assert done.freed < SIZE and done.images == [f"{reference('1')} in podman"]
    assert engine.images() == {}


def test_prune_has_the_engine_let_go(root: Path, engine: FakeEngine) -> None:
    for release in ("1", "2", "3"):
        install_image(root, release, engine)
    would = prune(dry_run=True)
    assert [one.version for one in would.removed] == ["1-tf1-00000000"]
    assert would.images == [f"{reference('1')} in podman"] and would.freed < SIZE
    assert set(engine.images()) == {"1", "2", "3"}
    done = prune()
    assert done.images == would.images and done.freed < SIZE
    holds_exactly(root, engine, {"2", "3"})


def test_a_first_installation_that_was_killed_leaves_nothing_to_the_engine(
    root: Path, engine: FakeEngine
) -> None:
    def die(step: str) -> None:
        if step == "pulled":
            os.kill(os.getpid(), 9)

    builder = ImageBuilder("1", engine, die)
    assert in_child(lambda: install_image(root, "1", engine, builder=builder)) == -9
    assert set(engine.images()) == {"1"}
    found = [known for known in roots.known() if known.path == root]
    assert found, "the root is known, though nothing in it was ever finished"
    uninstall(found[0])
    assert engine.images() == {} and not root.exists()
