"""A soak by the target's cuBLAS: its operands change, and without one that works the driver computes."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace
from typing import Any

import pytest
from test_level1 import Memory

from envcheck.collector.kernels.cublas_library import NoLibrary
from envcheck.collector.kernels.failures import NotSupported
from envcheck.collector.soak import products

LIBRARIES = {"libcublas": "/lib/libcublas.so.12", "libcublasLt": None}


class Device(Memory):
    """What a CublasProduct asks of a SoakDevice."""

    capability, multiprocessors = (8, 0), 14

    def __init__(self) -> None:
        super().__init__()
        self.cuda = SimpleNamespace(driver_version=lambda: "12.2", call=self.call)

    def memory_free(self) -> int:
        return 300 << 20  # room for 512 rows

    def link(self, text: str) -> str:
        return text

    def load(self, text: str) -> str:
        return text

    def prepare(self, module: str) -> None:
        assert ".entry compare(" in module

    def synchronize(self) -> None:
        pass

    def within(self, to: int, pointer: int, size: int) -> None:
        self.upload(to, self.download(pointer, size))


class Products:
    """Its product is A exclusive-or B, in both halves of C."""

    has = ("fp16",)

    def __init__(self, _library: Any, _capability: Any) -> None:
        pass

    def require(self, mode: str) -> None:
        if mode not in self.has:
            raise NotSupported(f"no {mode}")

    def starter(self, mode: str, operands: Any, types: tuple[str, str]) -> Any:
        assert (mode, types) == ("fp16", ("fp16", "fp32"))
        memory, size = operands._driver, 2 * operands.n**2

        def start() -> None:
            a, b = (
                int.from_bytes(memory.download(one, size), "big") for one in operands.of("fp16")
            )
            memory.upload(operands.c, 2 * (a ^ b).to_bytes(size, "big"))

        return start


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    found = SimpleNamespace(path=LIBRARIES["libcublas"], version=(12, 9, 1))
    monkeypatch.setattr(products.cublas_library, "load", lambda *_: found)
    monkeypatch.setattr(products, "Products", Products)


def test_each_round_has_other_operands_and_the_same_ones_on_every_gpu(library: None) -> None:
    made: Any = products.product(Device(), LIBRARIES, True)
    assert (made.level, made.mode, made.library_version) == ("cublas", "fp16", "12.9.1")
    rounds = [made.begin(number) for number in (0, 1, 2)]
    assert len({one["digest"] for one in rounds}) == 3 and not any(one["wrong"] for one in rounds)
    other: Any = products.product(Device(), LIBRARIES, True)
    assert [other.begin(number) for number in (0, 1, 2)] == rounds
    result = made._device.download(made.result, 4 * made.words)
    assert rounds[2]["digest"] == hashlib.sha256(result).hexdigest()
    assert made._device.download(made.reference, 4 * made.words) == result
    assert made.begin(1) == rounds[1], "a round is the same whenever it is run"


@pytest.mark.parametrize("why", ["no library", "no mode"])
def test_where_cublas_does_not_work_the_driver_computes_unless_it_was_asked_for(
    library: None, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    if why == "no mode":
        monkeypatch.setattr(Products, "has", ())
    else:

        def fails(*_arguments: Any) -> Any:
            raise NoLibrary("libcublas.so.12: cannot open shared object file")

        monkeypatch.setattr(products.cublas_library, "load", fails)
    driver = object()
    monkeypatch.setattr(products, "DriverProduct", lambda _device: driver)
    assert products.product(Device(), LIBRARIES, False) is driver
    assert products.product(Device(), None, False) is driver
    with pytest.raises((NoLibrary, NotSupported)):
        products.product(Device(), LIBRARIES, True)
