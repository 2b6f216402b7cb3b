"""Looking into a container, through an engine that is a shell script: what comes back, and what does not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from processes import ran
from pythons import heavy, need

from envcheck import collection
from envcheck.collection import Collected, Inside
from envcheck.exit_codes import UsageError
from envcheck.facts.snapshot import TARGET_SECTIONS

REF = "image:registry.test/tf:1"


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    """What the stand-in engine's PATH consists of; Python 3 is there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "cat", "sleep", "head"):
        (folder / name).symlink_to(str(shutil.which(name)))
    return folder


def pythons(engine: Path, minor: int) -> None:
    """No link: a Python finds its library by where its file lies."""
    asked = [
        need(minor, 3),
        "-c",
        "import sys; print(sys.executable)",
    ]  # behind pyenv's scripts
    real = ran(asked, text=True, check=True).stdout.strip()
    script = engine / "python3"
    script.write_text(f'#!/bin/sh\nexec {real} "$@"\n')
    script.chmod(0o755)


def look(
    engine: Path,
    text: str = 'exec "$@"',
    only: tuple[str, ...] = ("host", "pci", "nvml", "cuda", *TARGET_SECTIONS),
    **options: object,
) -> Collected:
    """text: the engine's script, which gets the command as its arguments. only: of the probes."""
    script = engine.parent / "engine"
    script.write_text(f"#!/bin/sh\n{text}\n")
    script.chmod(0o755)
    variables = {"PATH": str(engine), "HOME": "/home/worker-b", "NVIDIA_VISIBLE_DEVICES": "all"}
    inside = Inside(
        location=REF,
        argv=[str(script)],
        environment=variables,
        ending=["/bin/sh", "-c", f"echo ended > {engine.parent}/ended"],
    )
    return collection.collect(inside=inside, only=only, **options)  # type: ignore[arg-type]


def refused(engine: Path, text: str = 'exec "$@"') -> str:
    with pytest.raises(UsageError) as caught:
        look(engine, text)
    assert str(caught.value).startswith(f"{REF}: ")
    return str(caught.value).removeprefix(f"{REF}: ")


@pytest.mark.parametrize("minor", [6, *heavy(8, 10), 12])
def test_any_python_from_3_6_on_looks_from_inside(engine: Path, minor: int) -> None:
    pythons(engine, minor)
    target = look(engine).snapshot.target
    assert target is not None and target.interpreter is not None and target.interpreter.facts
    assert target.interpreter.facts.version.startswith(f"3.{minor}.")
    assert target.location == REF and target.collector.python
    for probe in (target.packages, target.environment, target.loader, target.host, target.cuda):
        assert probe is not None and probe.outcome == "ok", probe
    assert target.environment is not None and target.environment.facts is not None
    assert target.environment.facts.variables == {"NVIDIA_VISIBLE_DEVICES": "all"}
    assert target.pci is None and target.containers is None, "the host's own business"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("echo no licence >&2; exit 3", "its entrypoint ended with status 3 and did not run the command"),
        ("echo hello; exit 0", "its entrypoint ended with status 0 and did not run the command"),
        ("echo 'exec /bin/sh: exec format error' >&2; exit 1", "another processor architecture"),
        ("echo 'Error: short-name: image not known' >&2; exit 125", "does not have that image"),
        ("echo 'Error: No such container: x' >&2; exit 1", "knows no such container"),
        ("echo 'Error: container is not running' >&2; exit 125", "the container is not running"),
        ("echo 'exec: \"sh\": executable file not found in $PATH: unknown' >&2; exit 127",
         "no shell (sh) is on its PATH"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_container_itself(engine: Path, text: str, words: str) -> None:
    pythons(engine, 11)
    assert words in refused(engine, text)


def collector(tmp_path: Path, setup: str, **inside: object) -> subprocess.CompletedProcess[str]:
    """The collector looks into a container. setup: Python that runs before. inside: of its file."""
    given = {"location": REF, "environment": None, "script": os.devnull, **inside}
    (tmp_path / "inside.json").write_text(json.dumps(given))
    request = json.dumps({"inside": str(tmp_path / "inside.json"), "kernels": None})
    code = (
        f"import sys\nfrom envcheck.collector import inside, main, run\n{setup}\n"
        'sys.exit(main.main(["--request", sys.argv[1]]))\n'
    )
    return ran([sys.executable, "-c", code, request], text=True)


def test_an_entrypoint_that_is_a_service_is_not_waited_for(tmp_path: Path) -> None:
    service = ["/bin/sh", "-c", "echo a banner; exec sleep 60"]
    done = collector(tmp_path, "inside.SILENCE = 0.5", argv=service)
    assert done.returncode == 2
    assert "its entrypoint has not started the command within 0.5 s" in done.stderr


def test_an_engine_that_hangs_is_killed_and_its_container_removed(tmp_path: Path) -> None:
    hanging = f"trap '' TERM; echo $$ > {tmp_path}/pid; while :; do sleep 1; done"
    done = collector(
        tmp_path,
        "inside.DEADLINE, inside.GRACE = 2.0, 0.5",
        argv=["/bin/sh", "-c", hanging],
        ending=["/bin/sh", "-c", f"echo ended > {tmp_path}/ended"],
    )
    assert done.returncode == 0, done.stderr
    snapshot = json.loads(done.stdout)
    assert snapshot["machine"]["host"]["outcome"] == "ok"
    interpreter = snapshot["target"]["interpreter"]
    assert interpreter["outcome"] == "timeout" and "no answer from inside" in interpreter["reason"]
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    assert (tmp_path / "ended").read_text() == "ended\n"


def test_both_documents_are_redacted_with_one_set_of_tokens(engine: Path) -> None:
    pythons(engine, 11)
    collected = look(
        engine, 'export PYTHONPATH=/home/worker-b/lib CUDA_CACHE_PATH=/home/worker-b/.nv; exec "$@"'
    )
    target = collected.snapshot.target
    assert target is not None and target.host is not None and target.host.facts is not None
    machine = collected.snapshot.machine.host
    assert machine is not None and machine.facts is not None
    assert machine.facts.hostname == target.host.facts.hostname, "the same host, and one token"
    assert target.environment is not None and target.environment.facts is not None
    path = target.environment.facts.variables["PYTHONPATH"]
    assert "worker-b" not in path and collected.restore(path) == "/home/worker-b/lib"
