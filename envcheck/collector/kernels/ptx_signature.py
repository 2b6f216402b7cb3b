"""Kernels that make one small tile of D = C + A x B with one kind of instruction, for its bits.

Block i makes tile i. A tile of A is row-major, one of B column-major (so both have k contiguous), those of
C and D are row-major; tiles stand one behind the other. Parameters: the addresses of A, B, C and D, and
how many steps of the instruction's k a row has. No value is reordered: k goes up.
"""

from .ptx import AS_WRITTEN, FMA, WGMMA, WMMA, entry, names
from .vectors import SIZES

PARAMETERS = (
    ("u64", "a_address"),
    ("u64", "b_address"),
    ("u64", "c_address"),
    ("u64", "d_address"),
    ("u32", "step_count"),
)
_REGISTERS = [
    ".reg .pred %more",
    ".reg .b32 %thread, %tile, %count, %bytes, %offset",
    ".reg .b64 %a_at, %b_at, %c_at, %d_at, %wide",
]


def name(instruction):
    """The kernel's name in its module."""
    return "signature_" + instruction.output_type


def kernel(instruction):
    """The PTX of the instruction's kernel. A block has ``instruction.threads`` threads."""
    make = {FMA: _fma, WMMA: _wmma, WGMMA: _wgmma}.get(instruction.kind, _mma)
    registers, body = make(instruction)
    return entry(
        name(instruction),
        PARAMETERS,
        instruction.threads,
        _REGISTERS + registers,
        _begin(instruction) + body + ["ret"],
    )


def _begin(instruction):
    """The addresses of this block's tiles, and the bytes of a row of A."""
    m, n, _k = instruction.shape
    size = m * n * SIZES[instruction.output_type]
    return [
        "ld.param.u64 %a_at, [a_address]",
        "ld.param.u64 %b_at, [b_address]",
        "ld.param.u64 %c_at, [c_address]",
        "ld.param.u64 %d_at, [d_address]",
        "ld.param.u32 %count, [step_count]",
        "cvta.to.global.u64 %a_at, %a_at",
        "cvta.to.global.u64 %b_at, %b_at",
        "cvta.to.global.u64 %c_at, %c_at",
        "cvta.to.global.u64 %d_at, %d_at",
        "mov.u32 %thread, %tid.x",
        "mov.u32 %tile, %ctaid.x",
        "mul.lo.u32 %%bytes, %%count, %d" % instruction.step,
        "mul.lo.u32 %%offset, %%bytes, %d" % m,
        "mul.wide.u32 %wide, %offset, %tile",
        "add.u64 %a_at, %a_at, %wide",
        "mul.lo.u32 %%offset, %%bytes, %d" % n,
        "mul.wide.u32 %wide, %offset, %tile",
        "add.u64 %b_at, %b_at, %wide",
        "mul.wide.u32 %%wide, %%tile, %d" % size,
        "add.u64 %c_at, %c_at, %wide",
        "add.u64 %d_at, %d_at, %wide",
    ]


def _forward(pointer, offset):
    """Move a pointer by a 32-bit register's bytes."""
    return ["mul.wide.u32 %%wide, %s, 1" % offset, "add.u64 %s, %s, %%wide" % (pointer, pointer)]


def _again(instruction, pointers):
    """To the next step of k, while there is one."""
    moves = ["add.u64 %s, %s, %d" % (pointer, pointer, instruction.step) for pointer in pointers]
    return moves + ["sub.u32 %count, %count, 1", "setp.ne.u32 %more, %count, 0", "@%more bra NEXT"]


