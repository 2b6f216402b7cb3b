"""ptxas and libdevice: found by the probe, and judged by what each framework and version looks into."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from judged import full_text
from targets import (
    SITE,
    compiler_tool,
    good_snapshot,
    good_tools,
    judge,
    on_bare_machine,
    tensorflow,
    with_variables,
)

from envcheck.collector.cuda import compiler_tools
from envcheck.collector.runtime.context import Context
from envcheck.facts.target import CompilerTool, Trial
from envcheck.findings.model import CheckResult

WHEEL = f"{SITE}/nvidia/cuda_nvcc"


def on(
    code: str, *tools: CompilerTool, version: str = "2.19.1", cuda: str = "12.5.1", **probes: Any
) -> CheckResult:
    facts = tensorflow(version=version, built_cuda=cuda, compiler_tools=list(tools))
    return judge(good_snapshot(**{"tensorflow": facts} | probes), code, "framework")


def jax(*tools: CompilerTool, version: str = "0.4.35", cuda: str = "12.6") -> dict[str, Any]:
    facts = tensorflow(
        name="jax",
        version=version,
        built_cuda=cuda,
        compiler_tools=list(tools),
        file=f"{SITE}/jax/__init__.py",
    )
    return {"tensorflow": None, "jax": facts}


def test_healthy_missing_and_blind() -> None:
    code = "FRM-008"
    assert judge(good_snapshot(), code, "framework").outcome == "pass"
    without = good_snapshot(tensorflow=tensorflow(compiler_tools=[], gpus=[]))
    assert judge(without, code, "framework").outcome == "skipped"
    old = tensorflow()
    old = type(old)(name="tensorflow", imported=True, version="2.19.1", gpus=old.gpus)
    assert judge(good_snapshot(tensorflow=old), code, "framework").outcome == "skipped"
    bare = on_bare_machine(tensorflow=tensorflow(compiler_tools=[]))
    assert judge(bare, code, "framework").findings == []


def test_an_old_tensorflow_is_warned_where_xla_is_asked_for_or_missed() -> None:
    assert on("FRM-008", version="2.0.0", cuda="10.0").outcome == "pass"
    facts = tensorflow(version="2.0.0", built_cuda="10.0", compiler_tools=[])
    asked = with_variables(TF_XLA_FLAGS="--tf_xla_auto_jit=2")
    asked_for = judge(
        good_snapshot(tensorflow=facts, environment=asked.target.environment),  # type: ignore[union-attr]
        "FRM-008",
        "framework",
    )
    logged = tensorflow(
        version="2.0.0",
        built_cuda="10.0",
        compiler_tools=[],
        log=["Not found: ./bin/ptxas not found"],
    )
    missed = judge(good_snapshot(tensorflow=logged), "FRM-008", "framework")
    assert (asked_for.outcome, missed.outcome) == ("warn", "warn")
    assert "nvidia-cuda-nvcc-cu11" in full_text(missed) and "XLA_FLAGS" in full_text(missed)


def test_a_toolkit_aside_is_named_instead_of_installing() -> None:
    aside = [
        compiler_tool("ptxas", "aside", "/usr/local/cuda-12.6", "12.6.85"),
        compiler_tool("libdevice", "aside", "/usr/local/cuda-12.6"),
    ]
    words = full_text(on("FRM-008", *aside))
    assert "XLA_FLAGS=--xla_gpu_cuda_data_dir=/usr/local/cuda-12.6" in words
    assert "pip install" not in words


def test_jax_cannot_do_without() -> None:
    result = judge(good_snapshot(**jax()), "FRM-008", "framework")
    assert result.outcome == "fail" and "nvidia-cuda-nvcc-cu12" in full_text(result)
    # What its first computation says comes before what is not found.
    error = "RuntimeError: the provided PTX was compiled with an unsupported toolchain."
    refused = msgspec.structs.replace(
        jax()["jax"], trials=[Trial(name="xla", outcome="failed", error=error)]
    )
    blamed = judge(good_snapshot(jax=refused, tensorflow=None), "FRM-008", "framework")
    assert blamed.outcome == "pass", full_text(blamed)
    found = jax(*good_tools(), cuda="12.5")
    assert judge(good_snapshot(**found), "FRM-008", "framework").outcome == "pass"
    cuda13 = judge(good_snapshot(**jax(version="0.8.0", cuda="13.0")), "FRM-008", "framework")
    assert "nvidia-nvvm" in full_text(cuda13)


def test_an_old_ptxas_first_on_path() -> None:
    old = compiler_tool("ptxas", "PATH", "/usr/local/cuda-12.2/bin", "12.2.140")
    newer = [
        compiler_tool("ptxas", "wheel", WHEEL, "12.6.85"),
        compiler_tool("libdevice", "wheel", WHEEL),
    ]
    result = judge(good_snapshot(**jax(old, *newer)), "FRM-008", "framework")
    assert result.outcome == "fail"
    assert f"export PATH='{WHEEL}/bin':\"$PATH\"" in full_text(result)
    assert "pip install" not in full_text(result)
    alone = judge(good_snapshot(**jax(old, newer[1])), "FRM-008", "framework")
    assert "nvidia-cuda-nvcc-cu12" in full_text(alone)
    ancient = compiler_tool("ptxas", "PATH", "/usr/local/cuda-8.0/bin", "8.0.61")
    of_2021 = jax(ancient, version="0.2.13", cuda="11.1")
    of_2021["jax"] = msgspec.structs.replace(of_2021["jax"], settings={"jaxlib": "0.1.67"})
    assert judge(good_snapshot(**of_2021), "FRM-008", "framework").outcome == "fail"


def test_the_probe_finds_each_place(tmp_path: Path) -> None:
    def tool(path: str, version: str = "") -> None:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\necho 'release 1, V{version}'\n" if version else "")
        file.chmod(0o755 if version != "no" else 0o644)

    tool("usr/bin/ptxas", "9.1.85")
    tool("usr/local/cuda-12.4/bin/ptxas", "12.4.131")
    tool("usr/local/cuda-12.4/nvvm/libdevice/libdevice.10.bc")
    (tmp_path / "usr/local/cuda").symlink_to("cuda-12.4")
    tool("site/nvidia/cuda_nvcc/bin/ptxas", "12.5.82")
    tool("site/nvidia/cu13/nvvm/libdevice/libdevice.10.bc")
    tool("flag/bin/ptxas", "no")
    config = tmp_path / "site/tensorflow/include/third_party/gpus/cuda/cuda_config.h"
    config.parent.mkdir(parents=True)
    config.write_text('#define TF_CUDA_TOOLKIT_PATH "/usr/local/cuda-12.4"\n')
    environ = {"PATH": "/nowhere:/usr/bin", "XLA_FLAGS": "--a=1 --xla_gpu_cuda_data_dir=/flag"}
    found = compiler_tools.find(
        Context(environ, root=str(tmp_path)), ["/site/tensorflow"], ["/site"], "/usr"
    )
    seen = {(one["kind"], one["place"], one["path"]) for one in found}
    assert {
        ("ptxas", "PATH", "/usr/bin/ptxas"),
        ("ptxas", "XLA_FLAGS", "/flag/bin/ptxas"),
        ("ptxas", "build", "/usr/local/cuda-12.4/bin/ptxas"),
        ("ptxas", "/usr/local/cuda", "/usr/local/cuda/bin/ptxas"),
        ("ptxas", "wheel", "/site/nvidia/cuda_nvcc/bin/ptxas"),
        ("libdevice", "build", "/usr/local/cuda-12.4/nvvm/libdevice/libdevice.10.bc"),
        ("libdevice", "wheel", "/site/nvidia/cu13/nvvm/libdevice/libdevice.10.bc"),
        ("ptxas", "aside", "/usr/local/cuda-12.4/bin/ptxas"),
    } <= seen
    versions = {one["path"]: one.get("version") for one in found if one["kind"] == "ptxas"}
    assert versions["/usr/bin/ptxas"] == "9.1.85"
    assert versions["/usr/local/cuda/bin/ptxas"] == "12.4.131"
    assert versions["/flag/bin/ptxas"]["unavailable"] == "no-permission"  # type: ignore[index]
