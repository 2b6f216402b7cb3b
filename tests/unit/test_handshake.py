"""The first word with a target: what is accepted as an answer, and how a refusal is worded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from envcheck.collector.runtime.process import Result
from envcheck.collector.worker import handshake

ANSWER: dict[str, Any] = {
    "version": "3.8.18",
    "implementation": "cpython",
    "executable": "/opt/env/bin/python",
    "prefix": "/opt/env",
    "base_prefix": "/usr",
    "virtualenv": True,
    "conda": False,
    "machine": "x86_64",
    "bits": 64,
    "libc": "glibc 2.31",
    "sys_path": ["/usr/lib/python3.8"],
    "user_site": False,
    "frameworks": {"tensorflow": "/opt/env/lib/tensorflow/__init__.py"},
}


def framed(answer: Any, before: str = "", after: str = "") -> bytes:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    message = f'"of": "handshake", "result": {text}'
    return f"{before}\n@envcheck {{{message}}}\n{after}".encode()


def result(
    outcome: str = "exited", code: int | None = 0, stdout: bytes = b"", **rest: Any
) -> Result:
    stderr = rest.pop("stderr", b"")
    return Result(["/opt/env/bin/python", "-c", "..."], outcome, code, stdout, stderr, 5.0, **rest)


def test_an_answer_is_found_among_chatter() -> None:
    chatter = "hello\n@envcheck spoof\n"
    assert handshake.parse(framed(ANSWER, chatter, "goodbye")) == ANSWER


@pytest.mark.parametrize(
    "stdout",
    [
        b"",
        b"Python 3.8",
        framed("{"),
        framed("[]"),
        framed("null"),
        framed({"version": 3}),
        framed({"version": "three.eight"}),
        framed({"version": "3.8.18"}),
        framed(ANSWER | {"sys_path": "no list"}),
        framed(ANSWER | {"frameworks": []}),
        framed("[" * 100_000),
        framed(ANSWER)[: len(framed(ANSWER)) - 30],
    ],
)
def test_anything_else_is_no_answer(stdout: bytes) -> None:
    with pytest.raises(ValueError, match="handshake"):
        handshake.parse(stdout)


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_resolve_finds_the_python_of_an_environment(tmp_path: Path) -> None:
    python = executable(tmp_path / "env/bin/python")
    assert handshake.resolve(str(tmp_path / "env")) == (str(python), "interpreter")
    (tmp_path / "env/pyvenv.cfg").write_text("")
    assert handshake.resolve(str(tmp_path / "env")) == (str(python), "virtualenv")
    assert handshake.resolve(str(python)) == (str(python), "virtualenv")
    (tmp_path / "env/conda-meta").mkdir()
    assert handshake.resolve(str(python)) == (str(python), "conda")


def test_resolve_names_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    (tmp_path / "empty").mkdir()
    (tmp_path / "dead/bin").mkdir(parents=True)
    (tmp_path / "dead/bin/python").symlink_to("/nonexistent/python3.8")
    (tmp_path / "dull/bin").mkdir(parents=True)
    (tmp_path / "dull/bin/python").write_text("")
    for name, words in [
        ("nowhere", "nowhere does not exist"),
        ("plain", "plain is not a Python interpreter"),
        ("plain/python", "plain/python does not exist"),
        ("empty", "empty is a directory without a Python"),
        ("dead", r"dead/bin/python is a link to /nonexistent/python3\.8, which does not exist"),
        ("dull", "dull/bin/python is not a Python interpreter"),
    ]:
        with pytest.raises(ValueError, match=words):
            handshake.resolve(str(tmp_path / name))
