"""The PTX of a product that runs for hours: operands in registers, multiplied again and again.

All blocks have the same operands, random in every bit of their mantissas, and each round of products adds
what the round before it took away: so the accumulators stay small, the low bits of no product are lost, and
each block's result is the same to the bit. Each thread writes down all of its accumulators, and each block
on which multiprocessor it ran.
"""

import random
import struct

from ..kernels.ptx import AS_WRITTEN, FMA, MMA, WARP, entry, header
from ..kernels.ptx_rate import operand_bytes, registers, shape
from .compare_ptx import text as compare_text

NAME = "multiply"
PARAMETERS = (
    ("u64", "operand_address"),
    ("u64", "result_address"),
    ("u64", "unit_address"),
    ("u32", "iteration_count"),
)
MODES = ("fp16", "fp32")  # the first that the chip has and the driver compiles
ITERATIONS = {MMA: 2048, FMA: 4096}  # of one launch, about a millisecond
_WMMA_ITERATIONS = 2048
_SIGNS = 0x80008000  # of a register's two halves
# The largest |sum| of 16 products of fp16 operands, 8 of each sign (see SoakShape.operands): FP32 holds it.
LARGEST = 8 * (1535 * 2047 - 1024 * 1536)


def iterations(instruction):
    return ITERATIONS.get(instruction.kind, _WMMA_ITERATIONS)


def text(product):
    """The module of a ptx.Product's first instruction: this kernel, and those that compare."""
    return "\n".join([header(product), _kernel(product.instructions[0]), compare_text()])


