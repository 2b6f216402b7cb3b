"""The smallest kernel module: an ELF file that says what it is."""

from __future__ import annotations

import struct


def kernel_module(modinfo: bytes, wide: bool = True) -> bytes:
    """An ELF file with one .modinfo section (and the table of names that every one has)."""
    names = b"\0.modinfo\0.shstrtab\0"
    head, entry = (64, 64) if wide else (52, 40)
    start = head
    table = start + len(modinfo) + len(names)
    ident = b"\x7fELF" + bytes((2 if wide else 1, 1, 1)) + bytes(9)
    if wide:
        header = struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, table, 0, head, 0, 0, entry, 3, 2)
    else:
        header = struct.pack("<HHIIIIIHHHHHH", 1, 3, 1, 0, 0, table, 0, head, 0, 0, entry, 3, 2)

    def section(name: int, kind: int, offset: int, length: int) -> bytes:
        if wide:
            return struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, offset, length, 0, 0, 1, 0)
        return struct.pack("<IIIIIIIIII", name, kind, 0, 0, offset, length, 0, 0, 1, 0)

    sections = (
        section(0, 0, 0, 0)
        + section(1, 1, start, len(modinfo))
        + section(10, 3, start + len(modinfo), len(names))
    )
    return ident + header + modinfo + names + sections


def modinfo(version: str = "550.54.15", licence: str = "NVIDIA") -> bytes:
    fields = (
        f"version={version}",
        "supported=external",
        f"license={licence}",
        "vermagic=6.8.0 SMP",
    )
    return b"\0".join(field.encode() for field in fields) + b"\0"
