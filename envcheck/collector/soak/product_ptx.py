"""The PTX of a product that runs for hours: operands in registers, multiplied again and again.

All blocks have the same operands, and each round of products adds what the round before it took away: so no
low bit of a product is lost, and each block's result is the same to the bit. Each thread writes down its
accumulators, and each block on which multiprocessor it ran.
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

        FP32: 1 to 2 of either sign. FP16: integers from 1024 to 2047, whose sums of 16 products FP32 holds
        exactly: two of four products that follow one another are negative, and where A is above 1536, B is
        below.
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
        """(block, thread, word of that thread) of a word of the result."""
        block, inner = divmod(index, self.block_words)
        return (block,) + divmod(inner, self.words)
