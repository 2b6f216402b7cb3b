"""The smallest ELF files: a kernel module that says what it is, a library that says what it needs."""

from __future__ import annotations

import struct
from collections.abc import Sequence


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


def shared_object(
    needed: Sequence[str] = (), soname: str = "", runpath: str = "", undefined: Sequence[str] = ()
) -> bytes:
    """An x86-64 library without code that the loader maps, with these entries in its dynamic section.

    undefined: symbols that another library has to define.
    """
    strings, entries = b"\0", []
    for tag, text in [*((1, one) for one in needed), (14, soname), (29, runpath)]:
        if text:
            entries.append((tag, len(strings)))
            strings += text.encode() + b"\0"
    lacked = bytes(24)  # the empty symbol
    for text in undefined:
        lacked += struct.pack("<IBBHQQ", len(strings), 0x12, 0, 0, 0, 0)
        strings += text.encode() + b"\0"
    strings += bytes(-len(strings) % 8)
    start = 64 + 2 * 56
    symbols = start + 16 * (len(entries) + 6)
    hashes = symbols + len(lacked)
    count = len(lacked) // 24
    chains = struct.pack("<II", 1, count) + bytes(4 + 4 * count)  # of one bucket that holds none
    chains += bytes(-len(chains) % 8 + 8)
    names = hashes + len(chains)
    entries += [(4, hashes), (5, names), (6, symbols), (10, len(strings)), (11, 24), (0, 0)]
    dynamic = b"".join(struct.pack("<qQ", *entry) for entry in entries)
    body = dynamic + lacked + chains + strings
    ident = b"\x7fELF" + bytes((2, 1, 1)) + bytes(9)
    end = start + len(body) if undefined else 0
    sections = (64, 3, 0) if undefined else (0, 0, 0)
    header = struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, end, 0, 64, 56, 2, *sections)
    load = struct.pack("<IIQQQQQQ", 1, 6, 0, 0, 0, start + len(body), start + len(body), 0x1000)
    at = struct.pack("<IIQQQQQQ", 2, 6, start, start, start, len(dynamic), len(dynamic), 8)
    rows = (  # .dynsym and .dynstr, whose names nobody reads
        struct.pack("<IIQQQQIIQQ", 0, 11, 0, symbols, symbols, len(lacked), 2, 1, 8, 24),
        struct.pack("<IIQQQQIIQQ", 0, 3, 0, names, names, len(strings), 0, 0, 1, 0),
    )
    table = bytes(64) + b"".join(rows) if undefined else b""
    return ident + header + load + at + body + table
