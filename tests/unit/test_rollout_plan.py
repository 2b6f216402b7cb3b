"""Which machines of a roll-out get what, and why others get nothing: by their Snapshots and their Pythons."""

from __future__ import annotations

import msgspec
import pytest
from fit_machines import interpreter, machine, without_gpu

from envcheck.exit_codes import CouldNotLook
from envcheck.facts.host import Disk
from envcheck.fleet.rollout import planning
from envcheck.fleet.rollout.planning import Fitting, Surveyed
from envcheck.install.pythons.interpreter import Interpreter, tags
from envcheck.install.request import Request

OWN = ">=3.10"


def python(version: str = "3.11.7", glibc: str = "2.35", path: str = "") -> Interpreter:
    minor = "".join(version.split(".")[:2])
    abi = f"cpython-{minor}-x86_64-linux-gnu"
    found = interpreter(version, tags=tags(version, abi, "x86_64", glibc))
    return msgspec.structs.replace(found, path=path) if path else found


def planned(
    request: Request, *machines: Surveyed
) -> tuple[list[Fitting], dict[str, tuple[str, int]]]:
    fitting, left = planning.plan(request, machines, OWN, lambda stack: "")
    return fitting, {name: (one.reason, one.exit_code) for one in left for name in one.machines}


def test_machines_that_get_the_same_are_one_group_the_largest_first() -> None:
    machines = [
        Surveyed("gpu1", machine(driver="470.82.01"), [python()]),
        Surveyed("gpu2", machine(), [python(), python("3.8.18")]),
        Surveyed("gpu3", machine(), [python("3.11.2", glibc="2.31")]),
    ]
    fitting, left = planned(Request(stack="tensorflow"), *machines)
    assert fitting[0].group.machines == ["gpu2", "gpu3"]
    assert fitting[0].group.name == "envcheck_fit_1" and fitting[0].group.python == "3.11"
    assert {name for one in fitting for name in one.group.machines} | {*left} == {
        "gpu1",
        "gpu2",
        "gpu3",
    }


def test_the_lock_is_for_the_oldest_c_library_of_a_group() -> None:
    machines = [
        Surveyed("new", machine(), [python(glibc="2.39")]),
        Surveyed("old", machine(), [python(glibc="2.31")]),
    ]
    (fitting,), left = planned(Request(stack="tensorflow"), *machines)
    assert not left and fitting.choice.candidate.interpreter is not None
    assert "manylinux_2_31" in fitting.choice.candidate.interpreter.tags[1]
    assert "manylinux_2_31" in fitting.runners["3.11"].tags[1]


def test_who_cannot_have_it_is_left_out_with_the_reason_and_the_code() -> None:
    machines = [
        Surveyed("gone", None, [], "no route to it"),
        Surveyed("old", machine(), [python("3.8.18"), python("3.6.15")]),
        Surveyed("bare", machine(), []),
        Surveyed("cpu", without_gpu(), [python()]),
    ]
    fitting, left = planned(Request(stack="tensorflow"), *machines)
    assert fitting == []
    assert left["gone"] == ("no route to it", 4)
    assert left["old"] == (
        "envcheck itself needs Python 3.10 or newer there, and it has 3.6, 3.8",
        3,
    )
    assert left["bare"][0].endswith("it has none")
    assert "GPU" in left["cpu"][0] and left["cpu"][1] == 3


def test_a_full_home_is_left_out_before_anything_starts() -> None:
    def disk(free: int, *roles: str) -> dict[str, object]:
        disk = Disk(
            path="/home/a", roles=[*roles], mount_point="/home", free_mib=free, writable=True
        )
        return {"disks": [disk]}

    machines = [
        Surveyed("full", machine(**disk(20, "home", "cache")), [python()]),
        Surveyed("tight", machine(**disk(200, "home")), [python()]),
        Surveyed("well", machine(**disk(90_000, "home", "environments")), [python()]),
    ]
    (fitting,), left = planned(Request(stack="tensorflow"), *machines)
    assert fitting.group.machines == ["well"]
    assert left["full"][0].startswith("HOST-005: ") and "full" in left["full"][0]
    assert "200 MiB free" in left["tight"][0] and {code for _, code in left.values()} == {3}


def test_an_index_that_does_not_answer_ends_the_plan() -> None:
    """The default's other stack is asked for first."""

    def answers(stack: object) -> str:
        raise CouldNotLook("the index does not answer")

    machines = [Surveyed("a", machine(["A100"]), [python("3.10.2"), python("3.8.18")])]
    with pytest.raises(CouldNotLook):
        planning.plan(Request(), machines, OWN, answers)


def test_what_a_machine_says_of_its_pythons() -> None:
    shown = (
        '@envcheck{@{"version": "3.8.18", "implementation": "CPython", "architecture": "x86_64",'
        ' "abi": "cpython-38-x86_64-linux-gnu", "build": "x86_64-pc-linux-gnu", "debug": false,'
        ' "free_threaded": false, "path": "/usr/bin/python3.8", "in_environment": false,'
        ' "libc": "glibc 2.31", "has_venv": true}@}envcheck@'
    )
    pairs = [
        ("/usr/bin/python3", shown),
        ("/usr/bin/python3", shown),
        ("/opt/odd", "\x1b[2Jnot an answer"),
        ("/opt/cut", shown[:90]),
        ("relative", shown),
        ("/opt/\x1b[31mred", shown),
    ]
    (found,) = planning.interpreters("gpu1", pairs)
    assert (found.path, found.version, found.found_in) == ("/usr/bin/python3", "3.8.18", "gpu1")
    assert found.tags[1].startswith("cp38-cp38-manylinux_2_31")
    in_environment = shown.replace('"in_environment": false', '"in_environment": true')
    (found,) = planning.interpreters("gpu1", [("/home/me/venv/bin/python", in_environment)])
    assert found.path == "/usr/bin/python3.8"