def _fma(instruction):
    """Each thread makes one element, in the order of k: row thread / 8, column thread % 8."""
    body = ["shr.u32 %row, %thread, 3", "and.b32 %column, %thread, 7"]
    body += ["mul.lo.u32 %offset, %row, %bytes"] + _forward("%a_at", "%offset")
    body += ["mul.lo.u32 %offset, %column, %bytes"] + _forward("%b_at", "%offset")
    body += ["shl.b32 %offset, %thread, 2"]
    body += _forward("%c_at", "%offset") + _forward("%d_at", "%offset")
    body += ["ld.global.f32 %sum, [%c_at]", "NEXT:", AS_WRITTEN]
    body += ["ld.global.f32 %left, [%a_at]", "ld.global.f32 %right, [%b_at]"]
    body += [instruction.words + " %sum, %left, %right, %sum"]
    body += _again(instruction, ("%a_at", "%b_at"))
    body += ["st.global.f32 [%d_at], %sum"]
    return [".reg .b32 %row, %column", ".reg .f32 %sum, %left, %right"], body


def _wmma(instruction):
    """The instruction set loads and stores whole matrices itself, given the distance between rows."""
    a, b = names("a", instruction.a_registers), names("b", instruction.b_registers)
    c = names("c", instruction.c_registers)
    word = "f32" if instruction.output_type == "fp32" else "f16"
    body = [
        "shr.u32 %offset, %bytes, 1",  # elements of a row
        "wmma.load.c.sync.row.m16n16k16.global.%s %s, [%%c_at], 16" % (word, c),
        "NEXT:",
        AS_WRITTEN,
        "wmma.load.a.sync.row.m16n16k16.global.f16 %s, [%%a_at], %%offset" % a,
        "wmma.load.b.sync.col.m16n16k16.global.f16 %s, [%%b_at], %%offset" % b,
        "%s %s, %s, %s, %s" % (instruction.words, c, a, b, c),
    ]
    body += _again(instruction, ("%a_at", "%b_at"))
    body += ["wmma.store.d.sync.row.m16n16k16.global.%s [%%d_at], %s, 16" % (word, c)]
    kind = "f32" if word == "f32" else "b32"
    return [".reg .b32 %a<8>, %b<8>", ".reg ." + kind + " %c<8>"], body


def _fragment_addresses(instruction):
    """Where a thread's part of A, C and D begins: row ``group``, bytes ``member`` x 4 of a step.

    Group and member are the PTX ISA's groupID and threadID_in_group. A warp of a warpgroup has its own 16
    rows. Every shape that is used here has this layout; what follows lies 8 rows or 16 bytes further.
    """
    n = instruction.shape[1]
    size = SIZES[instruction.output_type]
    body = ["and.b32 %lane, %thread, 31", "shr.u32 %group, %lane, 2", "and.b32 %member, %lane, 3"]
    if instruction.kind == WGMMA:
        body += ["shr.u32 %row, %thread, 5", "shl.b32 %row, %row, 4", "add.u32 %row, %row, %group"]
    else:
        body += ["mov.b32 %row, %group"]
    body += ["mul.lo.u32 %offset, %row, %bytes", "mad.lo.u32 %offset, %member, 4, %offset"]
    body += _forward("%a_at", "%offset")
    body += ["mul.wide.u32 %wide, %bytes, 8", "add.u64 %a_below, %a_at, %wide"]
    body += ["mul.lo.u32 %%offset, %%row, %d" % (n * size)]
    body += ["mad.lo.u32 %%offset, %%member, %d, %%offset" % (2 * size)]
    return body + _forward("%c_at", "%offset") + _forward("%d_at", "%offset")


_FRAGMENT = [".reg .b32 %lane, %group, %member, %row", ".reg .b64 %a_below"]


def _load_a(instruction):
    """Eight rows further comes before sixteen bytes further."""
    places = [("%a_at", 0), ("%a_below", 0), ("%a_at", 16), ("%a_below", 16)]
    return [
        "ld.global.b32 %%a%d, [%s+%d]" % ((number,) + places[number])
        for number in range(instruction.a_registers)
    ]


def _c_places(instruction):
    """Byte offsets of a thread's registers of C: two elements beside each other, then eight rows further."""
    n, size = instruction.shape[1], SIZES[instruction.output_type]
    beside = (0, 4) if size == 4 else (0,)
    below = (0, 8 * n * size) if instruction.shape[0] > 8 else (0,)
    return [down + across for down in below for across in beside]


