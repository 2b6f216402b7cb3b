"""Kernels that do nothing but one kind of instruction, for the number of multiply-adds a clock.

Every warp keeps several accumulators going, so that no instruction waits for the one before it. Operands
are loaded once, from memory: neither the compiler nor a power-saving multiplier knows what they are. Each
warp writes down the multiprocessor's clock before and after its loop, and which multiprocessor it was.
Parameters: the addresses of operands, results and accumulators' remains, and the number of iterations.
"""

import struct
from collections import namedtuple

from .ptx import AS_WRITTEN, FMA, WARP, WGMMA, WMMA, entry, names, wgmma
from .ptx_signature import descriptor

NAME = "rate"
PARAMETERS = (
    ("u64", "operand_address"),
    ("u64", "result_address"),
    ("u64", "remains_address"),
    ("u32", "iteration_count"),
)
RESULT = struct.Struct("<QQQ")  # of a warp: clock before, clock after, multiprocessor
REMAINS = 4  # bytes a thread

# threads: of a block. words: 32-bit operands that a thread loads. fma: multiply-adds of a warp in one
# iteration. repeats: the instruction's number in an iteration of the loop.
Shape = namedtuple("Shape", "instruction threads words left right rounds repeats fma")

_WARPS = 8
_WIDE = 256  # columns of a wgmma: fewer do not keep the unit busy


def shape(instruction):
    """How the rate kernel of an instruction is built."""
    if instruction.kind == WGMMA:
        instruction = wgmma(_WIDE)
        # each thread brings a share of two warpgroups' A and one B, in words, to shared memory
        words = (2 * instruction.shape[0] + _WIDE) * instruction.step // 4 // (_WARPS * WARP)
        return _shape(instruction, _WARPS * WARP, words, 1, 1, 8)
    if instruction.kind == FMA:
        return _shape(instruction, 2 * _WARPS * WARP, 4 + 4, 4, 4, 8)
    words = 2 * instruction.a_registers + 4 * instruction.b_registers
    # a wmma is up to sixteen instructions of the chip
    return _shape(instruction, _WARPS * WARP, words, 2, 4, 4 if instruction.kind == WMMA else 8)


def _shape(instruction, threads, words, left, right, rounds):
    m, n, k = instruction.shape
    repeats = left * right * rounds
    fma = repeats * m * n * k * WARP // instruction.threads
    return Shape(instruction, threads, words, left, right, rounds, repeats, fma)


def operand_bytes(shape):
    return shape.threads * shape.words * 4


def kernel(instruction):
    """The PTX of the instruction's rate kernel."""
    made = shape(instruction)
    make = _wgmma if instruction.kind == WGMMA else registers
    declarations, before, loop, accumulators = make(made)
    declarations += [
        ".reg .pred %more, %first",
        ".reg .b32 %thread, %block, %count, %offset, %lane, %place",
        ".reg .b64 %operands, %results, %remains, %wide, %begin, %end, %unit",
    ]
    body = _begin(made) + before
    body += ["bar.sync 0", "mov.u64 %begin, %clock64", "NEXT:", AS_WRITTEN] + loop
    body += ["sub.u32 %count, %count, 1", "setp.ne.u32 %more, %count, 0", "@%more bra NEXT"]
    if instruction.kind == WGMMA:
        body += ["wgmma.wait_group.sync.aligned 0"]
    body += ["mov.u64 %end, %clock64"] + _end(made, accumulators)
    return entry(NAME, PARAMETERS, made.threads, declarations, body + ["ret"])


def _begin(shape):
    return [
        "ld.param.u64 %operands, [operand_address]",
        "ld.param.u64 %results, [result_address]",
        "ld.param.u64 %remains, [remains_address]",
        "ld.param.u32 %count, [iteration_count]",
        "cvta.to.global.u64 %operands, %operands",
        "cvta.to.global.u64 %results, %results",
        "cvta.to.global.u64 %remains, %remains",
        "mov.u32 %thread, %tid.x",
        "mov.u32 %block, %ctaid.x",
        "and.b32 %lane, %thread, 31",
        "mul.wide.u32 %%wide, %%thread, %d" % (4 * shape.words),
        "add.u64 %operands, %operands, %wide",
    ]


