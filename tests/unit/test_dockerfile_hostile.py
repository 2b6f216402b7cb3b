"""Whatever a lock, a stack and an image's name say: the Dockerfile has the same instructions."""

from __future__ import annotations

import re

import hostile
import msgspec
import pytest
from planned import GAST, SETUPTOOLS, lock, stack

from envcheck.install.export.dockerfile import render
from envcheck.install.export.requirement_lists import of_lock

replace = msgspec.structs.replace


def instructions(dockerfile: str) -> list[str]:
    """The first words, as a builder reads them; and of a RUN how many commands it has."""
    lines = [line for line in dockerfile.split("\n") if not line.lstrip().startswith("#")]
    whole = "\n".join(lines).replace("\\\n", "").split("\n")
    return [f"{line.split()[0]} {line.count(' && ')}" for line in whole if line.strip()]


def assert_the_same(dockerfile: str, good: str) -> None:
    assert instructions(dockerfile) == instructions(good)
    assert not hostile.problem(dockerfile)
    for line in dockerfile.splitlines()[:1]:  # parser directives end at the first other comment
        assert not re.match(r"#\s*[A-Za-z]\w*\s*=", line)


LOCK = lock(*lock().packages, GAST, building=[SETUPTOOLS], provided={"x": ""})
LISTS = of_lock(stack(), LOCK)


@pytest.mark.parametrize("text", hostile.TEXTS.values(), ids=hostile.TEXTS)
@pytest.mark.parametrize("digest", ["", "d"])
def test_a_lock_a_stack_and_an_image_add_no_instruction(text: str, digest: str) -> None:
    good = render(stack(), LOCK, LISTS, digest)
    for field in ("stack", "release", "created_at"):
        evil = replace(LOCK, **{field: text})
        assert_the_same(render(stack(), evil, LISTS, digest), good)
    assert_the_same(render(stack(), replace(LOCK, provided={text: ""}), LISTS, digest), good)
    lists = [replace(one, url=text) if one.url else one for one in LISTS]
    assert_the_same(render(stack(), LOCK, lists, digest), good)
    of = replace(stack(), title=text, environment={"A": text})
    good = render(replace(of, environment={"A": "b"}, title="c"), LOCK, LISTS)
    assert_the_same(render(of, LOCK, LISTS), good)
    assert_the_same(
        render(stack(), LOCK, LISTS, digest, text), render(stack(), LOCK, LISTS, digest, "x")
    )


def test_a_value_that_looks_like_a_build_argument_is_a_value() -> None:
    evil = replace(stack(), title='"$BASE" evil="yes"')
    assert r'description="\"\$BASE\" evil=\"yes\""' in render(evil, LOCK, LISTS)