def _kernel(instruction):
    made = shape(instruction)
    declarations, before, loop, accumulators = registers(made)
    declarations += [
        ".reg .pred %more, %first",
        ".reg .b32 %thread, %block, %count, %place, %word",
        ".reg .b64 %operands, %results, %units, %wide",
    ]
    body = [
        "ld.param.u64 %operands, [operand_address]",
        "ld.param.u64 %results, [result_address]",
        "ld.param.u64 %units, [unit_address]",
        "ld.param.u32 %count, [iteration_count]",
        "cvta.to.global.u64 %operands, %operands",
        "cvta.to.global.u64 %results, %results",
        "cvta.to.global.u64 %units, %units",
        "mov.u32 %thread, %tid.x",
        "mov.u32 %block, %ctaid.x",
        "mul.wide.u32 %%wide, %%thread, %d" % (4 * made.words),
        "add.u64 %operands, %operands, %wide",
    ]
    once = loop[: len(loop) // made.rounds]
    body += (
        before + once + ["NEXT:", AS_WRITTEN] + (_negation(instruction, made) + once) * made.rounds
    )
    body += ["sub.u32 %count, %count, 1", "setp.ne.u32 %more, %count, 0", "@%more bra NEXT"]
    body += [
        "mad.lo.u32 %%place, %%block, %d, %%thread" % made.threads,
        "mul.wide.u32 %%wide, %%place, %d" % (4 * len(accumulators)),
        "add.u64 %results, %results, %wide",
    ]
    for number, accumulator in enumerate(accumulators):
        body += ["mov.b32 %%word, %s" % accumulator]
        body += ["st.global.b32 [%%results+%d], %%word" % (4 * number)]
    body += [
        "mov.u32 %word, %smid",
        "mul.wide.u32 %wide, %block, 4",
        "add.u64 %units, %units, %wide",
        "setp.eq.u32 %first, %thread, 0",
        "@%first st.global.b32 [%units], %word",
    ]
    return entry(NAME, PARAMETERS, made.threads, declarations, body + ["ret"])


def _negation(instruction, made):
    """Turn the signs of A, so that the next round takes away what the last one added."""
    if instruction.kind == FMA:
        return ["neg.f32 %%a%d_0, %%a%d_0" % (i, i) for i in range(made.left)]
    names = ["%%a%d_%d" % (i, j) for i in range(made.left) for j in range(instruction.a_registers)]
    return ["xor.b32 %s, %s, %d" % (name, name, _SIGNS) for name in names]


class SoakShape(object):
    """What one launch of an instruction's kernel has and makes."""

    def __init__(self, instruction):
        self.instruction = instruction
        self.iterations = iterations(instruction)
        self._made = shape(instruction)
        self.threads = self._made.threads  # of a block
        pairs = self._made.left * self._made.right
        registers_each = 1 if instruction.kind == FMA else instruction.c_registers
        self.words = pairs * registers_each  # of a thread
        self.block_words = self.threads * self.words
        # Operations of a block: two for each multiply-add of each of its warps, and a round at the beginning.
        rounds = self.iterations + 1.0 / self._made.rounds
        self.flop = 2.0 * self._made.fma * (self.threads // WARP) * rounds

    def operands(self, seed):
        """Random in every bit of their mantissas, the same for the same seed (bytes).

        FP32: 1 to 2 of either sign. FP16: integers from 1024 to 2047, whose sum of products stays below 2^24
        wherever it is cut off, since of four products that follow one another two are negative, and where A
        is above 1536, B is below.
        """
        bits = random.Random(seed).getrandbits
        if self.instruction.input_type == "fp32":
            count = operand_bytes(self._made) // 4
            words = [bits(1) << 31 | 127 << 23 | bits(23) for _ in range(count)]
            return struct.pack("<%dI" % count, *words)
        high = bits(32)  # for each k, whether A's or B's are the large ones
        halves = []
        for thread in range(self.threads):
            for word in range(self._made.words):
                for half in (0, 1):
                    is_b, k = self._operand(thread, word, half)
                    sign = k >> 1 & 1 if is_b else k & 1
                    halves.append(sign << 15 | 25 << 10 | (high >> k & 1 ^ is_b) << 9 | bits(9))
        return struct.pack("<%dH" % len(halves), *halves)

    def _operand(self, thread, word, half):
        """(1 for B or 0 for A, k) of a 16-bit element, by mma's fragments; of wmma's, which are the chip's
        secret, something."""
        a_words = self._made.left * self.instruction.a_registers
        if word < a_words:
            register = word % self.instruction.a_registers // 2
        else:
            register = (word - a_words) % self.instruction.b_registers
        return int(word >= a_words), 2 * (thread % 4) + 8 * register + half

    def place(self, index):
        """(block, row, column) of a word of the result, in the matrix of one block.

        A warp's tiles lie below one another, in each the rows and columns that its instruction gives; where
        nothing says which thread holds which of them, a row is a thread, and a column one of its words.
        """
        block, inner = divmod(index, self.block_words)
        thread, word = divmod(inner, self.words)
        if self.instruction.kind != MMA or self.instruction.c_registers != 4:
            return block, thread, word
        warp, lane = divmod(thread, WARP)
        pair, register = divmod(word, 4)
        left, right = divmod(pair, self._made.right)
        row = 32 * warp + 16 * left + lane // 4 + 8 * (register // 2)
        return block, row, 8 * right + 2 * (lane % 4) + register % 2

    def expected(self, operands):
        """A block's result (bytes) by exact arithmetic; None where the layout is the chip's secret."""
        kind, made = self.instruction.kind, self._made
        if kind == FMA:
            return self._expected_fma(operands)
        if kind != MMA or self.instruction.c_registers != 4:
            return None
        halves = struct.unpack("<%de" % (len(operands) // 2), operands)
        a_words, b_words = self.instruction.a_registers, self.instruction.b_registers
        found = [0.0] * self.block_words
        for warp in range(self.threads // WARP):
            lanes = range(warp * WARP, (warp + 1) * WARP)
            lefts = [self._rows(halves, lanes, place * a_words) for place in range(made.left)]
            after = made.left * a_words
            rights = [
                self._columns(halves, lanes, after + place * b_words) for place in range(made.right)
            ]
            for lane in range(WARP):
                for word in range(self.words):
                    pair, register = divmod(word, 4)
                    left, right = divmod(pair, made.right)
                    row = lefts[left][lane // 4 + 8 * (register // 2)]
                    column = rights[right][2 * (lane % 4) + register % 2]
                    value = sum(a * b for a, b in zip(row, column))
                    found[(warp * WARP + lane) * self.words + word] = value
        return struct.pack("<%df" % len(found), *found)

    def _pair(self, halves, thread, word):
        """The two 16-bit elements of a register."""
        at = 2 * (thread * self._made.words + word)
        return halves[at], halves[at + 1]

    def _rows(self, halves, lanes, first):
        """A, 16 x k, out of the registers of a warp."""
        k = self.instruction.shape[2]
        rows = [[0.0] * k for _ in range(16)]
        for lane, thread in enumerate(lanes):
            for register in range(self.instruction.a_registers):
                row = lane // 4 + 8 * (register % 2)
                column = 2 * (lane % 4) + 8 * (register // 2)
                rows[row][column : column + 2] = self._pair(halves, thread, first + register)
        return rows

    def _columns(self, halves, lanes, first):
        """B's 8 columns, out of the registers of a warp."""
        k = self.instruction.shape[2]
        columns = [[0.0] * k for _ in range(8)]
        for lane, thread in enumerate(lanes):
            for register in range(self.instruction.b_registers):
                row = 2 * (lane % 4) + 8 * register
                columns[lane // 4][row : row + 2] = self._pair(halves, thread, first + register)
        return columns

    def _expected_fma(self, operands):
        made = self._made
        values = struct.unpack("<%df" % (len(operands) // 4), operands)
        found = []
        for thread in range(self.threads):
            mine = values[thread * made.words : (thread + 1) * made.words]
            lefts, rights = mine[: made.left], mine[made.left :]
            found += [a * b for a in lefts for b in rights]
        return struct.pack("<%df" % len(found), *found)