def _end(shape, accumulators):
    """Write the warp's clocks, and what all accumulators come to, so that none is left out."""
    warps = shape.threads // WARP
    body = [
        "mov.u32 %offset, %smid",
        "cvt.u64.u32 %unit, %offset",
        "shr.u32 %offset, %thread, 5",
        "mad.lo.u32 %%offset, %%block, %d, %%offset" % warps,
        "mul.wide.u32 %%wide, %%offset, %d" % RESULT.size,
        "add.u64 %results, %results, %wide",
        "setp.eq.u32 %first, %lane, 0",
        "@%first st.global.u64 [%results], %begin",
        "@%first st.global.u64 [%results+8], %end",
        "@%first st.global.u64 [%results+16], %unit",
        "mov.b32 %offset, 0",
    ]
    for accumulator in accumulators:
        body += ["mov.b32 %%place, %s" % accumulator, "xor.b32 %offset, %offset, %place"]
    return body + [
        "mad.lo.u32 %%place, %%block, %d, %%thread" % shape.threads,
        "mul.wide.u32 %%wide, %%place, %d" % REMAINS,
        "add.u64 %remains, %remains, %wide",
        "st.global.b32 [%remains], %offset",
    ]


def registers(shape):
    """Operands in registers: some of A and some of B, and an accumulator for each pair of them."""
    instruction = shape.instruction
    scalar = instruction.kind == FMA
    sizes = (1, 1, 1)
    if not scalar:
        sizes = (instruction.a_registers, instruction.b_registers, instruction.c_registers)
    kind = "f32" if instruction.output_type == "fp32" and instruction.kind in (FMA, WMMA) else "b32"
    operand = "f32" if scalar else "b32"
    declarations = []
    loads, zero = [], []
    place = 0
    for letter, number, size in (("a", shape.left, sizes[0]), ("b", shape.right, sizes[1])):
        for i in range(number):
            declarations.append(".reg .%s %%%s%d_<%d>" % (operand, letter, i, size))
            for j in range(size):
                loads.append(
                    "ld.global.%s %%%s%d_%d, [%%operands+%d]" % (operand, letter, i, j, 4 * place)
                )
                place += 1
    accumulators = []
    products = []
    for i in range(shape.left):
        for j in range(shape.right):
            c = "c%d_%d_" % (i, j)
            declarations.append(".reg .%s %%%s<%d>" % (kind, c, sizes[2]))
            mine = ["%%%s%d" % (c, number) for number in range(sizes[2])]
            zero += ["mov.%s %s, %s" % (kind, one, _ZERO[kind]) for one in mine]
            accumulators += mine
            operands = [
                _operand(scalar, *one)
                for one in (
                    (c, sizes[2]),
                    ("a%d_" % i, sizes[0]),
                    ("b%d_" % j, sizes[1]),
                    (c, sizes[2]),
                )
            ]
            products.append("%s %s" % (instruction.words, ", ".join(operands)))
    return declarations, loads + zero, products * shape.rounds, accumulators


_ZERO = {"f32": "0f00000000", "b32": "0"}


def _operand(scalar, prefix, size):
    return "%" + prefix + "0" if scalar else names(prefix, size)


def _wgmma(shape):
    """Two warpgroups, each with its A and all of B in shared memory, in core matrices of 128 bytes."""
    instruction = shape.instruction
    c = names("c", instruction.c_registers)
    a_bytes = instruction.shape[0] * instruction.step
    declarations = [
        ".reg .f32 %%c<%d>" % instruction.c_registers,
        ".reg .b32 %shared, %put, %word, %group",
        ".reg .b64 %left, %right",
        ".reg .pred %keep",
        ".shared .align 128 .b8 matrices[%d]" % operand_bytes(shape),
    ]
    before = [
        "mov.u32 %shared, matrices",
        "mad.lo.u32 %%put, %%thread, %d, %%shared" % (4 * shape.words),
    ]
    for number in range(shape.words):
        before += ["ld.global.b32 %%word, [%%operands+%d]" % (4 * number)]
        before += ["st.shared.b32 [%%put+%d], %%word" % (4 * number)]
    before += ["shr.u32 %group, %thread, 7"]
    before += ["mad.lo.u32 %%put, %%group, %d, %%shared" % a_bytes]
    before += descriptor("%left", "%put", 128, 256)
    before += ["add.u32 %%put, %%shared, %d" % (2 * a_bytes)]
    before += descriptor("%right", "%put", 128, 256)
    accumulators = ["%%c%d" % number for number in range(instruction.c_registers)]
    before += ["mov.f32 %s, 0f00000000" % one for one in accumulators]
    before += ["setp.eq.u32 %keep, %thread, %thread", "fence.proxy.async.shared::cta"]
    loop = ["wgmma.fence.sync.aligned"]
    loop += ["%s %s, %%left, %%right, %%keep, 1, 1" % (instruction.words, c)] * shape.rounds
    loop += ["wgmma.commit_group.sync.aligned", "wgmma.wait_group.sync.aligned 1"]
    return declarations, before, loop, accumulators
