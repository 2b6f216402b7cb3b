"""L2 in processes of its own: on a PyTorch that is made up, and (-m slow) on real frameworks' CPUs."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import msgspec
import probing
import pytest
import pythons
from processes import ran
from test_real_frameworks import install

from envcheck.collector.worker import PACKAGE
from envcheck.facts.micro_kernels import ModeRun
from envcheck.tensorcores.signatures import read

KEYS = ["fp32/default", "fp32/switch-off", "tf32/switch-on", "fp16/half", "bf16/half"]

# Sees one GPU of one multiprocessor, on which the first product does what STICKY asks for.
TORCH = """\
import ctypes, os
from types import SimpleNamespace as Some
__version__ = "0.0"
version = Some(cuda="12.4")
float32 = "float32"
dead = []
class Tensor:
    def __init__(self, elements):
        self.memory = ctypes.create_string_buffer(4 * elements)
        self.elements = elements
    def numel(self): return self.elements
    def element_size(self): return 4
    def data_ptr(self): return ctypes.addressof(self.memory)
    def to(self, device): return self
    def cpu(self): return self
    def sum(self): return self
    def __add__(self, other): return self
    def __float__(self):
        if dead: raise RuntimeError("CUDA error: the launch timed out and was terminated")
        return 16.0
def empty(shape, dtype): return Tensor(shape[0] * shape[1])
def ones(count, device): return Tensor(count)
def matmul(left, right):
    if os.environ["STICKY"] == "yes": dead.append(1)
    raise RuntimeError("CUDA error: an illegal memory access was encountered")
properties = Some(name="Fake GPU", major=7, minor=5, multi_processor_count=1)
cuda = Some(is_available=lambda: os.environ["SEES"] == "yes", init=lambda: None,
            empty_cache=lambda: None, get_device_properties=lambda index: properties)
