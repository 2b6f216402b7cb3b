"""What TensorFlow 1's rows are started with, and what their graphs say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from envcheck.collector.bench import session
from envcheck.collector.bench.session import evidence
from envcheck.collector.bench.styles import Place
from envcheck.collector.kernels.failures import NotSupported

ROW = {"precision": "fp32", "compiled": False, "gpus": []}


def test_fp32_is_fp32_and_xla_is_for_cpus_too() -> None:
    off = {"TF_ENABLE_AUTO_MIXED_PRECISION": "0"}
    assert session.environ(ROW) == {**off, "NVIDIA_TF32_OVERRIDE": "0"}
    assert session.environ({**ROW, "precision": "amp", "gpus": ["a"], "compiled": True}) == off
    found = session.environ({**ROW, "precision": "tf32", "compiled": True})
    assert found == {**off, "TF_XLA_FLAGS": "--tf_xla_cpu_global_jit"}


def test_tensorflow_2_is_not_this_style() -> None:
    with pytest.raises(NotSupported, match=r"TensorFlow 1's, and this is 2\.15"):
        session.build(SimpleNamespace(__version__="2.15.1"), ROW, Place())


def node(op: str, kind: int = 1, calls: str = "") -> Any:
    """A NodeDef. kind: 1 for float32, 19 for float16."""
    attr = {"T": SimpleNamespace(type=kind, HasField=lambda _name: False)}
    if calls:
        attr["f"] = SimpleNamespace(
            func=SimpleNamespace(name=calls), HasField=lambda name: name == "func"
        )
    return SimpleNamespace(op=op, attr=attr, device="/device:GPU:0")


def graph(*nodes: Any, **functions: list[Any]) -> Any:
    library = [
        SimpleNamespace(signature=SimpleNamespace(name=name), node_def=inside)
        for name, inside in functions.items()
    ]
    return SimpleNamespace(node=list(nodes), library=SimpleNamespace(function=library))


def test_what_functions_call_is_counted_once_and_what_nobody_calls_is_not() -> None:
    made = graph(
        node("Conv2D", 19),
        node("PartitionedCall", calls="step"),
        node("PartitionedCall", calls="step"),
        step=[node("MatMul", 19), node("PartitionedCall", calls="step")],
        unused=[node("MatMul")],
    )
    told = evidence.of_graphs([made])
    assert (told["convolutions"], told["half_convolutions"]) == (1, 1)
    assert (told["products"], told["half_products"]) == (1, 1)
    assert told["math_dtype"] == "float16"


def test_what_xla_hides_is_not_counted_and_what_it_wrote_down_is() -> None:
    made = graph(node("_XlaCompile"), node("_XlaRun"), node("MatMul"))
    hidden = evidence.of_graphs([made])
    assert hidden["hidden_by_compiler"] is True and "math_dtype" not in hidden
    module = (
        "  dot.1 = f16[4,8]{1,0} dot(f16[4,16]{1,0} a, f16[16,8]{1,0} b), lhs_contracting_dims={1}"
    )
    told = evidence.of_graphs([made], [module])
    assert (told["products"], told["half_products"]) == (2, 1)
    assert told["math_dtype"] == "float16" and "hidden_by_compiler" not in told
