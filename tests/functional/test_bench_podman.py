"""envcheck bench in containers of a real podman: its rows are run inside, by the same collector."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator

import pytest
from podman import PodmanWorld
from processes import PATIENCE, begun, lines
from standin_bench import Bench

pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.fixture(scope="module")
def bench(podman_world: PodmanWorld, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    made = Bench(tmp_path_factory.mktemp("bench"))
    made.variables = podman_world.variables
    return made


@pytest.fixture
def running(podman_world: PodmanWorld) -> Iterator[str]:
    name = "envcheck-test-benches"
    podman_world.podman("run", "-d", "--name", name, podman_world.image("torch"), "sleep", "600")
    yield name
    podman_world.podman("rm", "--force", "--time", "0", name)


ROWS = ({"name": "a"}, {"name": "b"})


def test_rows_are_run_inside_an_image(podman_world: PodmanWorld, bench: Bench) -> None:
    where = f"image:{podman_world.image('torch')}"
    rows = bench.rows(*ROWS, where=where)
    assert bench.bench["inside"] == where
    assert all(run["outcome"] == "ok" for run in rows.values()), rows
    assert {event["phase"] for event in bench.events} >= {"import", "measure"}


@pytest.mark.parametrize("kind", ["image", "container"])
def test_the_first_ctrl_c_keeps_what_is_done_inside(
    podman_world: PodmanWorld, bench: Bench, running: str, kind: str
) -> None:
    where = f"image:{podman_world.image('torch')}" if kind == "image" else f"container:{running}"
    argv = bench.argv({"name": "a"}, {"name": "b"}, repetitions=200, where=where)
    argv[2] = argv[2].replace(
        "events.append", "lambda one: print(one, file=sys.stderr, flush=True)"
    )
    process = begun(argv, cwd=bench.root, env=bench.environment(), start_new_session=True)  # fmt: skip
    for line in lines(process, process.stderr):
        if b"'measure'" in line and b"'round': 3" in line:
            break
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors.decode()
    facts = json.loads(output)["bench"]["facts"]
    assert facts["interrupted"] and facts["inside"] == where
    assert facts["rows"][0]["outcome"] == "interrupted" and facts["rows"][0]["repetitions"]
