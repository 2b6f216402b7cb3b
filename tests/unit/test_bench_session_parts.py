"""What TensorFlow 1's rows show in their graphs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from envcheck.collector.bench.session import evidence


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
    result = evidence.of_graphs([made])
    assert (result["convolutions"], result["half_convolutions"]) == (1, 1)
    assert (result["products"], result["half_products"]) == (1, 1)
    assert result["math_dtype"] == "float16"


def test_what_xla_hides_is_not_counted_and_what_it_wrote_down_is() -> None:
    made = graph(node("_XlaCompile"), node("_XlaRun"), node("MatMul"))
    hidden = evidence.of_graphs([made])
    assert hidden["hidden_by_compiler"] is True and "math_dtype" not in hidden
    module = (
        "  dot.1 = f16[4,8]{1,0} dot(f16[4,16]{1,0} a, f16[16,8]{1,0} b), lhs_contracting_dims={1}"
    )
    result = evidence.of_graphs([made], [module])
    assert (result["products"], result["half_products"]) == (2, 1)
    assert result["math_dtype"] == "float16" and "hidden_by_compiler" not in result