backends = Some(cuda=Some(matmul=Some(allow_tf32=False)))
"""


def params(framework: str, **changed: Any) -> str:
    whole = {
        "modes": ["fp32", "tf32", "fp16", "bf16"],
        "skip": [],
        "seconds": 60.0,
        "pynvml": None,
        "pci_address": None,
        "uuid": None,
        "libraries": {"libcublas": None, "libcublasLt": None, "libcupti": None},
        "names": False,
        "framework": framework,
        "settings": ["default", "switch-on", "switch-off", "half"],
    }
    return json.dumps({**whole, **changed})


def reported(argv: list[str], **environment: str) -> tuple[probing.Reported, int]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("CUDA", "NVIDIA", "CUBLAS"))}
    ended = ran(argv, env={**clean, "CUDA_VISIBLE_DEVICES": "", **environment})
    output = probing.Reported(ended.stdout)
    assert output.run or output.modes, ended.stderr.decode()[-2000:]
    for mode in output.modes.values():
        msgspec.convert(mode, ModeRun, strict=True)
    return output, ended.returncode


def level2(python: str, framework: str, **environment: str) -> tuple[probing.Reported, int]:
    return reported(probing.level([python], "level2", json.loads(params(framework))), **environment)


@pytest.fixture
def made_up(tmp_path: Path) -> str:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(TORCH)
    return str(tmp_path)


@pytest.mark.parametrize("minor", [6, sys.version_info[1]])
def test_a_framework_that_sees_no_gpu_says_so_of_every_mode(made_up: str, minor: int) -> None:
    python = probing.interpreter(minor)
    result, code = level2(python, "torch", PYTHONPATH=made_up, SEES="no", STICKY="no")
    assert (code, result.done, result.run["framework_version"]) == (0, True, "0.0")
    assert list(result.modes) == KEYS
    assert {mode["outcome"] for mode in result.modes.values()} == {"not-supported"}
    assert "torch.cuda.is_available() is False" in result.modes["fp32/default"]["reason"]


# -- real frameworks, on the processor: everything but the GPU is as it is there

ON_CPU = PACKAGE + (
    "import json, os\n"
    "from envcheck.collector.kernels import level2, records\n"
    "params = json.loads(sys.argv[2])\n"
    "from envcheck.collector.worker import messages\n"
    "tell = messages.Writer(os.dup(1))\n"
    "teller = records.Teller(tell)\n"
    "os.dup2(2, 1)\n"
    "module, problem = level2.framework.load(params['framework'])\n"
    "adapter = level2.SIDES[params['framework']].adapter(module, sys.argv[3])\n"
    "adapter.absent()\n"
    "adapter.ping()\n"
    "level2.measure(adapter, params, teller, 256)\n"
    "tell.done()\n"
    "os._exit(0)\n"
)
REAL = [
    ("tensorflow", 7, ["tensorflow==1.15.5", "protobuf<3.21", "numpy<1.19"], "/CPU:0"),
    ("tensorflow", 11, ["tensorflow-cpu"], "/CPU:0"),
    ("torch", 11, ["torch"], "cpu"),
    ("jax", 12, ["jax"], "cpu"),
]


@pytest.fixture(scope="module", params=REAL, ids=lambda real: real[2][0])
def real(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, str, str]:
    """(framework, its interpreter, the device's name)."""
    framework, minor, requirements, device = request.param
    folder = tmp_path_factory.mktemp("level2") / "env"
    made = install(folder, pythons.need(minor), *requirements)
    return framework, str(made / "bin" / "python"), device


@pytest.mark.slow
def test_a_real_framework_is_measured_on_its_cpu(real: tuple[str, str, str]) -> None:
    framework, python, device = real
    argv = [python, "-c", ON_CPU, str(probing.REPOSITORY), params(framework), device]
    result, code = reported(argv)
    assert (code, result.done, list(result.modes)) == (0, True, KEYS)
    default = result.modes["fp32/default"]
    switched = {default["call"], result.modes["fp32/switch-off"]["call"]}
    if result.modes["tf32/switch-on"]["outcome"] == "not-supported":  # TensorFlow 1 has no switch
        assert len(switched) == 1
    else:
        switched.add(result.modes["tf32/switch-on"]["call"])
        assert len(switched) == (3 if framework == "jax" else 2)
    for mode in result.modes.values():
        if mode["outcome"] == "ok":
            reading = read(msgspec.convert(mode, ModeRun).signatures, None, mode["mode"])
            assert reading.says != "tensor", reading.text
            rate = mode["rate"]
            assert rate["runs"] >= 1 and rate["tflops"] > 0 and rate["timer"] == "host-clock"
            assert rate["shape"][:2] == [256, 256]
    outputs = {s["vector"]: s["outputs"] for s in default["signatures"]}
    assert [output["bits"] for output in outputs["S1"]] == ["3F800002"]
    assert [output["bits"] for output in outputs["T1"]] == ["3F801800"]


TRACED = PACKAGE + (
    "from envcheck.collector.kernels import level2\n"
    "tf, problem = level2.framework.load('tensorflow')\n"
    "product = level2.SIDES['tensorflow'].adapter(tf, '/CPU:0').product('half', 'fp32', (64, 64, 64))\n"
    "v1 = tf.compat.v1\n"
    "options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)\n"
    "seen = v1.RunMetadata()\n"
    "product.session.run(product.total(7), options=options, run_metadata=seen)\n"
    "names = [node.node_name for stats in seen.step_stats.dev_stats for node in stats.node_stats]\n"
    "print(len([name for name in names if name.endswith(':MatMul')]))\n"
)


@pytest.mark.slow
def test_tensorflow_1_really_makes_every_product_of_a_chain(real: tuple[str, str, str]) -> None:
    framework, python, _ = real
    if framework != "tensorflow" or not list(Path(python).parents[1].glob("lib/python3.7")):
        pytest.skip("TensorFlow 1 alone has graphs to optimise")
    ended = ran([python, "-c", TRACED, str(probing.REPOSITORY)], text=True, check=True)
    assert ended.stdout.split()[-1] == "7"
