"""One index for each package, and the first of its addresses that answers."""

from __future__ import annotations

import planned
import pytest
from index_fakes import PUBLIC, Refused, Session

from envcheck.exit_codes import CouldNotLook, UsageError
from envcheck.install.catalogue.model import Index
from envcheck.install.request import Request
from envcheck.install.wheels.indexes import Indexes

FIRST = "https://first.example"
SECOND = "https://second.example/simple/"
OWN = Index(
    name="nvidia", urls=[FIRST, SECOND], packages=["nvidia-*", "tensorrt"], but_not=["nvidia-ml-py"],
    source="",
)  # fmt: skip
EXTRA = Index(name="extra", urls=["https://extra.example"], packages=["dali", "dali-*"], source="")
STACK = planned.stack(indexes=[OWN, EXTRA], otherwise=["tensorflow"])
PAGE = (b'<a href="nvidia_tensorflow-1-py3-none-any.whl">x</a>', "text/html")
LOGIN = (b"<form><input></form>", "text/html")


def opened(*indexes: str, session: Session | None = None) -> Indexes:
    session = session or Session({f"{FIRST}/nvidia-tensorflow/": PAGE})
    return Indexes(STACK, Request(indexes=list(indexes)), PUBLIC, session)  # type: ignore[arg-type]


def test_a_named_index_replaces_the_catalogues_addresses() -> None:
    session = Session({"https://b.example/nvidia-tensorflow/": PAGE})
    there = opened("nvidia=https://a.example/x=1/", "nvidia=https://b.example", session=session)
    assert there.url("nvidia") == "https://b.example/"
    assert session.asked[0] == "https://a.example/x=1/nvidia-tensorflow/"


def test_an_index_that_the_stack_does_not_have() -> None:
    with pytest.raises(UsageError, match="has no index named nvidai") as caught:
        opened("nvidai=https://user:secret@a.example")
    assert "secret" not in str(caught.value)
    assert caught.value.hint.startswith("Its indexes are nvidia, extra;")


def test_the_first_address_that_answers_is_taken_and_said() -> None:
    session = Session({f"{SECOND}nvidia-tensorflow/": PAGE, "https://extra.example/dali/": PAGE})
    there = opened(session=session)
    assert there.answers() == ""
    assert there.url("nvidia") == SECOND
    assert there.remarks == [
        "https://first.example has no nvidia-tensorflow; https://second.example/simple/ is used instead"
    ]
    asked = len(session.asked)
    there.url("nvidia")
    assert len(session.asked) == asked


def test_when_no_address_answers_each_is_named_with_what_it_said() -> None:
    session = Session(
        {
            f"{FIRST}/nvidia-tensorflow/": Refused(None, "first.example cannot be reached"),
            f"{SECOND}nvidia-tensorflow/": LOGIN,
        }
    )
    result = opened(session=session).answers()
    assert result.startswith("the nvidia index does not answer: first.example cannot be reached; ")
    assert "https://second.example/simple/ has no file of nvidia-tensorflow" in result
    with pytest.raises(CouldNotLook) as caught:
        opened(session=session).url("nvidia")
    for way in ("--index NAME=URL", "--stack tensorflow", "container"):
        assert way in caught.value.hint


def test_credentials_are_used_and_never_said() -> None:
    url = "https://user:secret@a.example"
    session = Session({})
    result = opened(f"nvidia={url}", session=session).answers()
    assert session.asked[0] == f"{url}/nvidia-tensorflow/"
    assert "a.example" in result and "secret" not in result


@pytest.mark.parametrize(
    "text",
    [
        "joe:secret@a.example/x",
        "nvidia=joe:secret@a.example",
        "https://joe:secret/x@a.example/",
        "nvidia=http://joe:se#secret@a.example/",
        "https://joe:secret@[a.example/",
        "https://joe:secret@a.example:port/",
    ],
)
def test_a_broken_index_is_refused_without_what_may_be_its_password(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        opened(text)
    assert "secret" not in f"{caught.value} {caught.value.hint}"
