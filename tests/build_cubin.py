"""Builds the smallest cubin: an ELF file whose kernels consist of given opcodes."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")


def cubin(kernels: Mapping[str, Iterable[int]], machine: int = 190) -> bytes:
    """An ELF file with a ``.text.NAME`` section for each kernel, an instruction for each opcode."""
    names, content, sections = b"\0", b"", []
    for name, opcodes in kernels.items():
        code = b"".join(struct.pack("<QQ", 0xABCD_0000_0000_0000 | opcode, 7) for opcode in opcodes)
        sections.append((len(names), 1, code))
        names += b".text." + name.encode() + b"\0"
    sections.append((len(names), 3, names + b".shstrtab\0"))
    made = b"\0" * _SECTION.size
    at = _HEADER.size
    for name, kind, data in sections:
        made += _SECTION.pack(name, kind, 0, 0, at, len(data), 0, 0, 16, 0)
        content += data
        at += len(data)
    ident = b"\x7fELF\x02\x01\x01\x33\x07".ljust(16, b"\0")
    header = _HEADER.pack(
        ident, 2, machine, 129, 0, 0, at, 0x500550, 64, 56, 0, 64, len(sections) + 1, len(sections)
    )
    return header + content + made
