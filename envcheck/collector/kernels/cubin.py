"""Counts the arithmetic instructions of each kernel in a cubin, the program that the driver made.

From compute capability 7.0 on an instruction is a word of 16 bytes whose low 12 bits are its opcode. Each
opcode here was seen in what ptxas 12.9 and 13.5 made for 7.5 to 12.0, read by nvdisasm; HMMA's 236, of
7.0, in the disassembly of ptxas 12.9's output.
"""

import struct
from collections import Counter

_WORD = 16
_SECTION_LIMIT = 1 << 12  # sections: the driver's cubins have some twenty
_SIZE_LIMIT = 64 << 20

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_NO_BITS = 8  # SHT_NOBITS
_CUDA = 190  # e_machine
_TEXT = b".text."

TENSOR = {
    0x236: "HMMA",
    0x23C: "HMMA",
    0x237: "IMMA",
    0x23F: "DMMA",
    0x27A: "QMMA",
    # wgmma, with A in shared memory and in registers
    0x9F0: "HGMMA",
    0xDF0: "HGMMA",
    0x9F1: "IGMMA",
    0xDF1: "IGMMA",
    0x9F3: "QGMMA",
    0xDF3: "QGMMA",
}
# Of CUDA cores; the forms differ in where an operand is. HFMA2.MMA loads constants, and does half of the
# plain multiply-adds in half precision: its name is no sign of a Tensor Core. F2FP converts: beside HMMA
# it shows FP8 that was unpacked first.
CORES = {
    0x223: "FFMA",
    0x423: "FFMA",
    0x823: "FFMA",
    0xA23: "FFMA",
    0xC23: "FFMA",
    0x249: "FFMA2",
    0x22B: "DFMA",
    0xC2B: "DFMA",
    0x231: "HFMA2",
    0x431: "HFMA2",
    0x235: "HFMA2.MMA",
    0x435: "HFMA2.MMA",
    0x226: "IDP",
    0x23E: "F2FP",
}
KINDS = dict(TENSOR)
KINDS.update(CORES)


def opcodes(cubin):
    """{kernel: {kind: instructions}} of a cubin's bytes, for the kinds above.

    Raises ValueError for what is no cubin, or is damaged.
    """
    return {name: count(code) for name, code in sorted(kernels(cubin).items())}


def count(code):
    """{kind: instructions} of machine code."""
    found = Counter()
    for position in range(0, len(code) - _WORD + 1, _WORD):
        kind = KINDS.get((code[position] | code[position + 1] << 8) & 0xFFF)
        if kind is not None:
            found[kind] += 1
    return dict(found)


def kernels(cubin):
    """{name: machine code} of the sections that hold kernels. Raises ValueError."""
    if len(cubin) > _SIZE_LIMIT:
        raise ValueError("a cubin of %d bytes is too large to look into" % len(cubin))
    if cubin[:6] != b"\x7fELF\x02\x01" or len(cubin) < _HEADER.size:
        raise ValueError("not a 64-bit ELF file")
    fields = _HEADER.unpack_from(cubin)
    machine, table, size, number, names_at = fields[2], fields[6], *fields[11:]
    if machine != _CUDA:
        raise ValueError("an ELF file for machine %d, which is not CUDA" % machine)
    if size < _SECTION.size or number > _SECTION_LIMIT or names_at >= number:
        raise ValueError("the cubin is damaged: its section table makes no sense")
    if table + number * size > len(cubin):
        raise ValueError("the cubin is damaged: its section table ends behind the file")
    sections = [_SECTION.unpack_from(cubin, table + i * size) for i in range(number)]
    names = _content(cubin, sections[names_at])
    found = {}
    for section in sections:
        start = section[0]
        name = names[start : max(start, names.find(b"\0", start))]
        if name.startswith(_TEXT):
            found[name[len(_TEXT) :].decode("ascii", "replace")] = _content(cubin, section)
    return found


def _content(cubin, section):
    kind, offset, size = section[1], section[4], section[5]
    if kind == _NO_BITS:
        return b""
    if offset + size > len(cubin):
        raise ValueError("the cubin is damaged: a section ends behind the file")
    return cubin[offset : offset + size]
