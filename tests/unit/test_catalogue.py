"""The stacks that envcheck comes with, as such."""

from __future__ import annotations

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from envcheck.checks.registry import all_checks
from envcheck.install.catalogue.load import load, names


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
