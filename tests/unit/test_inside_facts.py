"""What comes back from inside a container: merged, counted as crashed where it is nonsense, redacted once."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from envcheck.collector import inside, options, probes
from envcheck.collector.documents import document, snapshot
from envcheck.collector.inside import Failed, Look, begin, end
from envcheck.collector.redact import Redactor
from envcheck.collector.runtime.process import Result

REF = "image:registry.test/tf:1"
NAMES = (
    [name for name, probe in probes.of("machine").items() if probe.in_container],
    ["interpreter", *probes.of("target"), "acme_fans"],
)


class Started:
    """The engine's process, as it ended."""

    def __init__(self, stdout: bytes = b"", outcome: str = "exited", code: int | None = 0) -> None:
        self.result = Result(["podman"], outcome, code, stdout, b"", 1.5)


def look(tmp_path: Path, told: Any, around: str = "") -> tuple[Look, dict[str, Any]]:
    """A look that got this answer, and the documents so far."""
    request = {"location": REF, "argv": ["podman"], "script": "/dev/null"}
    (tmp_path / "inside.json").write_text(json.dumps(request))
    made = Look(str(tmp_path / "inside.json"))
    seen: dict[str, Any] = {}

    def launch(argv: list[str], *rest: Any, **more: Any) -> Started:
        seen.update(argv=argv, more=more)
        text = told if isinstance(told, str) else json.dumps(told)
        cookie = argv[argv.index("envcheck") + 1]
        return Started((around + begin(cookie) + text + end(cookie) + around).encode())

    made.start(launch, None, None, "/work", *NAMES)
    assert seen["more"]["stdin"] == "/dev/null", "the script goes in by standard input"
    assert "--level" in seen["argv"]
    return made, {"machine": document("live", "machine"), "target": None}


def put(tmp_path: Path, told: Any, around: str = "") -> tuple[dict[str, Any], list[Any]]:
    made, documents = look(tmp_path, told, around)
    names = made.put(documents, document("live", REF))
    return documents, names


def test_what_it_was_sent_with_is_removed_once_it_is_read(tmp_path: Path) -> None:
    for once in (True, False):
        folder = tmp_path / str(once)
        folder.mkdir()
        request = {
            "location": REF,
            "argv": ["podman"],
            "script": str(folder / "c.py"),
            "once": once,
        }
        (folder / "inside.json").write_text(json.dumps(request))
        (folder / "c.py").touch()
        made = Look(str(folder / "inside.json"))
        assert folder.is_dir()
        made.start(lambda *arguments, **more: Started(), None, None, "/", [], [])
        assert folder.is_dir() is not once


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


def test_level_0_goes_where_the_checks_look_for_it_and_says_where_it_ran(tmp_path: Path) -> None:
    ran = dict(OK, facts={"levels": ["L0"]})
    documents, _ = put(tmp_path, answer({"micro_kernels": OK}, micro_kernels=ran))
    assert documents["machine"]["micro_kernels"]["facts"] == {"levels": ["L0"], "inside": REF}
    assert documents["target"]["micro_kernels"]["outcome"] == "ok"


@pytest.mark.parametrize("nonsense", ["x", [], {"outcome": "fine"}, {"outcome": None}, 7])
def test_a_section_that_is_none_counts_as_crashed_and_no_other(
    tmp_path: Path, nonsense: Any
) -> None:
    documents, _ = put(tmp_path, answer({"packages": nonsense, "loader": OK}))
    assert documents["target"]["packages"]["outcome"] == "crashed"
    assert documents["target"]["loader"]["outcome"] == "ok"


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


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"snapshot": {}}', '{"snapshot": {"machine": 1, "target": {}}}']
)
def test_an_answer_that_is_none_is_the_interpreter_s_outcome(tmp_path: Path, text: str) -> None:
    documents, names = put(tmp_path, text)
    told = documents["target"]["interpreter"]
    assert told["outcome"] == "crashed" and "no answer of envcheck's" in told["reason"]
    assert names == []


def test_what_stands_around_the_answer_spoils_nothing(tmp_path: Path) -> None:
    around = "== banner ==\n<<<envcheck 00 answer\n{}\nenvcheck 00>>>\n"
    documents, _ = put(tmp_path, answer({"packages": OK}), around)
    assert documents["target"]["packages"]["outcome"] == "ok"


def test_a_name_that_is_none_is_not_redacted(tmp_path: Path) -> None:
    for names in (None, "abc", ["a", "b"], [1, 2, 3]):
        _, told = put(tmp_path, answer() | {"names": names})
        assert told == [("", "", "")]


