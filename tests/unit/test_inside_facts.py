"""What comes back from inside a container: merged, counted as crashed, redacted; or whose failure it was."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envcheck.collector import inside_troubles, probes
from envcheck.collector.documents import document
from envcheck.collector.inside import Look
from envcheck.collector.main import Request
from envcheck.collector.redact import Redactor
from envcheck.collector.runtime.process import Result
from envcheck.collector.worker import messages
from envcheck.collector.worker.parent import Limits, Worker

REF = "image:registry.test/tf:1"
NAMES = (
    [name for name, probe in probes.of("machine").items() if probe.in_container],
    ["interpreter", *probes.of("target"), "acme_fans"],
)


class Started:
    """The engine's process, as it ended; ``runs``: before it has."""

    def __init__(self, stdout: bytes = b"", outcome: str = "exited", code: int | None = 0) -> None:
        self.result: Any = Result(["podman"], outcome, code, stdout, b"", 1.5)
        self.stdout = stdout
        self.interrupted = 0

    def poll(self) -> Any:
        return self.result

    def new_stdout(self) -> bytes:
        return self.stdout

    def interrupt(self) -> None:
        self.interrupted += 1


def file(tmp_path: Path, **more: Any) -> str:
    request = {"location": REF, "argv": ["podman"], "script": "/dev/null", **more}
    (tmp_path / "inside.json").write_text(json.dumps(request))
    return str(tmp_path / "inside.json")


def look(
    tmp_path: Path, result: Any, around: str = "", **request: Any
) -> tuple[Look, dict[str, Any], list[Any]]:
    """A look that got this answer (text: as it stands), the documents so far, and its events."""
    seen: dict[str, Any] = {}

    def launch(argv: list[str], deadline: float, *rest: Any, **more: Any) -> Started:
        seen.update(argv=argv, more=more, deadline=deadline)
        mark = messages.cookie_mark(argv[argv.index("envcheck") + 1])
        text = result.encode() if isinstance(result, str) else json.dumps(result).encode()
        inner = b"\n".join(mark + b'{"result": %s, "of": "event"}' % one for one in EVENTS)
        data = mark + b'{"result": %s}\n' % text
        return Started(around.encode() + b"\n" + inner + b"\n" + data + around.encode())

    made = Look(file(tmp_path), launch)
    made.start(Request(**request), *NAMES)
    assert seen["more"]["stdin"] == "/dev/null", "the script goes in by standard input"
    events: list[Any] = []
    made.step(events.append)
    return made, {"machine": document("live", "machine"), "target": None, "seen": seen}, events


EVENT = {"row": "a", "phase": "measure", "round": 1, "rate": 2.5}
RUDE: list[Any] = [{**EVENT, "phase": "x"}, {**EVENT, "round": "many"}, [1], {"row": "a"}]
EVENTS = [json.dumps(one).encode() for one in [EVENT, *RUDE]]


def put(tmp_path: Path, result: Any, around: str = "") -> tuple[dict[str, Any], list[Any]]:
    made, documents, _events = look(tmp_path, result, around)
    names = made.put(documents, document("live", REF))
    return documents, names


def answer(target: dict[str, Any] | None = None, **machine: Any) -> dict[str, Any]:
    return {
        "snapshot": {"machine": machine, "target": target or {}},
        "names": ["c0ffee", "ann", "/a"],
    }


OK = {"outcome": "ok", "seconds": 0.1, "facts": {}}


def test_the_target_is_what_the_inside_tells_of_itself_and_sees_of_the_machine(
    tmp_path: Path,
) -> None:
    seen = dict.fromkeys(NAMES[0], OK)
    documents, names = put(tmp_path, answer({"packages": OK}, pci=OK, containers=OK, **seen))
    target = documents["target"]
    assert {name for name, value in target.items() if isinstance(value, dict)} == {
        *NAMES[0],
        "packages",
        "collector",
    }
    assert target["location"] == REF and names == [("c0ffee", "ann", "/a")]
    assert "micro_kernels" not in documents["machine"]