def _load_c(instruction):
    return ["ld.global.b32 %%c%d, [%%c_at+%d]" % pair for pair in enumerate(_c_places(instruction))]


def _store_d(instruction):
    return [
        "st.global.b32 [%%d_at+%d], %%c%d" % (place, number)
        for number, place in enumerate(_c_places(instruction))
    ]


def _mma(instruction):
    a, b = names("a", instruction.a_registers), names("b", instruction.b_registers)
    c = names("c", instruction.c_registers)
    body = _fragment_addresses(instruction)
    body += ["mul.lo.u32 %offset, %group, %bytes", "mad.lo.u32 %offset, %member, 4, %offset"]
    body += _forward("%b_at", "%offset")
    body += _load_c(instruction) + ["NEXT:", AS_WRITTEN] + _load_a(instruction)
    body += [
        "ld.global.b32 %%b%d, [%%b_at+%d]" % (number, 16 * number)
        for number in range(instruction.b_registers)
    ]
    body += ["%s %s, %s, %s, %s" % (instruction.words, c, a, b, c)]
    body += _again(instruction, ("%a_at", "%a_below", "%b_at")) + _store_d(instruction)
    return _FRAGMENT + [".reg .b32 %a<4>, %b<2>, %c<4>"], body


def _wgmma(instruction):
    """A comes from registers, as in ``mma``; B, 8 columns of 32 bytes, lies in shared memory.

    There it is two core matrices of 8 columns x 16 bytes, each contiguous, the second 128 bytes behind the
    first. The descriptor gives that distance for both of its offsets: with 8 columns one of them is unused.
    """
    a, c = names("a", instruction.a_registers), names("c", instruction.c_registers)
    body = _fragment_addresses(instruction)
    # word w of column j, read by thread 8 j + w (the second 64 threads do the same again)
    body += ["and.b32 %word, %thread, 63", "shr.u32 %column, %word, 3", "and.b32 %word, %word, 7"]
    body += ["mul.lo.u32 %offset, %column, %bytes", "mad.lo.u32 %offset, %word, 4, %offset"]
    body += _forward("%b_at", "%offset")
    body += ["mov.u32 %shared, b_matrices", "shr.u32 %offset, %word, 2"]
    body += ["mad.lo.u32 %put, %offset, 128, %shared", "mad.lo.u32 %put, %column, 16, %put"]
    body += ["and.b32 %word, %word, 3", "mad.lo.u32 %put, %word, 4, %put"]
    body += descriptor("%where", "%shared", 128, 128) + ["setp.eq.u32 %keep, %thread, %thread"]
    body += _load_c(instruction) + ["NEXT:", AS_WRITTEN] + _load_a(instruction)
    body += ["ld.global.b32 %b0, [%b_at]", "st.shared.b32 [%put], %b0"]
    body += ["fence.proxy.async.shared::cta", "bar.sync 0", "wgmma.fence.sync.aligned"]
    body += ["%s %s, %s, %%where, %%keep, 1, 1" % (instruction.words, c, a)]
    body += ["wgmma.commit_group.sync.aligned", "wgmma.wait_group.sync.aligned 0", "bar.sync 0"]
    body += _again(instruction, ("%a_at", "%a_below", "%b_at")) + _store_d(instruction)
    registers = [".reg .b32 %a<4>, %b<1>, %word, %column, %shared, %put", ".reg .f32 %c<4>"]
    registers += [".reg .pred %keep", ".reg .b64 %where"]
    return _FRAGMENT + registers + [".shared .align 128 .b8 b_matrices[256]"], body


def descriptor(to, shared, leading, stride):
    """Lines that put the matrix descriptor of a shared address (32-bit register) into a 64-bit register.

    Without swizzle; offsets in bytes; every field counts in 16 bytes (PTX ISA, "Matrix Descriptor Format").
    """
    return [
        "shr.u32 %%offset, %s, 4" % shared,
        "and.b32 %offset, %offset, 16383",
        "mul.wide.u32 %s, %%offset, 1" % to,
        "or.b64 %s, %s, %d" % (to, to, leading // 16 << 16 | stride // 16 << 32),
    ]
