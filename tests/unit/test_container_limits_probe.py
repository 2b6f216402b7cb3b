"""What the containers probe says an engine may do; and a look into a container that was captured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_containers_probe import write

from envcheck import json_text
from envcheck.checks.engine import diagnose
from envcheck.collector.containers import limits as container_limits
from envcheck.collector.facts import Facts
from envcheck.collector.runtime.context import Context
from envcheck.facts import snapshot as snapshots
from envcheck.reports.model import build

ALL = "CapEff:\t000001ffffffffff\n"
NO_RESOURCE = "CapEff:\t000001fffeffffff\n"


def put(root: Path, name: str, **facts: object) -> dict[str, object]:
    found = Facts()
    for field, value in {"name": name, "rootless": False, "remote": False, **facts}.items():
        found.put(field, value)
    container_limits.put(found, Context({"PATH": "/usr/bin"}, root=str(root)))
    return found.values


@pytest.mark.parametrize(("status", "may"), [(ALL, True), (NO_RESOURCE, False)])
def test_podman_may_what_its_caller_may(tmp_path: Path, status: str, may: bool) -> None:
    write(tmp_path, "/proc/self/status", "Name:\tx\n" + status)
    assert put(tmp_path, "podman")["raises_limits"] is may


def test_docker_may_what_its_server_may(tmp_path: Path) -> None:
    write(tmp_path, "/proc/self/status", ALL)
    write(tmp_path, "/proc/12/comm", "sh\n")
    write(tmp_path, "/proc/77/comm", "dockerd\n")
    write(tmp_path, "/proc/77/status", NO_RESOURCE)
    assert put(tmp_path, "docker")["raises_limits"] is False


def test_init_programs(tmp_path: Path) -> None:
    write(tmp_path, "/proc/self/status", ALL)
    assert put(tmp_path, "podman")["init_path"]["unavailable"] == "absent"  # type: ignore[index]
    write(tmp_path, "/usr/libexec/podman/catatonit")
    write(tmp_path, "/usr/bin/docker-init", mode=0o755)
    assert put(tmp_path, "podman")["init_path"] == "/usr/libexec/podman/catatonit"
    assert put(tmp_path, "docker")["init_path"] == "/usr/bin/docker-init"


@pytest.mark.parametrize("table", ["containers", "engine"])
def test_an_init_program_that_containers_conf_names(tmp_path: Path, table: str) -> None:
    write(tmp_path, "/proc/self/status", ALL)
    write(tmp_path, "/etc/containers/containers.conf", f'[{table}]\ninit_path = "/opt/tini"\n')
    write(tmp_path, "/usr/libexec/podman/catatonit")
    missing = put(tmp_path, "podman")["init_path"]
    assert missing == {"unavailable": "absent", "detail": "the settings name /opt/tini"}
    write(tmp_path, "/opt/tini")
    assert put(tmp_path, "podman")["init_path"] == "/opt/tini"
    write(tmp_path, "/etc/containers/containers.conf.d/odd.conf", f"[{table}]\ninit_path = 5\n")
    assert put(tmp_path, "podman")["init_path"] == "/opt/tini"


# `envcheck collect --target image:localhost/tensorflow-standin:23.03-tf1-py3`: a stand-in for NVIDIA's image,
# by podman 4.3 on a Debian without a GPU, a Debian inside.
FILE = Path(__file__).with_name("container_look.json")


def captured() -> snapshots.Snapshot:
    return snapshots.load(FILE.read_bytes())


def test_it_replays_to_the_same_diagnosis_every_time() -> None:
    once, again = captured(), snapshots.load(snapshots.dump(captured()))
    reports = [json_text.render(build(one, diagnose(one))) for one in (once, again)]
    assert reports[0] == reports[1]
    assert json.loads(reports[0])["target"]["location"].startswith("image:localhost/tensorflow-")
