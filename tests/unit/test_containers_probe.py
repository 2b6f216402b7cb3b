"""The containers probe: what engines answer, CDI specifications, the toolkit's configuration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from envcheck.collector.containers import specs as container_specs
from envcheck.collector.facts import Facts, dumps, from_error
from envcheck.collector.probes import containers
from envcheck.collector.runtime.context import Context
from envcheck.collector.runtime.process import Result
from envcheck.collector.worker import forked
from envcheck.facts.containers import Containers, Engine

ANYTHING = settings(max_examples=30, deadline=None)
NO_DAEMON = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is it running?"
DENIED = (
    "permission denied while trying to connect to the Docker daemon socket at"
    " unix:///var/run/docker.sock"
)


def result(stdout: str = "", stderr: str = "", code: int = 0, outcome: str = "exited") -> Result:
    return Result(["x"], outcome, code, stdout.encode(), stderr.encode(), 0.1)


def write(root: Path, path: str, text: str = "", mode: int = 0o644) -> None:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)


@pytest.fixture(autouse=True)
def no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def inline(functions: Any, deadline: float) -> list[tuple[str, Any]]:
        results: list[tuple[str, Any]] = []
        for function in functions:
            try:
                results.append(("ok", function()))
            except OSError as error:
                results.append(("error", from_error(error)))
        return results

    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("a unit test started a process")

    monkeypatch.setattr(forked, "call_all", inline)
    monkeypatch.setattr("envcheck.collector.runtime.process.Child", refuse)


def collect(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    answers: dict[tuple[str, str], Result],
    **environ: str,
) -> Containers:
    """What the probe says of a machine with these programs, which answer so."""
    for name, _question in answers:
        write(root, f"/usr/bin/{name}", "", 0o755)

    def ask(context: Context, paths: dict[str, str]) -> dict[tuple[str, str], Result]:
        assert {f"/usr/bin/{name}" for name, _question in answers} >= set(paths.values())
        return answers

    monkeypatch.setattr(containers, "ask", ask)
    facts = containers.collect(Context(environ, root=str(root)))
    return msgspec.json.decode(dumps(facts.values).encode(), type=Containers)


DOCKER_INFO = {
    "ServerVersion": "28.3.0",
    "CgroupDriver": "systemd",
    "CgroupVersion": "2",
    "Runtimes": {"runc": {"path": "runc"}, "nvidia": {"path": "nvidia-container-runtime"}},
    "DefaultRuntime": "runc",
    "Driver": "overlay2",
    "DockerRootDir": "/var/lib/docker",
    "SecurityOptions": ["name=apparmor", "name=seccomp,profile=builtin", "name=cgroupns"],
    "CDISpecDirs": ["/etc/cdi", "/var/run/cdi"],
    "OperatingSystem": "Ubuntu 24.04",
    "ClientInfo": {"Context": "default", "Version": "28.3.0"},
}


def docker(info: Any, **environ: str) -> Engine:
    """The engine's facts where docker info prints this."""
    answer = info if isinstance(info, Result) else result(json.dumps(info))
    facts = Facts()
    facts.put("name", "docker")
    facts.put("path", "/usr/bin/docker")
    containers.put_docker(facts, answer, environ)
    return msgspec.json.decode(dumps(facts.values).encode(), type=Engine)


@pytest.mark.parametrize(
    ("answer", "reason", "words"),
    [
        (result('{"ServerVersion":""}', NO_DAEMON, code=1), "error", NO_DAEMON),
        (result("", DENIED, code=1), "no-permission", "permission denied"),
        (result('{"ServerErrors":["Cannot connect"]}', code=1), "error", "Cannot connect"),
        (result(json.dumps({"ServerErrors": [DENIED]})), "no-permission", "permission denied"),
        (result(outcome="timeout"), "timeout", "gave no answer"),
        (result(code=1), "not-supported", "exited with status 1"),
        (result("", "", code=-11), "error", "died by signal 11"),
        (result("not json"), "error", "not json"),
        (result("{" * 50_000), "error", ""),
        (result("[1, 2]"), "error", ""),
    ],
)
def test_docker_that_does_not_answer(answer: Result, reason: str, words: str) -> None:
    engine = docker(answer)
    assert engine.server_version.unavailable == reason  # type: ignore[union-attr]
    assert words in engine.server_version.detail  # type: ignore[union-attr]
    assert engine.runtimes.detail == "the server did not answer"  # type: ignore[union-attr]


@ANYTHING
@given(
    st.dictionaries(
        st.sampled_from(sorted(DOCKER_INFO)),
        st.none() | st.text(max_size=5) | st.lists(st.text(max_size=3), max_size=2) | st.just({}),
    )
)
@example({"ServerVersion": "1", "Runtimes": None, "ClientInfo": None, "SecurityOptions": None})
@example({"ServerVersion": ["1"], "ClientInfo": "x", "Runtimes": ["nvidia"]})
def test_docker_info_of_any_shape(info: Any) -> None:
    docker(info)


# The toolkit's configuration


# CDI specifications

