"""What of a user's environment matters to processes that talk to each other on this machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envcheck.collector.systems import horovod
from envcheck.collector.systems.shared.distributed import loopback


@pytest.mark.parametrize(
    ("environ", "variable"),
    [
        ({}, ""),
        ({"HTTP_PROXY": "http://p:1"}, ""),  # gRPC reads lower case alone
        ({"http_proxy": ""}, ""),
        ({"http_proxy": "http://p:1"}, "http_proxy"),
        ({"https_proxy": "http://p:1", "http_proxy": "http://p:1"}, "https_proxy"),
        ({"http_proxy": "http://p:1", "no_proxy": "localhost,127.0.0.1"}, ""),
        ({"http_proxy": "http://p:1", "no_proxy": "localhost"}, "http_proxy"),
        ({"http_proxy": "http://p:1", "no_proxy": ","}, "http_proxy"),
        ({"http_proxy": "x", "no_grpc_proxy": "a.b", "no_proxy": "127.0.0.1"}, "http_proxy"),
    ],
)
def test_the_proxy_that_grpc_would_take(environ: dict[str, str], variable: str) -> None:
    assert loopback.proxy(environ) == variable
    attempts = loopback.attempts(environ, 25.0)
    assert [seconds for _words, _more, seconds in attempts] == ([8.0, 25.0] if variable else [25.0])
    for _words, more, _seconds in attempts[1:]:
        assert loopback.proxy({**environ, **more}) == ""


def test_the_timelines_operations_are_read_by_name(tmp_path: Path) -> None:
    timeline = tmp_path / "timeline.json"
    assert horovod.operations(str(timeline)) == []
    names = [
        "NEGOTIATE_ALLREDUCE",
        "ALLREDUCE",
        "WAIT_FOR_DATA",
        "NCCL_ALLREDUCE",
        "NCCL_ALLREDUCE",
    ]
    timeline.write_text(json.dumps([{"name": name} for name in names]))
    assert horovod.operations(str(timeline)) == ["NCCL_ALLREDUCE"]
