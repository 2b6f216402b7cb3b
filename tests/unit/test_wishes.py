"""What is refused by a request's words alone, and what of it is meant for which stack."""

from __future__ import annotations

import pytest

from envcheck.exit_codes import UsageError
from envcheck.install import validate
from envcheck.install.catalogue.load import load
from envcheck.install.fit import select
from envcheck.install.request import Request

NVIDIA = "nvidia=https://mirror.test/nvidia/"
PUBLIC = "https://mirror.test/simple/"


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ("http://mirror.test/simple/", "plain http"),
        ("nvidia=http://mirror.test/", "plain http"),
        ("https://ann:secret@[x/", "not an index's address"),
    ],
)
def test_an_index_that_cannot_be_is_refused(index: str, expected: str) -> None:
    with pytest.raises(UsageError, match=expected) as caught:
        validate.check(Request(indexes=[index]))
    assert "secret" not in f"{caught.value} {caught.value.hint}"


def test_plain_http_is_allowed_by_name_and_on_this_machine() -> None:
    validate.check(Request(indexes=["http://mirror.test/"], allow_insecure=["mirror.test"]))
    validate.check(Request(indexes=["http://127.0.0.1:8000/simple/"]))


def test_where_envcheck_chooses_an_index_goes_to_the_stack_that_has_it() -> None:
    asked = Request(indexes=[NVIDIA, PUBLIC])
    assert select.meant_for(load("nvidia-tf1"), asked) == asked
    assert select.meant_for(load("tensorflow"), asked).indexes == [PUBLIC]
    named = Request(stack="tensorflow", indexes=[NVIDIA])
    assert select.meant_for(load("tensorflow"), named) == named  # and is refused by its routes
    typo = Request(indexes=["nvdia=https://mirror.test/"])
    assert select.meant_for(load("tensorflow"), typo) == typo
