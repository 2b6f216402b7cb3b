"""Which interpreter a release gets, and which wheels an interpreter takes."""

from __future__ import annotations

from typing import Any

import fit_machines as m
import pytest

from envcheck.install.fit.fit import fit
from envcheck.install.fit.models import Candidate
from envcheck.install.pythons.interpreter import Interpreter, asked_version, tags
from envcheck.install.request import Request


def candidate(
    release: str, found: list[Interpreter], obtainable: tuple[str, ...] = (), **wish: Any
) -> Candidate:
    stack = m.tensorflow() if release.startswith("2.") else m.nvidia_tf1()
    return m.one(fit(stack, m.machine(), found, obtainable, Request(**wish)), release)


def test_the_newest_python_with_a_wheel_is_taken_of_those_that_are_there() -> None:
    found = [m.interpreter(version) for version in ("3.8.18", "3.14.0", "3.10.1", "3.9.2")]
    taken = candidate("2.20.0", found, ("3.13",)).interpreter
    assert taken is not None and taken.version == "3.10.1"


def test_of_one_version_the_first_that_has_venv() -> None:
    first = m.interpreter("3.11.2", path="/usr/bin/python3", has_venv=False)
    second = m.interpreter("3.11.7", path="/opt/python3")
    third = m.interpreter("3.11.9", path="/opt/other")
    assert candidate("2.20.0", [first, second, third]).interpreter == second
    assert candidate("2.20.0", [first]).interpreter == first


def test_an_old_python_without_venv_is_noted() -> None:
    bare = candidate("23.03", [m.interpreter("3.8.10", has_venv=False)])
    assert bare.fits and any("python3.8-venv" in note for note in bare.notes)
    newer = candidate("2.20.0", [m.interpreter("3.11.2", has_venv=False)])
    assert not any("venv" in note for note in newer.notes)


def test_a_python_that_is_not_there_is_got_where_uv_has_it() -> None:
    got = candidate("23.03", [m.interpreter("3.11.7")], ("3.13", "3.8"))
    assert got.fits and got.python_to_get == "3.8" and got.interpreter is None
    assert "No Python 3.8 is installed: uv downloads it." in got.notes
    offline = candidate("23.03", [m.interpreter("3.11.7")], ("3.8",), offline="/bundle")
    assert m.kinds(offline) == ["python"]


def test_what_is_there_is_told_where_none_fits() -> None:
    refused = candidate("20.10", [m.interpreter("3.12.1"), m.interpreter("3.9.9")], ("3.8",))
    assert m.sentence(refused, "python") == "needs Python 3.6, and this machine has 3.9 and 3.12"
    assert m.sentence(candidate("20.10", []), "python") == (
        "needs Python 3.6, and this machine has none"
    )


@pytest.mark.parametrize(
    ("obtainable", "wish", "way_out"),
    [
        (("3.13", "3.8"), {}, "conda create --yes --prefix ~/python3.6 python=3.6"),
        (("3.13", "3.8"), {}, "pyenv install 3.6"),
        ((), {}, "uv would get Python 3.6, but its settings forbid that"),
        (("3.8",), {"offline": "/bundle"}, "--python /path/to/python3.6"),
        (("3.8",), {"python": "3.9"}, "without --python, envcheck looks for one that fits"),
    ],
)
def test_the_way_to_a_python_that_uv_does_not_get(
    obtainable: tuple[str, ...], wish: dict[str, str], way_out: str
) -> None:
    judged = candidate("20.10", [m.interpreter("3.9.9")], obtainable, **wish)
    (hint,) = [refusal.hint for refusal in judged.refusals if refusal.kind == "python"]
    assert way_out in hint


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"implementation": "PyPy"}, "/usr/bin/python3.11 is PyPy"),
        ({"free_threaded": True}, "/usr/bin/python3.11 is free-threaded"),
        ({"architecture": "i686"}, "/usr/bin/python3.11 is built for i686"),
        ({"libc": "musl"}, "/usr/bin/python3.11 is built for musl"),
        ({"version": "3.11.0rc2"}, "/usr/bin/python3.11 is the pre-release 3.11.0rc2"),
    ],
)
def test_an_interpreter_that_takes_no_such_wheel(changes: dict[str, Any], words: str) -> None:
    refused = candidate("2.20.0", [m.interpreter(**changes)])
    assert m.sentence(refused, "python").endswith(words)


