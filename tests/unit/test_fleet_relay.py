"""What a machine's answer is wrapped in, and what is made of anything that comes instead."""

from __future__ import annotations

import base64
import gzip

import pytest

from envcheck.fleet.engines import Asked, relay

COOKIE = "envcheck-0123"


def packed(output: bytes, code: int = 0, printed: str = "") -> bytes:
    data = base64.encodebytes(gzip.compress(output, mtime=0))
    mark = b"@%s" % COOKIE.encode()
    end = f"{printed}\n{code}\n".encode()
    return b"\n%s begin\n%s%s end %s%s over\n" % (mark, data, mark, end, mark)


def test_an_answer_is_found_among_what_others_print() -> None:
    answer = b"Welcome!\r\n" + packed(b'{"a": 1}') + b"bye\n"
    assert relay.read(answer, COOKIE, 60.0, limit=100) == b'{"a": 1}'


@pytest.mark.parametrize(
    ("answer", "outcome", "reason"),
    [
        (b"\n@envcheck-0123 timed-out\n", "timed-out", "no answer within 60 s"),
        (packed(b"x" * 1001), "unreadable", "the answer is longer than a Snapshot may be"),
        (
            packed(b"", code=2, printed="envcheck-collector: /opt/tf: there is nothing\n"),
            "failed",
            "/opt/tf: there is nothing",
        ),
        (packed(b"", code=137), "failed", "the collector exited with status 137"),
        (b"\n@envcheck-0123 none\n", "failed", "there is no python3"),
        (packed(b"{}")[:-30], "unreadable", "the answer is cut off"),
        (packed(b"{}").replace(b"AA", b"ZZ"), "unreadable", "the answer is damaged"),
        (packed(b"{}").replace(b"\n0\n", b"\nno\n"), "unreadable", "the answer is damaged"),
        (b"@envcheck-0123 begin\n!!!\n@envcheck-0123 end", "unreadable", "the answer is cut off"),
        (b"@envcheck-0123 \xff\xfe", "unreadable", "the answer is cut off"),
        (b"", "unreadable", "python3 there printed nothing"),
    ],
)
def test_what_is_no_snapshot_is_told_with_its_reason(
    answer: bytes, outcome: str, reason: str
) -> None:
    assert relay.read(answer, COOKIE, 60.0, limit=1000) == (outcome, reason)


def test_a_bomb_is_not_unpacked_beyond_the_limit() -> None:
    assert relay.read(packed(bytes(50_000_000)), COOKIE, 60.0, limit=1000) == relay.FLOODED


def test_the_command_quotes_what_it_is_given() -> None:
    line = relay.shell("python3", Asked(["--target", "/a b/$(x)'"], 60.0), COOKIE)
    assert "'/a b/$(x)'\"'\"''" in line and "\n" not in line
    assert f"| head -c {relay.LARGEST};" in line
