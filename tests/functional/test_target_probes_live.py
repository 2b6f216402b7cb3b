"""The target probes in real interpreters: real loads, real crashes, real nonsense."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pythons

from envcheck.collector import framework
from envcheck.collector.runtime import process
from envcheck.collector.worker import handshake
from envcheck.collector.worker import probe as worker
from envcheck.facts.base import Unavailable
from envcheck.facts.target import (
    Environment,
    Framework,
    Library,
    Loader,
    Packages,
    PackagingConfig,
    TargetInterpreter,
)

TYPES: dict[str, Any] = {
    "environment": Environment,
    "packages": Packages,
    "packaging_config": PackagingConfig,
    "loader": Loader,
    "tensorflow": Framework,
    "torch": Framework,
    "jax": Framework,
}


@pytest.fixture(scope="module", params=["this", "3.6", "3.13"])
def base(request: pytest.FixtureRequest) -> str:
    """Interpreters to make targets of: the oldest that counts, ours, and a new one."""
    if request.param == "this":
        return sys.executable
    return pythons.need(int(request.param.partition(".")[2]))


class Target:
    """A fresh virtual environment, with fake distributions put into it."""

    def __init__(self, base: str, home: Path) -> None:
        self.site = pythons.bare_environment(home, base)
        self.home = home
        self.python = str(home / "bin/python")

    def module(self, name: str, text: str) -> None:
        package = self.site / name
        package.mkdir(exist_ok=True)
        (package / "__init__.py").write_text(text)

    def wheel(self, name: str, version: str, files: dict[str, Path]) -> None:
        pythons.put_distribution(self.site, name, version, *files)
        for path, built in files.items():
            (self.site / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(built, self.site / path)


@pytest.fixture
def target(base: str, tmp_path: Path) -> Target:
    return Target(base, tmp_path / "env")


def run(target: Target, module: str, deadline: float = 60.0, **environ: str) -> process.Result:
    clean = {
        k: v for k, v in os.environ.items() if not k.startswith(("LD_", "PYTHON", "TF_", "CUDA"))
    }
    argv = worker.command([target.python], f"envcheck.collector.probes.{module}", {})
    return process.run(argv, deadline, env={**clean, **environ}, cwd="/")


def probe(target: Target, module: str, **environ: str) -> Any:
    """What the probe found in the target, as the Snapshot's type."""
    result = run(target, module, **environ)
    assert result.ok, f"{result.describe()}: {result.tail(20)}"
    facts = worker.parse(result)["facts"]
    if module in ("tensorflow", "torch", "jax"):
        facts["log"] = framework.about_gpus(result.stderr.decode("utf-8", "replace"))
    return msgspec.convert(facts, TYPES[module])


# handshake


def greet(path: str, deadline: float = 5.0) -> process.Result:
    return process.run([path, "-c", handshake.SCRIPT], deadline, cwd="/")


def test_the_handshake_with_a_target(target: Target) -> None:
    target.module("torch", "raise SystemExit('the handshake imports nothing')")
    (target.site / "jax").mkdir()
    (target.site / "sitecustomize.py").write_text("print('a chatty site')")
    path, kind = handshake.resolve(str(target.home))
    answer = handshake.check(greet(path))
    interpreter = msgspec.convert(handshake.facts(answer, kind, path).values, TargetInterpreter)
    assert interpreter.kind == "virtualenv"
    assert interpreter.prefix == str(target.home)
    assert interpreter.base_prefix != interpreter.prefix
    assert str(target.site) in interpreter.sys_path
    assert "" not in interpreter.sys_path
    assert sorted(answer["frameworks"]) == ["jax", "torch"]
    assert answer["frameworks"]["jax"] == "namespace"


def test_python_2_says_how_old_it_is() -> None:
    result = greet(pythons.need(7, major=2))
    with pytest.raises(ValueError, match=r"is Python 2\.7\.\d+, and envcheck needs 3\.6"):
        handshake.check(result)


# loader

SOURCE = {
    "libcudart.so.12": "int cudaRuntimeGetVersion(int *v) { *v = 12040; return 0; }",
    "libcublas.so.12": "int cublasGetProperty(int k, int *v) { *v = 12 - 4 * k; return 0; }",
    "libcudnn_graph.so.9": "unsigned long cudnnGetVersion(void) { return 90100; }"
    "int cudnnGraphVersionCheck(void) { return 0; }",
    "libcudnn_ops.so.9": "int cudnnOpsVersionCheck(void) { return 0; }",
    "libcudnn_cnn.so.9": "int cudnnCnnVersionCheck(void) { return 1004; }",
    "libnccl.so.2": "int ncclGetVersion(int *v) { return 5; }",
    "libcurand.so.10": "#include <stdlib.h>\n__attribute__((constructor)) void f(void) { abort(); }",
    "libcufft.so.11": "#include <unistd.h>\n__attribute__((constructor)) void f(void) { _exit(7); }",
    "libnvrtc.so.12": "#include <signal.h>\nint nvrtcVersion(int *a, int *b) { return raise(SIGSEGV); }",
    "libnvJitLink.so.12": "int nothing(void) { return 0; }",
}
NEEDS = {"libcudnn_ops.so.9": ["libcudnn_graph.so.9"], "libcudnn_cnn.so.9": ["libcudnn_graph.so.9"]}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of small libraries under NVIDIA's names."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc to build libraries with")
    folder = tmp_path_factory.mktemp("libraries")
    for soname, source in SOURCE.items():
        compile_library(folder / soname, source, [folder / need for need in NEEDS.get(soname, [])])
    return folder


