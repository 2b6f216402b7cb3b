"""Checks on the target's distributions: each with a bad, a good and a missing set."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from targets import (
    ABSENT,
    PYTHON,
    SITE,
    dist,
    error,
    failed,
    good_libraries,
    good_packages,
    good_snapshot,
    gpu,
    interpreter,
    judge,
    machine,
    not_imported,
    on_bare_machine,
    packages,
    replace,
    system_library,
    tensorflow,
)

from envcheck.checks.engine import diagnose
from envcheck.checks.packages.requirements import marker_environment, requirements, unmet
from envcheck.checks.packages.wheel_tags import System, misfit
from envcheck.facts.snapshot import Snapshot
from envcheck.facts.target import Distribution, HorovodExtension, Loader
from envcheck.findings.model import CheckResult

CODES = [f"PKG-{number:03d}" for number in range(1, 16)]


def on(code: str, *distributions: Distribution, **probes: Any) -> CheckResult:
    """The check on a target with these distributions, whose TensorFlow does not import."""
    probes = {"tensorflow": not_imported(), "packages": packages(*distributions)} | probes
    return judge(good_snapshot(**probes), code, "packages")


@pytest.mark.parametrize("code", CODES)
def test_a_healthy_target_has_no_finding(code: str) -> None:
    assert judge(good_snapshot(), code, "packages").outcome in ("pass", "skipped")


@pytest.mark.parametrize("code", CODES)
def test_without_the_facts_it_is_skipped(code: str) -> None:
    assert judge(good_snapshot(packages=None), code, "packages").outcome == "skipped"


@pytest.mark.parametrize("code", CODES)
def test_a_probe_that_crashed_is_no_pass(code: str) -> None:
    assert judge(good_snapshot(packages=failed()), code, "packages").outcome == "could-not-run"


@pytest.mark.parametrize("code", CODES)
def test_an_empty_environment_has_no_finding(code: str) -> None:
    assert on(code).findings == []


# PKG-001


def test_missing_code_fails_and_missing_byte_code_does_not() -> None:
    library = "nvidia/cudnn/lib/libcudnn.so.9"
    broken = dist("nvidia-cudnn-cu12", "9.3.0.75", missing=[library], missing_count=1)
    result = on("PKG-001", broken)
    assert result.outcome == "fail" and library in result.findings[0].message
    remedy = result.findings[0].remedy
    assert remedy is not None
    assert remedy.commands == [
        f"'{PYTHON}' -m pip install nvidia-cudnn-cu12==9.3.0.75 --force-reinstall --no-deps"
    ]
    harmless = [
        "a/__pycache__/b.pyc",
        "tensorflow/include/x.h",
        "numpy/tests/test_a.py",
        "d/README.md",
    ]
    assert on("PKG-001", dist("numpy", "2.1", missing=harmless, missing_count=4)).outcome == "pass"
    assert (
        on("PKG-001", dist("numpy", "2.1", missing=["bin/f2py"], missing_count=1)).outcome == "warn"
    )


def test_without_any_record_nothing_is_said() -> None:
    assert on("PKG-001", dist("numpy", "2.1", files=ABSENT)).outcome == "skipped"


# PKG-002


@pytest.mark.parametrize(
    ("name", "version", "outcome"),
    [
        ("nvidia-tensorflow", "0.0.1.dev5", "fail"),
        ("nvidia-tensorrt", "99.0.0", "fail"),
        ("nvidia-tensorflow", "1.15.5+nv23.3", "pass"),
        ("nvidia-tensorflow", "no version", "pass"),
    ],
)
def test_placeholders(name: str, version: str, outcome: str) -> None:
    assert on("PKG-002", dist(name, version)).outcome == outcome


# PKG-003


def test_two_tensorflows_of_different_versions_fail() -> None:
    result = on("PKG-003", dist("tensorflow", "2.19.1"), dist("tensorflow-cpu", "2.17.0"))
    assert result.outcome == "fail"
    remedy = result.findings[0].remedy
    assert remedy is not None
    (command,) = remedy.commands
    first, uninstall, last = command.split(" && ")
    assert "install tensorflow==2.19.1" in first and "install tensorflow==2.19.1" in last
    assert uninstall.endswith("uninstall -y tensorflow-cpu")
    nvidias = on(
        "PKG-003", dist("tensorflow", "2.19.1"), dist("nvidia-tensorflow", "1.15.5+nv23.3")
    )
    remedy = nvidias.findings[0].remedy
    assert remedy is not None and "install nvidia-tensorflow==1.15.5+nv23.3" in remedy.commands[0]


def test_two_names_of_one_build_are_a_warning() -> None:
    result = on(
        "PKG-003", dist("tensorflow", "1.15.5+nv23.3"), dist("tensorflow-gpu", "1.15.5+nv23.03")
    )
    assert result.outcome == "warn"


def test_a_shell_around_another_tensorflow_is_one_installation() -> None:
    shell = dist(
        "tensorflow",
        "2.12.0",
        requires=["tensorflow-cpu-aws==2.12.0 ; platform_machine=='aarch64'"],
    )
    assert on("PKG-003", shell, dist("tensorflow_cpu_aws", "2.12.0")).outcome == "pass"


# PKG-004


def test_a_shadowed_framework_is_warned_of_and_debians_numpy_is_not() -> None:
    user = "<home-1>/.local/lib/python3.11/site-packages"
    used = dist("tensorflow", "2.19.1", location=user)
    hidden = dist("tensorflow", "2.17.0", shadowed=True)
    (finding,) = on("PKG-004", used, hidden).findings
    assert "2.17.0" in finding.message and user in finding.message
    both = [
        dist("numpy", "2.1"),
        dist("numpy", "1.26", location="/usr/lib/python3/dist-packages", shadowed=True),
    ]
    assert on("PKG-004", *both).outcome == "pass"


def test_two_metadata_in_one_directory_are_half_an_uninstallation() -> None:
    (finding,) = on(
        "PKG-004", dist("torch", "2.5.0"), dist("torch", "2.4.0", shadowed=True)
    ).findings
    assert finding.cause.key == "installed-twice"


# PKG-005, PKG-014


def test_protobuf_too_new_for_tensorflow_1() -> None:
    old = dist("tensorflow", "1.15.5")
    result = on("PKG-005", old, dist("protobuf", "4.24.4"))
    assert result.outcome == "fail"
    remedy = result.findings[0].remedy
    assert remedy is not None and "'protobuf<3.21'" in remedy.commands[0]
    assert on("PKG-005", old, dist("protobuf", "3.20.3")).outcome == "pass"
    assert (
        on("PKG-005", dist("tensorflow", "2.19.1"), dist("protobuf", "5.29")).outcome == "skipped"
    )


def test_what_was_seen_to_import_is_not_contradicted() -> None:
    works = tensorflow(version="1.15.5")
    pair = (
        dist("nvidia-tensorflow", "1.15.5+nv23.3"),
        dist("protobuf", "4.24.4"),
        dist("numpy", "1.26"),
    )
    assert on("PKG-005", *pair, tensorflow=works).outcome == "pass"
    assert on("PKG-014", *pair, tensorflow=works).outcome == "pass"


@pytest.mark.parametrize(
    ("tensorflow_version", "numpy_version", "outcome"),
    [
        ("1.15.5", "1.24.0", "fail"),
        ("1.15.5", "1.21.6", "pass"),
        ("2.15.1", "2.0.0", "fail"),
        ("2.17.1", "2.0.0rc1", "pass"),
        ("2.17.1", "1.26.4", "pass"),
        ("2.18.0", "2.0.2", "pass"),
        ("odd", "2.0.2", "skipped"),
        ("2.19.1", "3.0.0", "skipped"),
        ("2.19.1", "odd", "skipped"),
    ],
)
def test_numpy_against_tensorflow(
    tensorflow_version: str, numpy_version: str, outcome: str
) -> None:
    result = on("PKG-014", dist("tensorflow", tensorflow_version), dist("numpy", numpy_version))
    assert result.outcome == outcome


# PKG-006


def pynvml(version: str, module: Any) -> CheckResult:
    both = packages(
        dist("pynvml", version), dist("nvidia-ml-py", "12.575.51"), pynvml_module_version=module
    )
    return on("PKG-006", packages=both)


def test_an_old_pynvml_over_nvidia_ml_py() -> None:
    result = pynvml("11.5.3", "11.5.3")
    assert result.outcome == "warn" and result.findings[0].evidence[1].value == "11.5.3"
    assert pynvml("11.5.3", "12.575.51").outcome == "pass"
    assert pynvml("12.0.0", ABSENT).outcome == "pass"
    assert on("PKG-006", dist("pynvml", "11.5.3")).outcome == "skipped"


# PKG-007


def test_tensorrt_8_beside_cudnn_9_alone() -> None:
    engine, nine = dist("tensorrt", "8.5.3.1"), dist("nvidia-cudnn-cu11", "9.1.0.70")
    result = on("PKG-007", engine, nine)
    assert result.outcome == "fail"
    remedy = result.findings[0].remedy
    assert remedy is not None and "'nvidia-cudnn-cu11<9'" in remedy.commands[0]
    assert on("PKG-007", engine, nine, dist("nvidia-cudnn", "8.0.5.43")).outcome == "pass"
    assert on("PKG-007", dist("tensorrt", "10.3.0"), nine).outcome == "skipped"
    assert on("PKG-007", engine).outcome == "skipped"


# PKG-008


def test_one_library_for_two_cuda_majors() -> None:
    mixed = on(
        "PKG-008", dist("nvidia-cudnn-cu11", "8.7.0.84"), dist("nvidia-cudnn-cu12", "9.3.0.75")
    )
    assert mixed.outcome == "warn"
    unsuffixed = on(
        "PKG-008", dist("nvidia-cublas", "13.0.2.14"), dist("nvidia-cublas-cu12", "12.5.3.2")
    )
    assert unsuffixed.outcome == "warn"
    apart = on(
        "PKG-008", dist("nvidia-cublas-cu11", "11.11.3.6"), dist("nvidia-cudnn-cu12", "9.3.0.75")
    )
    assert apart.outcome == "pass"


# PKG-009


def test_requirements_are_read_for_the_targets_python() -> None:
    torch = dist(
        "torch",
        "2.4.0",
        requires=[
            "nvidia-cudnn-cu12 ==9.1.0.70 ; platform_system == 'Linux' and platform_machine == 'x86_64'",
            "nvidia-cublas-cu12==12.1.3.1 ; platform_machine == 'aarch64'",
            "triton==3.0.0 ; python_version < '3.13'",
            "typing-extensions>=4",
            "numpy<2 ; extra == 'old'",
            "not a requirement!",
        ],
    )
    result = on("PKG-009", torch, dist("nvidia-cudnn-cu12", "9.3.0.75"), dist("numpy", "2.1"))
    (finding,) = result.findings
    assert (result.outcome, finding.subject) == ("warn", "torch")
    assert "nvidia-cudnn-cu12==9.1.0.70 (is 9.3.0.75)" in finding.message
    assert "cublas" not in finding.message and "triton" not in finding.message


def test_a_missing_library_of_nvidias_is_told() -> None:
    torch = dist("torch", "2.4.0", requires=["nvidia-nccl-cu12==2.20.5"])
    (finding,) = on("PKG-009", torch).findings
    assert "nvidia-nccl-cu12==2.20.5 (is missing)" in finding.message


def test_a_trouble_with_a_check_of_its_own_is_told_once() -> None:
    old = dist(
        "nvidia-tensorflow", "1.15.5+nv23.3", requires=["protobuf<4.0.0,>=3.6.1", "numpy<1.24"]
    )
    both = (old, dist("protobuf", "4.24.4"), dist("numpy", "1.26.4"))
    assert on("PKG-009", *both).outcome == "pass"
    assert on("PKG-005", *both).outcome == "fail"


def test_requirements_that_are_met_pass() -> None:
    pair = (dist("torch", "2.4.0", requires=["numpy>=1.26"]), dist("numpy", "2.1"))
    result = on("PKG-009", *pair)
    assert (result.outcome, result.detail) == (
        "pass",
        "2 packages of this field have what they require",
    )


def test_requirements_need_an_interpreter() -> None:
    assert on("PKG-009", dist("numpy", "2.1"), interpreter=None).outcome == "skipped"
    assert on("PKG-009", dist("numpy", "2.1", requires=ABSENT)).outcome == "skipped"


# PKG-010


def nvidia_set(version: str = "1.15.5+nv23.3", **changes: str) -> list[Distribution]:
    wanted = {
        "nvidia-tensorflow": version,
        "nvidia-cublas-cu12": "12.1.0.26",
        "nvidia-cuda-runtime-cu12": "12.1.55",
        "nvidia-cudnn-cu12": "8.8.1.3",
        "nvidia-dali-nvtf-plugin": "1.23.0+nv23.3",
        "tensorrt": "8.5.3.1",
    } | {name.replace("_", "-"): version for name, version in changes.items()}
    return [dist(name, version) for name, version in wanted.items()]


def test_a_release_is_named() -> None:
    result = on("PKG-010", *nvidia_set(), loader=None)
    assert result.outcome == "pass"
    assert "release 23.03" in result.detail and "cublas, cuda-runtime, cudnn" in result.detail
    assert "moved on" not in result.detail  # runtime 12.1.55 is CUDA 12.1.0


def test_libraries_may_float_inside_their_rules() -> None:
    result = on("PKG-010", *nvidia_set(nvidia_cudnn_cu12="8.9.7.29"), loader=None)
    assert result.outcome == "pass" and "8.9.7.29 (released: 8.8.1.3)" in result.detail


def test_a_library_outside_of_the_rules_is_warned_of() -> None:
    result = on("PKG-010", *nvidia_set(nvidia_cudnn_cu12="9.1.0.70"), loader=None)
    (finding,) = result.findings
    assert result.outcome == "warn" and "9.1.0.70" in finding.message
    assert finding.remedy is not None
    assert "nvidia-cudnn-cu12~=8.8" in finding.remedy.commands[0]


def test_below_the_rule_is_outside_of_it_though_the_major_is_the_same() -> None:
    assert on("PKG-010", *nvidia_set(nvidia_cudnn_cu12="8.7.0.84"), loader=None).outcome == "warn"


def test_where_no_rule_is_known_only_another_major_is_wrong() -> None:
    old = dist("nvidia-tensorflow", "1.15.4+nv20.10")
    moved = on("PKG-010", old, dist("nvidia-cudnn", "8.1.0.77"), loader=None)
    assert moved.outcome == "pass" and "8.1.0.77 (released: 8.0.4)" in moved.detail
    assert on("PKG-010", old, dist("nvidia-cudnn", "7.6.5.32"), loader=None).outcome == "warn"


def test_tensorrt_is_compared_as_loaded_too() -> None:
    loader = Loader(libraries=[system_library("libnvinfer", "libnvinfer.so.8", "8.5.3")])
    result = on("PKG-010", dist("tensorflow", "1.15.5+nv23.03"), loader=loader)
    assert result.outcome == "pass" and "compared in tensorrt" in result.detail


def test_a_release_that_is_not_on_record_is_not_known_and_the_nearest_is_named() -> None:
    result = on("PKG-010", *nvidia_set("1.15.5+nv23.5"), loader=None)
    assert result.outcome == "skipped"
    assert result.reason.startswith("not known") and "23.03" in result.reason


def test_a_release_of_which_nothing_is_known_is_no_pass() -> None:
    result = on("PKG-010", dist("nvidia-tensorflow", "1.15.5+nv22.11"), loader=None)
    assert result.outcome == "skipped"
    assert "NVIDIA's release 22.11" in result.reason
    assert on("PKG-010", dist("nvidia-tensorflow", "1.15.5+nv")).outcome == "skipped"


def test_in_a_container_the_loaded_libraries_stand_for_the_wheels() -> None:
    loader = Loader(libraries=[system_library("libcudnn", "libcudnn.so.8", "8.8.1")])
    result = on("PKG-010", dist("tensorflow", "1.15.5+nv23.03"), loader=loader)
    assert result.outcome == "pass" and "cudnn" in result.detail
    newer = Loader(libraries=[system_library("libcudnn", "libcudnn.so.9", "9.1.0")])
    result = on("PKG-010", dist("tensorflow", "1.15.5+nv23.03"), loader=newer)
    assert result.outcome == "warn"
    assert getattr(result.findings[0].remedy, "commands", None) == []


# PKG-011


def horovod(**present: bool) -> CheckResult:
    extensions = [
        HorovodExtension(framework=name, present=there) for name, there in present.items()
    ]
    both = packages(
        dist("horovod", "0.28.1"), dist("tensorflow", "2.15.1"), horovod_extensions=extensions
    )
    return on("PKG-011", packages=both)


def test_horovod_built_for_nothing() -> None:
    assert horovod(tensorflow=False, torch=False).outcome == "fail"
    other = horovod(tensorflow=False, torch=True)
    assert other.outcome == "warn" and "TensorFlow" in other.findings[0].message
    remedy = other.findings[0].remedy
    assert remedy is not None and "HOROVOD_WITH_TENSORFLOW=1" in remedy.commands[0]
    assert horovod(tensorflow=True, torch=False).outcome == "pass"
    unknown = packages(dist("horovod", "0.28.1"), horovod_extensions=error("unreadable"))
    assert on("PKG-011", packages=unknown).outcome == "could-not-run"


# PKG-012


def test_a_wheel_for_another_python_fails() -> None:
    wheel = dist("nvidia-tensorflow", "1.15.5+nv22.9", wheel_tags=["cp36-cp36m-linux_x86_64"])
    result = on("PKG-012", wheel, interpreter=interpreter(version="3.8.18"))
    assert result.outcome == "fail" and "Python 3.6, and this is 3.8" in result.findings[0].message
    assert on("PKG-012", dist("a", "1", wheel_tags=ABSENT)).outcome == "skipped"
    assert on("PKG-012", wheel, interpreter=interpreter(version="odd")).outcome == "skipped"


def test_the_hosts_glibc_stands_in_for_the_targets() -> None:
    wheel = dist("tensorflow", "2.21.0", wheel_tags=["cp311-cp311-manylinux_2_99_x86_64"])
    assert on("PKG-012", wheel, interpreter=interpreter(libc=ABSENT)).outcome == "fail"
    # what the interpreter says of itself comes first
    between = dist("tensorflow", "2.21.0", wheel_tags=["cp311-cp311-manylinux_2_30_x86_64"])
    assert on("PKG-012", between, interpreter=interpreter(libc="glibc 2.28")).outcome == "fail"
    assert on("PKG-012", between, interpreter=interpreter(libc="musl 1.2")).outcome == "fail"
    assert on("PKG-012", between).outcome == "pass"


SYSTEM = System((3, 8), "x86_64", (2, 31), musl=False)


@pytest.mark.parametrize(
    ("tag", "fits"),
    [
        ("cp38-cp38-manylinux_2_17_x86_64.manylinux2014_x86_64", True),
        ("cp36-cp36m-linux_x86_64", False),
        ("py2.py3-none-any", True),
        ("py3-none-manylinux1_x86_64", True),
        ("py39-none-any", False),
        ("cp37-abi3-manylinux_2_28_x86_64", True),
        ("cp311-abi3-manylinux_2_28_x86_64", False),
        ("cp38-cp38-manylinux_2_35_x86_64", False),
        ("cp38-cp38-manylinux_2_17_aarch64", False),
        ("cp38-cp38-musllinux_1_2_x86_64", False),
        ("cp38-cp38-win_amd64", False),
        ("cp38-cp38-manylinux2010_i686", False),
    ],
)
def test_tags(tag: str, fits: bool) -> None:
    assert (misfit([tag], SYSTEM) == "") is fits


def test_tags_that_nobody_can_read_are_not_known() -> None:
    with pytest.raises(ValueError):
        misfit(["not a tag"], SYSTEM)
    result = on("PKG-012", dist("torch", "2.5.1", wheel_tags=["not a tag"]))
    assert result.outcome == "skipped" and "not known" in result.reason


def test_one_tag_that_fits_is_enough_and_an_unknown_glibc_says_nothing() -> None:
    assert misfit(["cp36-cp36m-linux_x86_64", "cp38-cp38-linux_x86_64"], SYSTEM) == ""
    assert misfit(["cp38-cp38-manylinux_2_99_x86_64"], SYSTEM._replace(glibc=None)) == ""
    musl = SYSTEM._replace(musl=True, glibc=None)
    assert misfit(["cp38-cp38-musllinux_1_2_x86_64"], musl) == ""
    assert "musl" in misfit(["cp38-cp38-manylinux_2_17_x86_64"], musl)


# PKG-013, PKG-015

NONE = Loader(libraries=[system_library("libcudnn", "libcudnn.so.9", path=ABSENT)])


def test_tensorflow_without_cuda_libraries_on_a_gpu_machine() -> None:
    blind = tensorflow(gpus=[], libraries=[])
    result = on("PKG-013", dist("tensorflow", "2.15.0"), tensorflow=blind, loader=NONE)
    assert result.outcome == "fail"
    remedy = result.findings[0].remedy
    # the extra of 2.15.0 cannot be installed from the registry
    assert remedy is not None and "'tensorflow[and-cuda]==2.15.0.post1'" in remedy.commands[0]


def test_cuda_libraries_from_wheels_the_system_or_nowhere() -> None:
    package = dist("tensorflow", "2.19.1")
    blind = tensorflow(gpus=[], libraries=[])
    wheels = on(
        "PKG-013", package, dist("nvidia-cudnn-cu12", "9.3.0.75"), tensorflow=blind, loader=NONE
    )
    assert wheels.outcome == "pass"
    system = Loader(libraries=[system_library("libcudnn", "libcudnn.so.9", "9.3.0")])
    assert on("PKG-013", package, tensorflow=blind, loader=system).outcome == "pass"
    assert on("PKG-013", package, tensorflow=tensorflow(), loader=NONE).outcome == "pass"
    cpu = tensorflow(gpus=[], cuda_build=False)
    assert on("PKG-013", package, tensorflow=cpu, loader=NONE).outcome == "skipped"
    assert (
        on("PKG-013", dist("tensorflow", "2.13.1"), tensorflow=blind, loader=NONE).outcome
        == "skipped"
    )
    assert on("PKG-013", package, tensorflow=blind, loader=failed()).outcome == "could-not-run"


def test_without_a_gpu_nothing_needs_cuda_libraries() -> None:
    snap = on_bare_machine(
        packages=packages(dist("tensorflow", "2.19.1")), tensorflow=tensorflow(gpus=[]), loader=NONE
    )
    assert judge(snap, "PKG-013", "packages").outcome == "skipped"


def test_the_set_that_and_cuda_asks_for() -> None:
    blind = tensorflow(gpus=[], libraries=[])
    older = good_packages(nvidia_cudnn_cu12="9.1.0.70", nvidia_nccl_cu12="")
    result = judge(good_snapshot(packages=older, tensorflow=blind), "PKG-015", "packages")
    (finding,) = result.findings
    assert result.outcome == "warn"
    assert "missing nvidia-nccl-cu12==2.23.4" in finding.message
    assert "nvidia-cudnn-cu12 9.1.0.70 (==9.3.0.75)" in finding.message
    works = judge(good_snapshot(packages=older), "PKG-015", "packages")
    assert works.outcome == "pass" and "9.1.0.70" in works.detail


def test_releases_whose_extra_cannot_be_installed_say_so() -> None:
    half = good_packages(tensorflow="2.15.0", nvidia_cudnn_cu12="8.9.4.25")
    blind = tensorflow(gpus=[], libraries=[], version="2.15.0")
    (finding,) = judge(
        good_snapshot(packages=half, tensorflow=blind), "PKG-015", "packages"
    ).findings
    assert "tensorrt-libs 8.6.1 is not on PyPI" in finding.message
    assert finding.remedy is not None and "2.15.0.post1" in finding.remedy.commands[0]


def test_a_tensorflow_that_is_not_in_the_table_is_not_known() -> None:
    result = on("PKG-015", dist("tensorflow", "2.99.0"))
    assert result.outcome == "skipped" and result.reason.startswith("not known")
    assert on("PKG-015", dist("tensorflow", "2.13.1")).outcome == "skipped"
    assert on("PKG-015", dist("tensorflow", "2.17.0+nv25.2")).outcome == "skipped"


# versions, markers and names that strangers wrote

VERSIONS = st.from_regex(
    r"[0-9]{1,3}(\.[0-9]{1,3}){0,3}((a|b|rc|\.dev|\.post)[0-9])?", fullmatch=True
)
FUZZ = settings(max_examples=30, deadline=None)


@given(VERSIONS, VERSIONS)
@FUZZ
def test_a_requirement_is_met_exactly_by_the_version_it_names(wanted: str, other: str) -> None:
    environment = marker_environment(interpreter())
    asks = dist("torch", "2.4.0", requires=[f"nvidia-nccl-cu12=={wanted}"])
    assert unmet(asks, {"nvidia-nccl-cu12": dist("nvidia-nccl-cu12", wanted)}, environment) == []
    broken = unmet(asks, {"nvidia-nccl-cu12": dist("nvidia-nccl-cu12", other)}, environment)
    from packaging.version import Version

    assert bool(broken) is (Version(other) != Version(wanted))


@given(st.lists(st.text(max_size=60), max_size=4), st.text(max_size=20))
@FUZZ
def test_foreign_metadata_crashes_nothing(texts: list[str], version: str) -> None:
    environment = marker_environment(interpreter(version=version))
    one = dist("a", version, requires=texts, wheel_tags=texts)
    assert len(requirements(one, environment)) <= len(texts)
    unmet(one, {"a": one}, environment)
    with suppress(ValueError):
        misfit(texts, SYSTEM)


@given(
    st.sampled_from(CODES),
    st.text(min_size=1, max_size=20),
    st.text(max_size=20),
    st.text(max_size=40),
)
@FUZZ
def test_foreign_distributions_crash_no_check(
    code: str, name: str, version: str, text: str
) -> None:
    odd = dist(name, version, requires=[text], wheel_tags=[text], missing=[text], missing_count=1)
    known_names = [
        dist(one, version, requires=[text])
        for one in ("tensorflow", "nvidia-cudnn-cu12", "tensorrt")
    ]
    assert "crashed" not in on(code, odd, *known_names, dist("horovod", version)).reason


def test_failures_come_as_one_cause() -> None:
    """A placeholder in TensorFlow's place is one failure, not one a check."""
    only = packages(dist("nvidia-tensorflow", "0.0.1.dev5"), dist("numpy", "2.1.3"))
    results = diagnose(good_snapshot(packages=only, tensorflow=None, loader=NONE)).results
    failures = [one.code for one in results if one.outcome == "fail"]
    assert failures == ["PKG-002"]


def test_the_gpus_are_those_of_the_machine() -> None:
    snap: Snapshot = replace(good_snapshot(), "machine", pci=None, cuda=None, nvml=None)
    blind = tensorflow(gpus=[], libraries=[])
    snap = replace(
        snap, "target", tensorflow=blind, packages=packages(dist("tensorflow", "2.19.1"))
    )
    result = judge(replace(snap, "target", loader=NONE), "PKG-013", "packages")
    assert result.outcome == "skipped" and "not in this snapshot" in result.reason
    assert machine(gpu())["pci"] and SITE and good_libraries()
