"""Frameworks that compute nothing: enough of torch, tensorflow and jax for L2 to be led through its paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from envcheck.collector.kernels.adapter import Adapter, Product

SIZE = {"fp32": 4, "fp16": 2, "bf16": 2}


class Teller:
    """Keeps what is reported: ("run", facts), ("begin", key, stage), ("mode", ModeRun) or ("done",)."""

    def __init__(self) -> None:
        self.reported: list[tuple[Any, ...]] = []

    def run(self, **facts: Any) -> None:
        self.reported.append(("run", facts))

    def begin(self, mode: str, stage: str, setting: str = "") -> None:
        self.reported.append(("begin", f"{mode}/{setting}", stage))

    def mode(self, **facts: Any) -> None:
        self.reported.append(("mode", facts))

    def done(self) -> None:
        self.reported.append(("done",))

    @property
    def stages(self) -> list[tuple[str, str]]:
        return [entry[1:] for entry in self.reported if entry[0] == "begin"]

    @property
    def modes(self) -> dict[str, dict[str, Any]]:
        """The last record of each key."""
        found = [entry[1] for entry in self.reported if entry[0] == "mode"]
        return {f"{mode['mode']}/{mode['setting']}": mode for mode in found}


class FakeAdapter(Adapter):  # type: ignore[misc]
    """A device on which a product takes a millisecond. ``fails(product, what)`` may raise."""

    name = "Fake"
    function = "fake.matmul"
    flag = "fake.tf32"

    def __init__(self, tf32: bool | None = False, cuda: str | None = "12.4") -> None:
        self.state = tf32
        self.cuda = cuda
        self.stubborn = False
        self.fails: Callable[[Any, str], None] = lambda product, what: None
        self.dead: Exception | None = None
        self.log: list[str] = []
        super().__init__(SimpleNamespace(__version__="1.0"), "fake:0")

    def tf32(self) -> bool | None:
        return self.state

    def set_tf32(self, allowed: bool) -> None:
        if not self.stubborn:
            self.state = allowed

    def built_cuda(self) -> str | None:
        return self.cuda

    def ping(self) -> None:
        if self.dead:
            raise self.dead

    def product(self, setting: str, element_type: str, shape: Any, data: Any = None) -> FakeProduct:
        product = FakeProduct(self, setting, shape)
        product.element_type, product.matrices = element_type, data
        self.fails(product, "make")
        return product


class FakeProduct(Product):  # type: ignore[misc]
    element_type: str
    matrices: Any

    def launch(self) -> FakeProduct:
        self.adapter.fails(self, "bits" if self.matrices else "rate")
        return self

    def wait(self, result: Any) -> None:
        pass

    def data(self, result: Any) -> bytes:
        m, n, _ = self.shape
        return b"\1" * (m * n * SIZE[self.element_type])

    def seconds(self, count: int, meanwhile: Callable[[], None] | None = None) -> float:
        self.adapter.switch(self.setting)
        self.adapter.log.append(f"{count} {self.element_type} {self.setting} {self.adapter.state}")
        self.launch()
        if meanwhile:
            meanwhile()
        return count * (4e-3 if self.setting == "switch-off" else 1e-3)


# -- torch


class Tensor:
    is_cuda = True

    def __init__(self, shape: Any) -> None:
        self.shape = shape


def torch(cuda: str | None = "12.4", seen: bool = True, **more: Any) -> Any:
    """PyTorch on a made-up A100, whose events tick a millisecond for every product."""
    counted = SimpleNamespace(products=0)

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            self.at = counted.products

        def synchronize(self) -> None:
            pass

        def elapsed_time(self, other: Any) -> float:
            return float(other.at - self.at)

    def matmul(left: Tensor, right: Tensor) -> Tensor:
        counted.products += 1
        return Tensor((left.shape[0], right.shape[1]))

    def init() -> None:
        raise RuntimeError("Found no NVIDIA driver\non your system")

    def randn(shape: Any, device: str) -> Any:
        assert device == "cuda:0"
        return SimpleNamespace(to=lambda dtype: Tensor(shape))

    gpu = SimpleNamespace(name="NVIDIA A100", major=8, minor=0, multi_processor_count=108)
    return SimpleNamespace(
        __version__="2.4.0",
        version=SimpleNamespace(cuda=cuda),
        float32="float32",
        float16="float16",
        matmul=matmul,
        randn=randn,
        backends=SimpleNamespace(cuda=SimpleNamespace(matmul=SimpleNamespace(allow_tf32=False))),
        cuda=SimpleNamespace(
            is_available=lambda: seen,
            init=init,
            Event=Event,
            empty_cache=lambda: None,
            synchronize=lambda: None,
            get_device_properties=lambda index: gpu,
        ),
        **more,
    )


# -- tensorflow


def tensorflow(gpus: int = 1, cuda: bool = True, runs_on: str = "GPU:0") -> Any:
    """TensorFlow 2, whose products end up on ``runs_on``."""

    @contextmanager
    def device(name: str) -> Iterator[None]:
        yield

    def matmul(left: Any, right: Any) -> Any:
        return SimpleNamespace(device=f"/job:localhost/replica:0/task:0/device:{runs_on}")

    state = SimpleNamespace(tf32=True)
    devices = [SimpleNamespace(name=f"/physical_device:GPU:{i}") for i in range(gpus)]
    return SimpleNamespace(
        __version__="2.15.0",
        float32="float32",
        device=device,
        matmul=matmul,
        cast=lambda value, dtype: value,
        random=SimpleNamespace(normal=lambda shape: shape),
        test=SimpleNamespace(is_built_with_cuda=lambda: cuda),
        sysconfig=SimpleNamespace(
            get_build_info=lambda: {"is_cuda_build": cuda, "cuda_version": "12.2"}
        ),
        config=SimpleNamespace(
            list_physical_devices=lambda kind: devices,
            experimental=SimpleNamespace(
                list_physical_devices=lambda kind: devices,
                get_device_details=lambda which: {"compute_capability": (8, 0)},
                tensor_float_32_execution_enabled=lambda: state.tf32,
                enable_tensor_float_32_execution=lambda to: setattr(state, "tf32", to),
            ),
        ),
    )


# -- jax


def jax(problem: Exception | None = None, found: int = 1) -> Any:
    """JAX whose compiled functions note the precision that they were traced with."""

    def devices(platform: str) -> list[Any]:
        if problem:
            raise problem
        return [SimpleNamespace(device_kind="NVIDIA L4", compute_capability="8.9")] * found

    @contextmanager
    def default_device(device: Any) -> Iterator[None]:
        yield

    class Array:
        def astype(self, dtype: str) -> Array:
            return self

        def block_until_ready(self) -> None:
            pass

    compiled: list[Any] = []

    def jit(function: Callable[..., Any]) -> Callable[..., Any]:
        compiled.append(function)
        return function

    return SimpleNamespace(
        __version__="0.4.30",
        devices=devices,
        default_device=default_device,
        compiled=compiled,
        jit=jit,
        config=SimpleNamespace(jax_default_matmul_precision=None),
        random=SimpleNamespace(PRNGKey=lambda seed: seed, normal=lambda key, shape: Array()),
        numpy=SimpleNamespace(float32="float32", matmul=lambda a, b, precision: precision),
    )
