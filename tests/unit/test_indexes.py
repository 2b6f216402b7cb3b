"""One index for each package, and the first of its addresses that answers."""

from __future__ import annotations

from types import SimpleNamespace

import planned
import pytest

from envcheck.exit_codes import CouldNotLook, UsageError
from envcheck.install.catalogue.model import Index
from envcheck.install.network.access import Access
from envcheck.install.network.public_index import PublicIndex
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
PUBLIC = PublicIndex(url="https://public.example/simple", origin="a test")
ABSENT = "× No solution found\n╰─▶ Because nvidia-tensorflow was not found in the package registry"


class Asked(dict[str, str]):
    """Stands in for uv: what it says of an index, "" where that has the project. asked: in order."""

    def __init__(self, answers: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(answers)
        self.asked: list[tuple[str, str]] = []
        monkeypatch.setattr(Indexes, "_asked_by_uv", lambda indexes, *of: self.ask(*of))

    def ask(self, url: str, project: str) -> SimpleNamespace:
        self.asked.append((url, project))
        words = self.get(url, ABSENT)
        return SimpleNamespace(ok=not words, stderr=words.encode())


def opened(*indexes: str) -> Indexes:
    return Indexes(STACK, Request(indexes=list(indexes)), PUBLIC, Access())


def test_a_named_index_replaces_the_catalogues_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    uv = Asked({"https://b.example": ""}, monkeypatch)
    there = opened("nvidia=https://a.example/x=1/", "nvidia=https://b.example")
    assert there.url("nvidia") == "https://b.example/"
    assert uv.asked[0] == ("https://a.example/x=1/", "nvidia-tensorflow")


def test_an_index_that_the_stack_does_not_have() -> None:
    with pytest.raises(UsageError, match="has no index named nvidai") as caught:
        opened("nvidai=https://user:secret@a.example")
    assert "secret" not in str(caught.value)
    assert caught.value.hint.startswith("Its indexes are nvidia, extra;")


def test_the_first_address_that_answers_is_taken_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    uv = Asked({SECOND: "", "https://extra.example": ""}, monkeypatch)
    there = opened()
    assert there.answers() == ""
    assert there.url("nvidia") == SECOND
    assert there.remarks == [
        "https://first.example has no nvidia-tensorflow; https://second.example/simple/ is used instead"
    ]
    asked = len(uv.asked)
    there.url("nvidia")
    assert len(uv.asked) == asked


def test_when_no_address_answers_each_is_named_with_what_it_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failed = f"error: Failed to fetch: {FIRST}/nvidia-tensorflow/\n  cause: dns error"
    Asked({FIRST: failed}, monkeypatch)
    result = opened().answers()
    assert result.startswith(
        "the nvidia index does not answer: first.example has no address in DNS"
    )
    assert "https://second.example/simple/ has no nvidia-tensorflow" in result
    with pytest.raises(CouldNotLook) as caught:
        opened().url("nvidia")
    for way in ("--offline", "--index NAME=URL", "--stack tensorflow", "container"):
        assert way in caught.value.hint


def test_what_uv_could_not_fetch_later_is_said_of_its_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Asked({"https://user:secret@first.example": ""}, monkeypatch)
    there = opened("nvidia=https://user:secret@first.example")
    assert there.url("nvidia") and there.trouble("error: something else") is None
    failed = f"Failed to fetch: {FIRST}/nvidia-x/\n cause: (503 Service Unavailable)"
    trouble = there.trouble(failed)
    assert str(trouble).startswith("the nvidia index does not answer as it should: first.example")
    assert trouble is not None and "another address" in trouble.hint
    assert there.variables({"index1": there.url("nvidia")}) == {
        "UV_INDEX_INDEX1_USERNAME": "user",
        "UV_INDEX_INDEX1_PASSWORD": "secret",
    }


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
