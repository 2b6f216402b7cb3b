"""protobuf or numpy that does not fit a framework: in which direction, and a remedy that changes something.

The words marked "observed" are those of real imports, and so are the versions and requirements beside them.
"""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.version import Version
from targets import dist, good_snapshot, judge, not_imported, packages, tensorflow

from envcheck.checks.engine import diagnose
from envcheck.findings.model import Finding

# Requires-Dist of tensorflow-cpu 2.18.0 and 2.20.0, as their wheels have them.
TF_2_18 = [
    "protobuf !=4.21.0,!=4.21.1,!=4.21.2,!=4.21.3,!=4.21.4,!=4.21.5,<6.0.0dev,>=3.20.3",
    "numpy <2.1.0,>=1.26.0",
]
TF_2_20 = ["protobuf>=5.28.0", "numpy>=1.26.0"]
TF_1 = ["protobuf>=3.6.1", "numpy<2.0,>=1.16.0"]

NO_BUILDER = (
    "ImportError: cannot import name 'builder' from 'google.protobuf.internal'"
    " (/venv/lib/python3.11/site-packages/google/protobuf/internal/__init__.py)"
)
NO_RUNTIME_VERSION = (
    "ImportError: cannot import name 'runtime_version' from 'google.protobuf'"
    " (/venv/lib/python3.11/site-packages/google/protobuf/__init__.py)"
)
DESCRIPTORS = (
    "TypeError: Descriptors cannot not be created directly.\nIf this call came from a _pb2.py file"
)
NO_DTYPES = "AttributeError: module 'numpy' has no attribute 'dtypes'"


def diagnosed(words: str, requires: list[str], **versions: str) -> Finding:
    found = packages(
        dist("tensorflow", "2.18.0", requires=requires),
        *(dist(name, version) for name, version in versions.items()),
    )
    snapshot = good_snapshot(tensorflow=not_imported(words=words), packages=found)
    (finding,) = judge(snapshot, "FRM-001", "framework").findings
    return finding


def wanted(finding: Finding) -> Requirement:
    """What the remedy's command would have pip install."""
    assert finding.remedy is not None
    (command,) = finding.remedy.commands
    return Requirement(shlex.split(command)[4])


@pytest.mark.parametrize(
    ("words", "requires", "package", "has", "direction"),
    [
        (NO_BUILDER, TF_2_18, "protobuf", "3.19.6", "old"),  # observed
        (NO_RUNTIME_VERSION, TF_2_20, "protobuf", "3.20.3", "old"),  # observed
        (NO_BUILDER, ["protobuf<5,>=3.19.0"], "protobuf", "3.19.6", "old"),
        (NO_BUILDER, [], "protobuf", "3.19.6", "old"),
        (DESCRIPTORS, TF_1, "protobuf", "4.24.4", "new"),  # observed
        (NO_DTYPES, TF_2_20, "numpy", "1.23.5", "old"),  # observed
        (NO_DTYPES, [], "numpy", "1.23.5", "old"),
        ("No module named 'numpy._core'", [], "numpy", "1.26.4", "old"),
        ("module 'numpy' has no attribute 'object'.", TF_1, "numpy", "1.24.4", "new"),
        ("module 'numpy' has no attribute 'bool'.", TF_2_18, "numpy", "1.24.4", "old"),
        ("numpy.core.multiarray failed to import", [], "numpy", "2.1.0", "new"),
        ("numpy.core.multiarray failed to import", TF_2_18, "numpy", "1.22.0", "old"),
        ("numpy.dtype size changed", ["numpy>=2"], "numpy", "1.26.4", "old"),
    ],
)
def test_the_direction_is_right_and_the_remedy_changes_something(
    words: str, requires: list[str], package: str, has: str, direction: str
) -> None:
    finding = diagnosed(words, requires, **{package: has})
    assert f"does not import: {package} {has} is too {direction} for it" in finding.message
    asked = wanted(finding)
    assert asked.name == package and not asked.specifier.contains(Version(has))
    assert asked.specifier.contains("99") is (
        direction == "old" and "<" not in str(asked.specifier)
    )
    for one in map(Requirement, requires):
        if one.name == package and not one.specifier.contains(Version(has)):
            assert asked.specifier == one.specifier  # the very command that PKG-009 prints