def test_failures_have_an_outcome_of_the_schema() -> None:
    from envcheck.collector.inside_troubles import explain

    for outcome, code in (
        ("timeout", None),
        ("flooded", None),
        ("not-started", None),
        ("exited", 137),
    ):
        result = Result(["podman"], outcome, code, b"", b"", 3.0)
        error = explain(REF, result, "cookie")
        assert isinstance(error, Failed) and error.outcome in inside.OUTCOMES
        assert str(error).startswith(REF) and "\n" not in str(error)


@pytest.mark.parametrize(
    ("code", "words"), [(93, "no Python"), (94, "older than 3.6"), (95, "does not start")]
)
def test_the_shell_s_last_words_may_be_lost_on_the_way(code: int, words: str) -> None:
    from envcheck.collector.inside_troubles import NotATarget, explain

    said = b"\n<<<envcheck cookie started\n"
    error = explain(REF, Result(["podman"], "exited", code, said, b"", 0.1), "cookie")
    assert isinstance(error, NotATarget) and words in str(error)


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
    told = redactor.redact(both)
    machine, target = told["machine"], told["target"]
    assert (
        machine["said"] == f"on {target['hostname']}" and machine["hostname"] != target["hostname"]
    )
    assert target["path"].split()[1].startswith(machine["path"].removesuffix("/x"))
    assert not {"c0ffee", "alice", "worker", "/srv/b"} & set(json.dumps(told).split('"'))
    again = Redactor("gpu-box-7", "alice", "/data/alice", [("c0ffee123456", "worker-b", "/srv/b")])
    assert again.redact(told) == told


def test_the_container_s_name_of_its_host_is_a_token_in_the_whole_snapshot() -> None:
    documents = {
        "machine": dict(document("live", "machine"), note="container deadbeef0123 runs"),
        "target": dict(document("live", "container:deadbeef0123"), hostname="deadbeef0123"),
    }
    whole, values = snapshot(documents, names=[("deadbeef0123", "", "")])
    assert "deadbeef" not in json.dumps(whole) and "deadbeef0123" in values.values()
    kept, none = snapshot(documents, keep=True, names=[("deadbeef0123", "", "")])
    assert kept["target"]["location"] == "container:deadbeef0123" and none == {}


# The kernels' options go inside as they were given


@pytest.mark.parametrize(
    "given",
    [
        ["--level", "quick"],
        [],
        [
            "--kernels",
            "L0,L2",
            "--modes",
            "tf32",
            "--gpu",
            "0,2",
            "--busy-ok",
            "--evidence",
            "full",
        ],
    ],
)
def test_options_go_in_and_come_out(given: list[str]) -> None:
    def read(argv: list[str]) -> dict[str, Any] | None:
        parser = argparse.ArgumentParser()
        parser.add_argument("--nvidia-smi")
        options.add_arguments(parser)
        found = options.from_arguments(parser, parser.parse_args(argv))
        return None if found is None else vars(found)

    parser = argparse.ArgumentParser()
    parser.add_argument("--nvidia-smi")
    options.add_arguments(parser)
    asked = options.from_arguments(parser, parser.parse_args(given))
    assert read(options.arguments(asked)) == read(given)


class Working(Started):
    """The same, while it runs."""

    def __init__(self, *lines: str) -> None:
        super().__init__()
        self.result = None  # type: ignore[assignment]
        self.lines = list(lines)
        self.interrupted = 0

    def new_stderr(self) -> list[str]:
        return self.lines

    def interrupt(self) -> None:
        self.interrupted += 1


EVENT = {"row": "a", "phase": "measure", "round": 1, "rounds": 5, "rate": 2.5, "left": 9}


def test_the_work_inside_tells_its_events_and_rubbish_is_none(tmp_path: Path) -> None:
    made, _documents = look(tmp_path, answer())
    rude = [{**EVENT, "phase": "x"}, {**EVENT, "round": "many"}, [1], {"row": "a"}]
    lines = [
        "a library's word",
        "@event {",
        *(f"@event {json.dumps(one)}" for one in [EVENT, *rude]),
    ]
    made.child = Working(*lines)  # type: ignore[assignment]
    assert made.events() == [EVENT]


def test_work_goes_inside_with_its_time(tmp_path: Path) -> None:
    request = {"location": REF, "argv": ["podman"], "script": "/dev/null"}
    (tmp_path / "inside.json").write_text(json.dumps(request))
    seen: list[Any] = []

    def launch(argv: list[str], deadline: float, **more: Any) -> Working:
        seen.append((argv, deadline))
        return Working()

    for work in (None, {"seconds": 500.0}):
        made = Look(str(tmp_path / "inside.json"))
        made.start(launch, None, None, "/work", *NAMES, work=work)
    (plain, short), (argv, long) = seen
    assert "--work" not in plain and json.loads(argv[argv.index("--work") + 1]) == {
        "seconds": 500.0
    }
    assert long == short + 500.0
    made.interrupt()  # of a container of its own: the engine passes the signal on
    assert made.child.interrupted == 1 and len(seen) == 2