SPEC = """\
---
cdiVersion: 0.5.0
containerEdits:
  deviceNodes:
  - path: /dev/nvidia-uvm
  - hostPath: /host/nvidiactl
    path: /dev/nvidiactl
  env:
  - NVIDIA_VISIBLE_DEVICES=void
  hooks:
  - args:
    - nvidia-cdi-hook
    - create-symlinks
    - --link
    - libcuda.so.1::/usr/lib/x86_64-linux-gnu/libcuda.so
    hookName: createContainer
    path: /usr/bin/nvidia-cdi-hook
  mounts:
  - containerPath: /usr/lib/x86_64-linux-gnu/libcuda.so.535.54.03
    hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.535.54.03
    options:
    - ro
    - bind
  - containerPath: "/with space"
    hostPath: "/with space/and: colon"   # quoted
devices:
- containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
  name: "0"
- name: all
  containerEdits:
    deviceNodes: []
kind: nvidia.com/gpu
"""
SPEC_PATHS = [
    "/dev/nvidia-uvm",
    "/host/nvidiactl",
    "/usr/bin/nvidia-cdi-hook",
    "/usr/lib/x86_64-linux-gnu/libcuda.so.535.54.03",
    "/with space/and: colon",
    "/dev/nvidia0",
]


def spec_of(root: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> Any:
    write(root, name, text)
    specs = collect(root, monkeypatch, {}).cdi_specs
    assert isinstance(specs, list)
    return specs


def test_host_paths_that_are_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in SPEC_PATHS[:3]:
        write(tmp_path, path)
    (spec,) = spec_of(tmp_path, monkeypatch, "/etc/cdi/nvidia.yaml", SPEC)
    assert (spec.path, spec.kind, spec.version) == (
        "/etc/cdi/nvidia.yaml",
        "nvidia.com/gpu",
        "0.5.0",
    )
    assert spec.devices == ["0", "all"]
    assert spec.missing_paths == SPEC_PATHS[3:]


def test_a_specification_of_other_device_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "/proc/devices", "Character devices:\n195 nvidia\n509 nvidia-uvm\n")
    nodes = [("/dev/nvidia-uvm", 510), ("/dev/nvidia-uvm-tools", 509), ("/dev/nvidia0", 195)]
    edits = [{"path": path, "major": major} for path, major in nodes]
    text = json.dumps({"kind": "nvidia.com/gpu", "containerEdits": {"deviceNodes": edits}})
    (spec,) = spec_of(tmp_path, monkeypatch, "/etc/cdi/nvidia.json", text)
    assert spec.other_numbers == ["/dev/nvidia-uvm: 510 instead of 509"]


def test_errors_in_logs_and_the_client_s_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged = "nvidia-container-cli: requirement error: unsatisfied condition: cuda>="
    write(tmp_path, "/var/log/syslog", f"x {logged}10\nother\nx {logged}11\n")
    write(tmp_path, "/home/u/.docker/config.json", '{"currentContext": "desktop-linux"}')
    answers = {("docker", "version"): result("Docker version 27.0.1"), ("docker", "info"): result()}
    found = collect(tmp_path, monkeypatch, answers, HOME="/home/u")
    assert [(one.path, one.text) for one in found.errors] == [("/var/log/syslog", f"{logged}11")]
    assert found.engines[0].desktop is True


KEYS = st.sampled_from(["devices", "mounts", "hostPath", "path", "name", "a-b"])
SCALARS = st.from_regex(r"[a-zA-Z0-9/._=-]{1,12}", fullmatch=True).filter(
    lambda s: not s.startswith("-")
)
TREES = st.dictionaries(
    KEYS,
    st.recursive(
        SCALARS,
        lambda inner: (
            st.dictionaries(KEYS, inner, min_size=1, max_size=3)
            | st.lists(inner, min_size=1, max_size=3)
        ),
        max_leaves=10,
    ),
    min_size=1,
    max_size=3,
)


def block(value: Any, indent: int, flat_lists: bool) -> list[str]:
    """Block YAML of a tree, as a generator writes it."""
    lines: list[str] = []
    pad = " " * indent
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, str):
                lines.append(f"{pad}{key}: {item}")
            else:
                deeper = indent if isinstance(item, list) and flat_lists else indent + 2
                lines += [f"{pad}{key}:", *block(item, deeper, flat_lists)]
        return lines
    for item in value:
        inner = [item] if isinstance(item, str) else block(item, 0, flat_lists)
        lines.append(f"{pad}- {inner[0]}")
        lines += [f"{pad}  {line}" for line in inner[1:]]
    return lines


@ANYTHING
@given(TREES, st.booleans())
def test_block_yaml_reads_like_json(tree: dict[str, Any], flat_lists: bool) -> None:
    text = "\n".join(block(tree, 0, flat_lists))
    assert container_specs.read_yaml(text) == container_specs.read_spec(json.dumps(tree))


@ANYTHING
@given(st.text(alphabet=st.sampled_from("-: ab/\"'#{}[]\n"), max_size=200))
def test_specifications_of_anything(text: str) -> None:
    try:
        pairs = container_specs.read_spec(text)
    except ValueError:
        return
    container_specs.host_paths(pairs)
