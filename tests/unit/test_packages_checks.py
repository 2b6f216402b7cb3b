"""Checks on the target's distributions: each with a bad, a good and a missing set."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from targets import (
    ABSENT,
    AND_CUDA,
    PYTHON,
    dist,
    good_snapshot,
    good_target,
    gpu,
    judge,
    machine,
    not_imported,
    packages,
    snapshot,
    system_library,
    tensorflow,
)

from envcheck.facts.target import Distribution, LinkedFile, Loader, Overwritten
from envcheck.findings.model import CheckResult

CODES = [f"PKG-{number:03d}" for number in (1, 2, 3, 8, 9, 11, 22)]


def on(code: str, *distributions: Distribution, **probes: Any) -> CheckResult:
    """The check on a target with these distributions, whose TensorFlow does not import."""
    probes = {"tensorflow": not_imported(), "packages": packages(*distributions)} | probes
    return judge(good_snapshot(**probes), code, "packages")


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


@pytest.mark.parametrize(
    ("facts", "outcome", "words", "option"),
    [
        ({"cut_off": ["torch/lib/libtorch_cpu.so"]}, "fail", "libtorch_cpu.so", "--force-reinstall"),
        ({"files": ABSENT, "installer": "pip"}, "warn", "RECORD", "--ignore-installed"),
        ({"files": ABSENT, "installer": "uv"}, "warn", "RECORD", "--reinstall"),
        ({"files": ABSENT, "installer": "conda"}, "skipped", "", ""),
    ],
)  # fmt: skip
def test_libraries_that_are_cut_off_and_records_that_are_gone(
    facts: dict[str, Any], outcome: str, words: str, option: str
) -> None:
    result = on("PKG-001", dist("torch", "2.13.0", **facts))
    assert result.outcome == outcome
    for finding in result.findings:
        assert words in finding.message and finding.remedy is not None
        assert finding.remedy.commands[0].endswith(option) or option in finding.remedy.commands[0]


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


IN_PIP = {"installer": "pip"}
TF_CUDA = [f"{name}=={version} ; extra == 'and-cuda'" for name, version in AND_CUDA.items()]


@pytest.mark.parametrize(
    ("one", "others", "outcome", "words", "command"),
    [
        # gone: keras, sympy, a requirement of a requirement; what runs without it; what conda has otherwise
        ("tensorflow 2.15.1", "keras<2.16,>=2.15.0", "fail", "what imports keras fails", "keras<2.16"),
        ("torch 2.13.0", "sympy>=1.13", "fail", "what imports sympy fails", "install 'sympy>=1.13'"),
        ("keras 3.1", "namex", "fail", "namex (is missing)", "install namex"),
        ("tensorflow 2.15.1", "libclang>=13", "warn", "libclang>=13 (is missing)", "libclang"),
        ("tensorflow 2.17.0+nv25.2", "keras>=3.2", "warn", "keras", "keras"),
        ("conda torch 2.13.0", "sympy>=1.13", "pass", "", ""),
        ("torch 2.13.0", "unheard-of", "pass", "", ""),
        # of another version: a later major, an older one, and what was compiled for another torch
        ("tensorflow 2.15.1", "keras<2.16 keras 3.3.3", "fail", "may be gone in 3.3.3", "'keras<2.16'"),
        ("tensorflow 2.15.1", "numpy<2.0.0,>=1.23.5 numpy 2.0.2", "fail", "numpy",
         "'numpy<2.0.0,>=1.23.5'"),
        ("tensorflow 2.15.1", "numpy<2,>=1.23.5 numpy 1.23.2", "warn", "numpy", "numpy"),
        ("torchvision 0.20", "torch==2.5.0 torch 2.13.0", "fail", "compiled",
         "torchvision!=0.20 torch==2.13.0"),
        ("scikit-cuda 1", "numpy<2 numpy 2.1", "warn", "numpy", "'numpy<2'"),
        # what no metadata says, of itself and of another release's framework
        ("onnx 1.19.0", "ml-dtypes ml-dtypes 0.4.1", "fail", "float4", "'ml-dtypes>=0.5.0'"),
        ("onnx 1.19.1", "ml-dtypes ml-dtypes 0.4.1", "pass", "", ""),
        ("torch 2.2.2", "numpy numpy 2.0.0", "fail", "Numpy is not available", "'numpy<2'"),
        ("torch 2.3.0", "numpy numpy 2.0.0", "pass", "", ""),
        ("torchaudio 2.11.0", "x torch 2.10.0", "fail", "symbol", "'torchaudio<2.11.0' torch=="),
        ("torchaudio 2.11.0", "x torch 2.12.0", "pass", "", ""),
        ("tf-keras 2.17.0", "tensorflow<2.18,>=2.17 tensorflow 2.16.1", "fail", "that tensorflow alone",
         "tf-keras~=2.16.0 tensorflow==2.16.1"),
        ("torch-scatter 2.1.2+pt24cu121", "x torch 2.5.0", "fail", "alone", "torch-scatter==2.1.2"),
        ("torch-scatter 2.1.2+pt24cu121", "x torch 2.4.1", "pass", "", ""),
        ("numpy 1", "x x 1", "pass", "", ""),
    ],
)  # fmt: skip
def test_an_unmet_requirement_weighs_as_much_as_its_consequence(
    one: str, others: str, outcome: str, words: str, command: str
) -> None:
    conda = one.startswith("conda ")
    name, version = one.removeprefix("conda ").split()
    requirement, *there = others.split(" ")
    first = dist(name, version, requires=[requirement], installer="conda" if conda else "pip")
    found = packages(
        first,
        *([dist(*there, **IN_PIP)] if there else []),
        required=["keras", "sympy", "namex", "libclang", "numpy"],
    )
    result = on("PKG-009", packages=found)
    assert result.outcome == outcome
    if outcome != "pass":
        (finding,) = result.findings
        assert words in finding.message and finding.remedy is not None
        assert command.replace("'", "") in finding.remedy.commands[0].replace("'", "")


@pytest.mark.parametrize(
    ("gone", "elsewhere", "outcome"),
    [
        ((), False, "pass"),
        (("nvidia-cudnn-cu12",), False, "fail"),
        (("nvidia-cudnn-cu12",), True, "pass"),  # the loader finds the system's
        (("nvidia-cuda-nvcc-cu12",), False, "pass"),  # no library: FRM-006 looks for it
        (tuple(AND_CUDA)[:9], False, "pass"),  # the extra was never asked for
    ],
)
def test_an_extra_that_is_there_for_the_most_part_lacks_the_rest(
    gone: tuple[str, ...], elsewhere: bool, outcome: str
) -> None:
    there = [dist(name, version) for name, version in AND_CUDA.items() if name not in gone]
    system = [system_library("libcudnn", "libcudnn.so.9", "9.3.0")] if elsewhere else []
    result = on(
        "PKG-009",
        dist("tensorflow", "2.19.1", requires=TF_CUDA),
        *there,
        loader=Loader(libraries=system),
    )
    assert result.outcome == outcome
    assert not gone or outcome == "pass" or gone[0] in result.findings[0].message


def test_what_another_needs_as_it_is_stays() -> None:
    result = on(
        "PKG-009",
        dist("tensorflow", "2.18.0", requires=["ml-dtypes<0.5.0,>=0.4.0"]),
        dist("onnx", "1.19.0", requires=["ml_dtypes"]),
        dist("ml-dtypes", "0.4.1"),
    )
    (finding,) = result.findings
    assert finding.remedy and finding.remedy.commands[0].endswith(
        "'onnx<1.19.0' 'ml-dtypes<0.5.0,>=0.4.0'"
    )


@pytest.mark.parametrize(
    ("loser", "winner", "required", "outcome", "kept"),
    [
        ("onnxruntime-gpu", "onnxruntime", [], "fail", "onnxruntime-gpu==1"),
        ("onnxruntime", "onnxruntime-gpu", [], "warn", "onnxruntime-gpu==1"),
        ("nvidia-nccl-cu12", "nvidia-nccl-cu11", ["nvidia-nccl-cu12"], "fail", "cu12==1"),
        ("opencv-python", "opencv-python-headless", [], "warn", "opencv-python==1"),
        ("tensorflow", "tensorflow-cpu", [], "pass", ""),  # PKG-003
    ],
)
def test_overwritten_files(
    loser: str, winner: str, required: list[str], outcome: str, kept: str
) -> None:
    lost = [Overwritten(by=winner, files=3, example="a/b.so")]
    found = packages(dist(loser, "1", overwritten=lost), dist(winner, "1"), required=required)
    result = on("PKG-021", packages=found)
    assert result.outcome == outcome
    for finding in result.findings:
        assert finding.remedy is not None
        assert kept in finding.remedy.commands[0] and "a/b.so" in finding.message


def test_one_command_for_what_two_packages_require_together() -> None:
    result = on(
        "PKG-009",
        dist("tensorflow", "2.18.0", requires=["numpy<2.1,>=1.26"]),
        dist("h5py", "3.12", requires=["numpy>=1.26.4"]),
        dist("numpy", "1.21"),
    )
    commands = {one.remedy.commands[0] for one in result.findings if one.remedy}
    assert len(result.findings) == 2 and len(commands) == 1


# PKG-003, PKG-022


@pytest.mark.parametrize(
    ("installed", "outcome", "words", "command"),
    [
        ("tensorflow==2.15.1 tensorflow-cpu==2.14.0", "fail", "lie mixed", "tensorflow==2.15.1"),
        ("pynvml==11.5.3 nvidia-ml-py==12.560.30", "warn", "pynvml", "nvidia-ml-py==12.560.30"),
        ("pynvml==12.0.0 nvidia-ml-py==12.560.30", "pass", "", ""),
        ("onnxruntime==1.17 onnxruntime-gpu==1.16", "warn", "onnxruntime", "onnxruntime-gpu==1.16"),
        ("cupy-cuda11x==13 cupy-cuda12x==13", "warn", "cupy", "cupy-cuda12x==13"),
        ("onnxruntime==1.17", "pass", "it is onnxruntime-gpu", ""),
    ],
)
def test_packages_that_share_a_module(
    installed: str, outcome: str, words: str, command: str
) -> None:
    result = on("PKG-003", *(dist(*one.split("==")) for one in installed.split()))
    assert result.outcome == outcome
    assert words in result.note + "".join(one.message for one in result.findings)
    for finding in result.findings:
        assert finding.remedy and f"install {command}" in finding.remedy.commands[0]


@pytest.mark.parametrize(
    ("installed", "outcome", "words", "command"),
    [
        ("cupy-cuda12x==13.0", "pass", "", ""),
        ("cupy-cuda99x==13.0", "skipped", "", ""),
        ("cupy-cuda13x==14.0", "fail", "driver runs CUDA 12", "cupy-cuda12x"),
        ("cudf-cu10==0.1", "warn", "compute capability 9.0", "cudf-cu11"),
        ("torch==2.1.0+cu121 torchvision==0.16.0+cpu", "fail", "without CUDA", "whl/cu121"),
        ("torch==2.1.0+cu121 torchvision==0.16.0+cu118", "fail", "for CUDA 11", "whl/cu121"),
        ("torch==2.1.0+cu121 torchvision==0.16.0+cu121", "pass", "", ""),
        ("torch==2.1.0+cpu torchvision==0.16.0+cpu", "pass", "", ""),  # FRM-005
    ],
)
def test_packages_for_another_cuda(installed: str, outcome: str, words: str, command: str) -> None:
    result = on("PKG-022", *(dist(*one.split("==")) for one in installed.split()))
    assert result.outcome == outcome
    for finding in result.findings:
        assert words in finding.message
        assert finding.remedy and command in "\n".join(finding.remedy.commands)


@pytest.mark.parametrize(
    ("installed", "capability", "outcome", "words"),
    [
        ("flash-attn==2.5.8", "7.5", "warn", "only supports Ampere"),
        ("flash-attn==2.5.8", "8.0", "skipped", ""),
        ("flash-attn==1.0.9", "7.5", "skipped", ""),
        ("cudf-cu12==24.4.0", "6.1", "warn", "23.12"),
        ("triton==3.1.0", "6.1", "pass", "torch.compile does not work"),
    ],
)
def test_packages_that_a_gpu_is_too_old_for(
    installed: str, capability: str, outcome: str, words: str
) -> None:
    old = machine(gpu(0, "Some GPU", capability))
    target = good_target(packages=packages(dist(*installed.split("=="))), tensorflow=None)
    result = judge(snapshot(target, **old), "PKG-022", "packages")
    assert result.outcome == outcome
    assert words in result.note + "".join(one.message for one in result.findings)


@pytest.mark.parametrize(("cuda", "outcome"), [("12.4", "fail"), ("12.1", "skipped")])
def test_a_library_for_each_cuda_but_pytorchs(cuda: str, outcome: str) -> None:
    linked = [
        LinkedFile(path=f"/x/libbitsandbytes_cuda{one}.so", distribution="bitsandbytes")
        for one in ("118", "121", "121_nocublaslt")
    ]
    probes = {
        "packages": packages(dist("torch", "2.6.0"), dist("bitsandbytes", "0.42.0")),
        "loader": Loader(linked=linked),
        "torch": tensorflow(name="torch", built_cuda=cuda),
    }
    result = judge(good_snapshot(**probes), "PKG-022", "packages")
    assert result.outcome == outcome


# versions, markers and names that strangers wrote

FUZZ = settings(max_examples=30, deadline=None)


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
    odd = dist(name, version, requires=[text], missing=[text], missing_count=1)
    known_names = [
        dist(one, version, requires=[text])
        for one in ("tensorflow", "nvidia-cudnn-cu12", "tensorrt")
    ]
    assert "crashed" not in on(code, odd, *known_names, dist("horovod", version)).reason