def test_other_packages_facts_come_back_and_are_bounded(tmp_path: Path) -> None:
    deep: Any = {}
    for _ in range(40):
        deep = {"a": deep}
    for facts, outcome in (
        ({"rpm": 5}, "ok"),
        (deep, "crashed"),
        ({"a": "x" * 2_000_000}, "crashed"),
    ):
        extensions = {"acme_fans": dict(OK, facts=facts), "unasked": OK}
        documents, _ = put(tmp_path, answer({"extensions": extensions}))
        assert list(documents["target"]["extensions"]) == ["acme_fans"]
        assert documents["target"]["extensions"]["acme_fans"]["outcome"] == outcome
    documents, _ = put(tmp_path, answer({"extensions": 5}))
    assert "extensions" not in documents["target"]


# One value, one token


def test_names_of_both_sides_get_one_set_of_tokens() -> None:
    redactor = Redactor(
        "gpu-box-7", "alice", "/data/alice", [("c0ffee123456", "worker-b", "/srv/b")]
    )
    both = {
        "machine": {"hostname": "gpu-box-7", "path": "/data/alice/x", "said": "on c0ffee123456"},
        "target": {
            "hostname": "c0ffee123456",
            "user": "worker-b",
            "path": "/srv/b/x /data/alice/y",
        },
    }
    result = redactor.redact(both)
    machine, target = result["machine"], result["target"]
    assert (
        machine["said"] == f"on {target['hostname']}" and machine["hostname"] != target["hostname"]
    )
    assert target["path"].split()[1].startswith(machine["path"].removesuffix("/x"))
    assert not {"c0ffee", "alice", "worker", "/srv/b"} & set(json.dumps(result).split('"'))
    again = Redactor("gpu-box-7", "alice", "/data/alice", [("c0ffee123456", "worker-b", "/srv/b")])
    assert again.redact(result) == result


def test_the_work_inside_reports_its_events_and_rubbish_is_none(tmp_path: Path) -> None:
    assert look(tmp_path, answer())[2] == [EVENT]


def reason(result: Result, *sent: Any) -> Any:
    """Why there is no answer; sent: messages that came before."""
    child = SimpleNamespace(
        poll=lambda: result, new_stdout=lambda: b"".join(messages.encode(one) for one in sent)
    )
    worker = Worker(child, Limits(), lambda *_message: None)
    worker.step()
    return inside_troubles.explain("image:x", worker)


BEGUN: dict[str, Any] = {"begin": {"pid": 5}}


@pytest.mark.parametrize(
    ("code", "done", "words"),
    [
        (93, None, "no Python"),
        (94, None, "older than 3.6"),
        (95, None, "does not start"),
        (94, {"outcome": "old", "reason": "3.5.2 /usr/bin/python3"}, "/usr/bin/python3 is Python 3.5.2"),
        (95, {"outcome": "broken", "reason": "/b/python"}, "/b/python does not start"),
    ],
)  # fmt: skip
def test_the_shell_s_last_words_may_be_lost_on_the_way(code: int, done: Any, words: str) -> None:
    result = [BEGUN] + ([{"done": done}] if done else [])
    error = reason(Result(["podman"], "exited", code, b"", b"", 0.1), *result)
    assert isinstance(error, inside_troubles.NotATarget) and words in str(error)


@pytest.mark.parametrize(
    "errors",
    [
        'Error: runc: runc create failed: unable to start container process: exec: "/entry": stat /entry: no'
        " such file or directory: OCI runtime attempted to invoke a command that was not found",
        "Error: crun: executable file `nosuch` not found in $PATH: No such file or directory: OCI runtime"
        " attempted to invoke a command that was not found",
        "docker: Error response from daemon: failed to create shim: OCI runtime create failed: container_"
        'linux.go:380: starting container process caused: exec: "/etc": permission denied: unknown.',
        "exec /entry.sh: no such file or directory",
    ],
)
@pytest.mark.parametrize("code", [126, 127])
def test_an_entrypoint_that_is_not_there_is_the_image_s(code: int, errors: str) -> None:
    ended = Result(["podman"], "exited", code, b"", errors.encode(), 0.1)
    assert "its entrypoint cannot be started: " in str(reason(ended))