def compile_library(path: Path, source: str, needs: list[Path] = []) -> None:  # noqa: B006
    argv = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(path), f"-Wl,-soname,{path.name}"]
    argv += ["-Wl,--no-as-needed", "-x", "none", *map(str, needs)]
    subprocess.run(argv, input=source.encode(), check=True)


def chosen(loader: Loader, how: str, soname: str) -> Library:
    (library,) = [lib for lib in loader.libraries if lib.how == how and lib.soname == soname]
    return library


def test_the_loader_is_asked_and_the_libraries_answer(target: Target, built: Path) -> None:
    loader = probe(target, "loader", LD_LIBRARY_PATH=f"{built}:/nonexistent")
    assert loader.ld_library_path == [str(built), "/nonexistent"]

    def version(soname: str) -> Any:
        library = chosen(loader, "dlopen", soname)
        assert library.path == str(built / soname)
        assert library.origin == "LD_LIBRARY_PATH"
        return library.version

    assert version("libcudart.so.12") == "12.4"
    assert version("libcublas.so.12") == "12.8.4"
    assert version("libcudnn_graph.so.9") == "9.1.0"
    # Its own dependency's cudnnGetVersion is in its reach, and is not taken for its own.
    assert version("libcudnn_ops.so.9") == "9.1.0"
    assert chosen(loader, "dlopen", "libcudnn_ops.so.9").version_from == "cudnnOpsVersionCheck"
    for soname, words in [
        ("libcudnn_cnn.so.9", "cudnnCnnVersionCheck returned 1004"),
        ("libnccl.so.2", "ncclGetVersion returned 5"),
        ("libnvJitLink.so.12", "exports no function"),
        ("libnvrtc.so.12", "died by signal 11 (SIGSEGV)"),
    ]:
        reason = version(soname)
        assert isinstance(reason, Unavailable)
        assert words in reason.detail


def test_a_library_that_kills_its_process_costs_itself_alone(target: Target, built: Path) -> None:
    loader = probe(target, "loader", LD_LIBRARY_PATH=str(built))
    aborted = chosen(loader, "dlopen", "libcurand.so.10").path
    assert aborted == Unavailable(
        unavailable="error", detail="died by signal 6 (SIGABRT) while being loaded"
    )
    left = chosen(loader, "dlopen", "libcufft.so.11").path
    assert left == Unavailable(
        unavailable="error", detail="exited with status 7 while being loaded"
    )
    # Before and after them in the table.
    assert chosen(loader, "dlopen", "libcudart.so.12").version == "12.4"
    assert chosen(loader, "dlopen", "libcudnn_graph.so.9").version == "9.1.0"
    absent = chosen(loader, "dlopen", "libnvinfer.so.5").path
    assert isinstance(absent, Unavailable)
    assert absent.unavailable == "absent"
    assert "libnvinfer.so.5: cannot open shared object file" in absent.detail


# frameworks

GOOD = """\
import ctypes, os, sys
assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "0"
assert os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] == "true"
assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
assert "TF_CPP_MAX_VLOG_LEVEL" not in os.environ
print("<<<envcheck facts")
print("chatty on stdout")
sys.stderr.write("W dso_loader.cc:55] Could not load dynamic library 'libcudnn.so.8'\\n")
for name in os.environ.get("LOAD", "").split():
    ctypes.CDLL(name)
__version__ = "2.99.0"
class sysconfig:
    @staticmethod
    def get_build_info():
        return {"cuda_version": "12.5.1", "cudnn_version": "9", "is_cuda_build": True,
                "is_tensorrt_build": False, "cuda_compute_capabilities": ["sm_80", "compute_90"]}
class test:
    @staticmethod
    def is_built_with_cuda():
        return True
class config:
    @staticmethod
    def list_physical_devices(kind):
        return []
    class experimental:
        @staticmethod
        def tensor_float_32_execution_enabled():
            return True
    class optimizer:
        @staticmethod
        def get_jit():
            return ""
        @staticmethod
        def get_experimental_options():
            raise RuntimeError("no")
"""


def test_a_framework_and_what_it_mapped(target: Target, built: Path) -> None:
    target.module("tensorflow", GOOD)
    target.wheel(
        "nvidia-cublas-cu12",
        "12.8.4.1",
        {"nvidia/cublas/lib/libcublas.so.12": built / "libcublas.so.12"},
    )
    inside = target.site / "nvidia/cublas/lib/libcublas.so.12"
    load = f"{inside} {built / 'libnvrtc.so.12'} {built / 'libcudart.so.12'}"
    found = probe(
        target, "tensorflow", LOAD=load, TF_CPP_MIN_LOG_LEVEL="3", TF_CPP_MAX_VLOG_LEVEL="9"
    )
    assert found.imported
    assert found.version == "2.99.0"
    assert found.file == str(target.site / "tensorflow/__init__.py")
    assert (found.built_cuda, found.built_cudnn, found.tensorrt_build) == ("12.5.1", "9", False)
    assert found.built_capabilities == ["sm_80", "sm_90", "compute_90"]
    assert found.gpus == []
    assert found.settings == {"tf32": "true", "xla": "false"}
    assert found.log == ["W dso_loader.cc:55] Could not load dynamic library 'libcudnn.so.8'"]
    mapped = {lib.name: lib for lib in found.libraries}
    assert all(lib.how == "framework" for lib in found.libraries)
    assert (mapped["libcublas"].version, mapped["libcublas"].distribution) == (
        "12.8.4",
        "nvidia-cublas-cu12",
    )
    assert (mapped["libcudart"].version, mapped["libcudart"].origin) == ("12.4", "rpath")
    crashed = mapped["libnvrtc"].version
    assert isinstance(crashed, Unavailable)
    assert "died by signal 11 (SIGSEGV) while being asked for its version" in crashed.detail


# the others