@given(words=st.text(max_size=200), has=st.text(max_size=20))
@settings(max_examples=50, deadline=None)
def test_foreign_words_and_versions_break_nothing(words: str, has: str) -> None:
    for line in (f"module 'numpy' has no attribute '{words}'", f"gencode {words} runtime 5.1"):
        assert diagnosed(line, [], numpy=has, protobuf=has).level == "fail"


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        ("A module that was compiled using NumPy 1.x cannot be run in", "warn"),
        ("AttributeError: _ARRAY_API not found", "warn"),
        ("cuda: ok", "pass"),
    ],
)
def test_an_import_that_succeeds_may_say_that_numpy_is_too_new(line: str, outcome: str) -> None:
    found = packages(dist("tensorflow", "2.18.0"), dist("numpy", "2.0.0"))
    snapshot = good_snapshot(tensorflow=tensorflow(log=[line]), packages=found)
    result = judge(snapshot, "FRM-001", "framework")
    assert result.outcome == outcome
    assert all("'numpy<2'" in one.remedy.commands[0] for one in result.findings if one.remedy)


@pytest.mark.parametrize(
    ("words", "package", "has", "wanted_now"),
    [
        ("module 'ml_dtypes' has no attribute 'float8_e4m3b11'", "ml-dtypes", "0.3.0", "<0.3"),
        ("module 'ml_dtypes' has no attribute 'float4_e2m1fn'", "ml-dtypes", "0.4.1", ">=0.5.0"),
        ("module 'ml_dtypes' has no attribute 'float8_e4m3'", "ml-dtypes", "0.4.1", ">=0.5.0"),
        ("cannot import name 'ParamSpec' from 'typing_extensions'", "typing-extensions", "3.7.4.3",
         ">=3.10"),
        ("cannot import name 'TypeIs' from 'typing_extensions'", "typing-extensions", "4.9.0", ">=4.10"),
    ],
)  # fmt: skip
def test_names_that_a_release_has_and_another_has_not(
    words: str, package: str, has: str, wanted_now: str
) -> None:
    finding = diagnosed(f"AttributeError: {words}", [], **{package: has})
    assert str(wanted(finding)) == f"{package}{wanted_now}" and has in finding.message


@pytest.mark.parametrize(("requires", "root"), [([], ""), (["numpy>=1.26"], "PKG-009")])
def test_a_stated_requirement_explains_the_failed_import(requires: list[str], root: str) -> None:
    found = packages(dist("tensorflow", "2.18.0", requires=requires), dist("numpy", "1.22.4"))
    snapshot = good_snapshot(tensorflow=not_imported(words=NO_DTYPES), packages=found)
    results = {one.code: one for one in diagnose(snapshot).results}
    assert results["FRM-001"].consequence_of == root


@pytest.mark.parametrize(
    ("words", "unfit"),
    [
        ("module 'gast' has no attribute 'Index'", True),
        ("cannot import name 'x' from 'gast.unparser' (/v/gast/unparser.py)", True),
        ("partially initialized module 'gast' has no attribute 'Index'", False),
        ("module 'tensorflow' has no attribute 'io'", False),
        ("module 'flask' has no attribute 'x'", False),  # not installed
    ],
)
def test_any_package_that_lacks_a_name_is_unfit(words: str, unfit: bool) -> None:
    finding = diagnosed(f"AttributeError: {words}", [], gast="0.7.0")
    assert (finding.cause.key == "package-unfit") is unfit
    assert not unfit or "gast 0.7.0" in finding.message


@pytest.mark.parametrize(
    ("words", "cause", "says", "does"),
    [
        (
            "ImportError: libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_4, version"
            " libnvJitLink.so.12",
            "library-of-another-version",
            "nvidia-nvjitlink-cu12 12.1.105",
            "nvidia-nvjitlink-cu12==12.4.127",
        ),
        ("AttributeError: module 'inspect' has no attribute 'getargspec'", "another-python-needed",
         "it needs Python <3.11", ""),
        (
            "ImportError: /lib64/libstdc++.so.6: version `GLIBCXX_3.4.29' not found (required by x)",
            "libstdcxx-too-old",
            "/lib64/libstdc++.so.6 lacks GLIBCXX_3.4.29",
            "strings /lib64/libstdc++.so.6",
        ),
        ("ImportError: libtorch_cpu.so: cannot enable executable stack as shared object requires",
         "executable-stack", "libtorch_cpu.so asks for an executable stack", "glibc.rtld.execstack=2"),
    ],
)  # fmt: skip
def test_errors_are_traced_to_what_is_behind_them(
    words: str, cause: str, says: str, does: str
) -> None:
    requires = ["nvidia-nvjitlink-cu12==12.4.127"]
    found = packages(
        dist("tensorflow", "2.18.0", requires=requires), dist("nvidia-nvjitlink-cu12", "12.1.105")
    )
    snapshot = good_snapshot(tensorflow=not_imported(words=words), packages=found)
    (finding,) = judge(snapshot, "FRM-001", "framework").findings
    assert (finding.cause.key, finding.remedy is not None) == (cause, True)
    assert says in finding.message and finding.remedy
    assert does in "\n".join(finding.remedy.commands)
