"""libnvidia-ml as a Python object with the C library's answers: for nvidia-ml-py in this process."""

from __future__ import annotations

import ctypes
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from envcheck.collector.nvml.binding import load
from envcheck.nvidia_ml_py import file

from .nvml_library import LETTERS

ALIASES = {"nvmlInitWithFlags": "nvmlInit", "nvmlInit_v2": "nvmlInit"}


@dataclass(frozen=True)
class Row:
    """One of gpus.rows(): see c/nvml.c."""

    handle: str
    name: str
    key: str
    code: int
    blobs: tuple[str, ...]

    @classmethod
    def read(cls, row: str) -> Row:
        handle, name, key, code, *rest = row.split()
        return cls(handle, name, key, int(code), tuple(rest[1:]))


class Library:
    """Stands in for ctypes.CDLL("libnvidia-ml.so.1"). ``without``: functions that it does not have."""

    def __init__(self, rows: Iterable[str], without: Iterable[str] = ()) -> None:
        self._rows: dict[str, list[Row]] = {}  # by name
        everything: list[Row] = []
        for row in map(Row.read, rows):
            if row.name == "*":
                for named in [everything, *self._rows.values()]:
                    named.append(row)
            else:
                self._rows.setdefault(row.name, list(everything)).append(row)
        self._everything = everything
        self._without = frozenset(without)

    def __getattr__(self, name: str) -> Callable[..., int]:
        letters = LETTERS.get(name)
        if name in ALIASES:
            return lambda *_arguments: self._row(0, ALIASES[name], "-").code % 10000
        if name == "nvmlDeviceGetFieldValues":
            return self._fields
        if name == "nvmlShutdown":
            return lambda: 0
        if letters is None or name in self._without:
            raise AttributeError(name)
        return lambda *arguments: self._call(name, letters, list(arguments))

    def _row(self, handle: int, name: str, key: str, version: bytes = b"") -> Row:
        """The first row that fits. Of structures with a version, that of the caller's version."""
        missing = 3
        for row in self._rows.get(name, self._everything):
            if row.handle in ("*", str(handle)) and row.key in ("*", key):
                if (
                    version
                    and not row.code
                    and row.blobs
                    and not _bytes(row.blobs[0]).startswith(version)
                ):
                    missing = 25
                    continue
                return row
        return Row("*", name, key, missing, ())

    def _call(self, name: str, letters: str, arguments: list[Any]) -> int:
        handle, keys, rooms, version = 0, [], [], b""
        for place, letter in enumerate(letters):
            one = arguments.pop(0)
            if letter == "h" and place == 0:
                handle = _handle(one)
            elif letter == "t":
                keys.append(one.value.decode())
            elif letter in "hk":
                keys.append(_handle(one) if letter == "h" else int(getattr(one, "value", one)))
            else:
                more = arguments.pop(0) if letter in "sl" else None
                rooms.append((letter, one, more))
                if letter == "v":
                    version = ctypes.string_at(_address(one), 4)
        row = self._row(handle, name, ",".join(map(str, keys)) or "-", version)
        if row.code:
            return row.code
        for blob, (letter, room, more) in zip(row.blobs, rooms, strict=False):
            if letter == "l":
                return _write_list(blob, room, more)
            data = _bytes(blob)
            ctypes.memmove(_address(room), data[: more.value] if more else data, len(data))
        return 0

    def _fields(self, device: Any, number: Any, values: Any) -> int:
        items = values._obj if hasattr(values, "_obj") else values
        for index in range(int(getattr(number, "value", number))):
            value = items[index]
            row = self._row(
                _handle(device), "nvmlDeviceGetFieldValues", f"{value.fieldId},{value.scopeId}"
            )
            if row.code in (15, 999):
                return row.code
            value.nvmlReturn = row.code
            if not row.code:
                value.valueType = int.from_bytes(_bytes(row.blobs[0])[:4], "little")
                ctypes.memmove(ctypes.addressof(value.value), _bytes(row.blobs[1]), 8)
        return 0


def _bytes(blob: str) -> bytes:
    return bytes.fromhex(blob.rpartition(":")[2].replace("-", ""))


def _address(room: Any) -> int:
    return ctypes.addressof(getattr(room, "_obj", room))


def _handle(device: Any) -> int:
    return int(ctypes.cast(device, ctypes.c_void_p).value or 0)


def _write_list(blob: str, count: Any, room: Any) -> int:
    there, had = int(blob.partition(":")[0]), count._obj.value
    count._obj.value = there
    if not there:
        return 0
    if room is None or had < there:
        return 7  # NVML_ERROR_INSUFFICIENT_SIZE
    ctypes.memmove(_address(room), _bytes(blob), len(_bytes(blob)))
    return 0


def module(rows: Iterable[str], without: Iterable[str] = ()) -> types.ModuleType:
    """nvidia-ml-py's own module, whose library gives these answers."""
    loaded = load(str(file()))
    loaded.nvmlLib = Library(rows, without)  # type: ignore[attr-defined]
    return loaded
