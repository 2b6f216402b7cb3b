"""The stacks that envcheck comes with, and how they are found by the names that people give them."""

from __future__ import annotations

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from envcheck.checks.registry import all_checks
from envcheck.data import rows
from envcheck.exit_codes import UsageError
from envcheck.install.catalogue.load import find, load, names, seed
from envcheck.install.catalogue.pythons import Python


@pytest.mark.parametrize("name", names())
def test_a_stack_is_called_as_its_file_and_refers_to_what_there_is(name: str) -> None:
    stack = load(name)
    assert stack.name == name
    assert set(stack.otherwise) < set(names()) - {name}
    assert set(stack.must_pass) <= {check.code for check in all_checks()}
    assert all(release.source for release in stack.releases)
    newest = [Version(release.version) for release in stack.releases]
    assert newest == sorted(newest, reverse=True)


@pytest.mark.parametrize("name", names())
def test_a_constraint_binds_a_package_once_and_leaves_something(name: str) -> None:
    stack = load(name)
    for release in stack.releases:
        found = [Requirement(text) for text in release.constraints]
        twice = [(r.name, str(r.marker)) for r in found]
        assert len(twice) == len(set(twice)), release.release


@pytest.mark.parametrize(
    ("stack", "asked", "release"),
    [
        ("nvidia-tf1", "23.03", "23.03"),
        ("nvidia-tf1", "23.3", "23.03"),
        ("nvidia-tf1", "1.15.5+nv23.03", "23.03"),
        ("nvidia-tf1", "1.15.5+nv23.3", "23.03"),
        ("nvidia-tf1", "1.15.3+nv20.08", "20.08"),
        ("nvidia-tf1", "1.15.2", "20.06"),  # the only one of that version
        ("tensorflow", "2.21.0", "2.21.0"),
        ("tensorflow", "2.21", "2.21.0"),
        ("tensorflow", "v2.21.0", "2.21.0"),
        ("tensorflow", "2.22.0-rc0", "2.22.0rc0"),
    ],
)
def test_a_release_has_several_names(stack: str, asked: str, release: str) -> None:
    assert find(load(stack), asked).release == release


def test_an_unknown_stack_names_the_nearest_and_all() -> None:
    with pytest.raises(
        UsageError, match='no stack "tensorfow"; did you mean "tensorflow"'
    ) as caught:
        load("tensorfow")
    assert "nvidia-tf1, tensorflow, tensorflow-cpu, tensorflow1, torch" in caught.value.hint
    with pytest.raises(UsageError, match=r'^there is no stack "fastai"$'):
        load("fastai")


def test_every_python_gets_one_pip_exactly() -> None:
    table = rows("seeds", Python)
    for row in table:
        pins = [Requirement(text) for text in row.packages]
        assert "pip" in [pin.name for pin in pins]
        assert all(str(pin.specifier).startswith("==") for pin in pins)
        assert seed(row.version) == list(row.packages)
    assert [row.version for row in table] == [f"3.{minor}" for minor in range(6, 15)]
