"""One index for each package, and the first of its addresses that answers."""

from __future__ import annotations

import msgspec
import pytest
from index_fakes import PUBLIC, Refused, Session

from envcheck.exit_codes import CouldNotLook, UsageError
from envcheck.install.catalogue.model import Index, Stack
from envcheck.install.index.routes import Routes
from envcheck.install.request import Request

FIRST = "https://first.example"
SECOND = "https://second.example/simple/"
STACK = Stack(
    name="nvidia-tf1",
    title="",
    distribution="nvidia-tensorflow",
    requirement="",
    gpu=True,
    architectures=["x86_64"],
    source="",
    indexes=[
        Index(
            name="nvidia",
            urls=[FIRST, SECOND],
            packages=["nvidia-*", "tensorrt"],
            but_not=["nvidia-ml-py"],
            source="",
        ),
        Index(name="extra", urls=["https://extra.example"], packages=["dali", "dali-*"], source=""),
    ],
    otherwise=["tensorflow"],
)
PAGE = (b'<a href="nvidia_tensorflow-1-py3-none-any.whl">x</a>', "text/html")
LOGIN = (b"<form><input></form>", "text/html")


def routes(*indexes: str, stack: Stack = STACK) -> Routes:
    return Routes(stack, Request(indexes=list(indexes)), PUBLIC)


def test_a_claimed_name_comes_from_its_index_alone() -> None:
    for name in ("nvidia-tensorrt", "NVIDIA_cublas.cu117", "tensorrt"):
        assert routes().of(name).index_name == "nvidia"
    assert routes().of("dali-tf").urls == ["https://extra.example"]


def test_every_other_name_comes_from_the_public_index() -> None:
    for name in ("numpy", "tensorrt-cu12", "nvidia", "nvidia-ml-py", "NVIDIA.ml_py"):
        assert routes().of(name).urls == ["https://public.example/simple"]


def test_a_named_index_replaces_the_catalogues_addresses() -> None:
    there = routes("nvidia=https://a.example/x=1/", "nvidia=https://b.example")
    assert there.of("nvidia-dali").urls == ["https://a.example/x=1/", "https://b.example"]
    assert there.of("numpy").urls == ["https://public.example/simple"]


@pytest.mark.parametrize(
    "text", ["https://mirror.example/a=b", "public=https://mirror.example/a=b"]
)
def test_an_index_without_a_name_is_the_public_one(text: str) -> None:
    assert routes(text).of("numpy").urls == ["https://mirror.example/a=b"]
    assert routes(text).of("nvidia-x").urls == [FIRST, SECOND]


def test_an_index_that_the_stack_does_not_have() -> None:
    with pytest.raises(UsageError, match="has no index named nvidai") as caught:
        routes("nvidai=https://user:secret@a.example")
    assert "secret" not in str(caught.value)
    assert caught.value.hint.startswith("Its indexes are nvidia, extra;")


@pytest.mark.parametrize("text", ["nvidia=", "nvidia=/srv/wheels", "nvidia=ftp://a", "https://"])
def test_an_index_that_is_no_url(text: str) -> None:
    with pytest.raises(UsageError, match="takes a URL"):
        routes(text)


def test_the_first_address_that_answers_is_taken_and_said() -> None:
    session = Session({f"{SECOND}nvidia-tensorflow/": PAGE, "https://extra.example/dali/": PAGE})
    there = routes()
    assert there.answers(session) == ""
    assert there.base(there.of("nvidia-dali"), session) == SECOND
    assert there.said == [
        "https://first.example has no nvidia-tensorflow; https://second.example/simple/ is used"
    ]
    asked = len(session.asked)
    there.base(there.of("tensorrt"), session)
    assert len(session.asked) == asked


def test_a_single_address_is_taken_unasked_where_the_distribution_is_not_from_there() -> None:
    session = Session({})
    there = routes()
    assert there.base(there.of("numpy"), session) == "https://public.example/simple/"
    assert there.base(there.of("dali"), session) == "https://extra.example/"
    assert not session.asked


def test_a_mistyped_mirror_is_said_before_the_resolver_misses_every_version() -> None:
    there = routes("nvidia=https://mirror.example")
    with pytest.raises(CouldNotLook) as caught:
        there.base(there.of("nvidia-cublas"), Session({}))
    assert str(caught.value) == (
        "the nvidia index does not answer: https://mirror.example has no nvidia-tensorflow"
    )
    assert "--stack tensorflow" in caught.value.hint


def test_what_mends_it_is_said_before_the_alternatives() -> None:
    refused = Refused(401, "mirror.example asks for a password")
    refused.hint = "~/.netrc may hold it."
    there = routes("nvidia=https://mirror.example")
    with pytest.raises(CouldNotLook) as caught:
        there.base(
            there.of("nvidia-x"), Session({"https://mirror.example/nvidia-tensorflow/": refused})
        )
    assert caught.value.hint.startswith("~/.netrc may hold it. Alternatives: another address")


def test_a_password_on_the_command_line_is_remarked_on() -> None:
    (said,) = routes("nvidia=https://joe:secret@mirror.example/x", "https://joe@b.example").said
    assert said.startswith("--index nvidia=https://mirror.example/x holds a password")
    assert "secret" not in said and "UV_INDEX_NAME_PASSWORD" in said


def test_when_no_address_answers_each_is_named_with_what_it_said() -> None:
    session = Session(
        {
            f"{FIRST}/nvidia-tensorflow/": Refused(None, "first.example cannot be reached"),
            f"{SECOND}nvidia-tensorflow/": LOGIN,
        }
    )
    said = routes().answers(session)
    assert said.startswith("the nvidia index does not answer: first.example cannot be reached; ")
    assert "https://second.example/simple/nvidia-tensorflow/ answers a web page" in said
    with pytest.raises(CouldNotLook) as caught:
        routes().base(routes().of("nvidia-x"), session)
    for way in ("--index NAME=URL", "--stack tensorflow", "container"):
        assert way in caught.value.hint


def test_an_index_without_the_stacks_distribution_is_asked_for_what_it_claims() -> None:
    session = Session({f"{FIRST}/nvidia-tensorflow/": PAGE})
    assert "https://extra.example has no dali" in routes().answers(session)
    assert ("https://extra.example/dali/", "") in session.asked


def test_a_page_without_files_is_no_answer() -> None:
    empty = (b"<html><body></body></html>", "text/html")
    session = Session({f"{FIRST}/nvidia-tensorflow/": empty, f"{SECOND}nvidia-tensorflow/": PAGE})
    there = routes()
    assert there.base(there.of("nvidia-x"), session) == SECOND


def test_credentials_are_used_and_never_said() -> None:
    url = "https://user:secret@a.example"
    session = Session({})
    said = routes(f"nvidia={url}").answers(session)
    assert session.asked[0][0] == f"{url}/nvidia-tensorflow/"
    assert "a.example" in said and "secret" not in said


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
        routes(text)
    assert "secret" not in f"{caught.value} {caught.value.hint}"


def test_a_stack_without_indexes_answers() -> None:
    session = Session({})
    bare = msgspec.structs.replace(STACK, indexes=[])
    assert routes(stack=bare).answers(session) == "" and not session.asked