def test_python_narrows_it() -> None:
    found = [m.interpreter("3.12.1"), m.interpreter("3.10.4")]
    taken = candidate("2.20.0", found, python="3.10").interpreter
    assert taken is not None and taken.version == "3.10.4"
    assert candidate("2.20.0", found, ("3.13",), python="3.13").python_to_get == "3.13"
    exact = candidate("2.20.0", found, ("3.13",), python="3.13.1")
    assert m.sentence(exact, "python").endswith("and --python 3.13.1 is not here")
    wrong = candidate("23.03", found, ("3.8",), python="3.10")
    assert m.sentence(wrong, "python") == "needs Python 3.8, and --python 3.10 is 3.10.4"


def test_a_path_is_taken_as_it_is_or_refused() -> None:
    named = m.interpreter("3.10.4", path="/opt/py/bin/python", found_in="--python")
    assert candidate("2.20.0", [named], python="/opt/py/bin/python").interpreter == named
    wrong = candidate("23.03", [named], ("3.8",), python="/opt/py/bin/python")
    assert m.kinds(wrong) == ["python"] and not wrong.python_to_get


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("3.8", "3.8"),
        ("python3.8", "3.8"),
        ("3", "3"),
        ("3.8.18", "3.8.18"),
        ("pypy3", ""),
        ("", ""),
    ],
)
def test_versions_as_users_write_them(text: str, version: str) -> None:
    assert asked_version(text) == version


def test_3_1_is_not_3_11() -> None:
    assert not m.interpreter("3.11.7").matches("3.1")
    assert m.interpreter("3.11.7").matches("3.11") and m.interpreter("3.11.7").matches("3")


def test_tags_are_the_interpreter_s_own_best_first() -> None:
    found = tags("3.6.15", "cpython-36m-x86_64-linux-gnu", "x86_64", "2.27")
    assert found[:2] == ["cp36-cp36m-linux_x86_64", "cp36-cp36m-manylinux_2_27_x86_64"]
    assert "cp36-cp36m-manylinux2014_x86_64" in found and "py3-none-any" in found
    assert "cp35-abi3-manylinux1_x86_64" in found
    assert "cp36-cp36m-manylinux_2_28_x86_64" not in found
    order = [
        found.index(f"cp36-cp36m-{end}") for end in ("manylinux2014_x86_64", "manylinux1_x86_64")
    ]
    assert order == sorted(order)


def test_tags_of_other_builds() -> None:
    threads = tags("3.13.0", "cpython-313t-x86_64-linux-gnu", "x86_64", "2.36")
    assert threads[0].startswith("cp313-cp313t-") and not any("-abi3-" in tag for tag in threads)
    debug = tags("3.12.1", "cpython-312d-x86_64-linux-gnu", "x86_64", "2.36", debug=True)
    assert debug[0].startswith("cp312-cp312d-") and "cp312-cp312-linux_x86_64" in debug
    arm = tags("3.11.7", "cpython-311-aarch64-linux-gnu", "aarch64", "2.36")
    assert "cp311-cp311-manylinux2014_aarch64" in arm and not any("manylinux1" in t for t in arm)
    musl = tags("3.11.7", "cpython-311-x86_64-linux-musl", "x86_64", "")
    assert not any("manylinux" in tag for tag in musl) and "py3-none-any" in musl
    assert tags("3.9.1", "pypy39-pp73-x86_64-linux-gnu", "x86_64", "2.36") == []


def test_the_tags_are_those_of_packaging_for_this_very_interpreter() -> None:
    """Ours are made from what an interpreter says; packaging looks at the process it runs in."""
    import os
    import platform
    import sysconfig

    from packaging.tags import sys_tags

    glibc = (os.confstr("CS_GNU_LIBC_VERSION") or "").removeprefix("glibc ")
    ours = tags(
        platform.python_version(), sysconfig.get_config_var("SOABI"), platform.machine(), glibc
    )
    assert ours == [str(tag) for tag in sys_tags()]
