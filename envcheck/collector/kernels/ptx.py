"""The instructions that multiply matrices: what each takes, from which chip on, and its PTX module.

Sources of shapes, versions and targets: PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions" and
"Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions". Each module is written for the
lowest PTX version and target that have its instruction, so that old drivers take it. ``mma`` m8n8k4 is
not among them: from compute capability 8.0 on it is emulated by CUDA cores.
"""

from collections import namedtuple

from .vectors import SIZES

WARP = 32

FMA, WMMA, MMA, WGMMA = "fma", "wmma", "mma", "wgmma"


class Instruction(namedtuple("Instruction", "kind words shape input_type output_type")):
    """One instruction. ``words``: its name in PTX; ``shape``: (m, n, k).

    Its threads are a warp's or, for ``wgmma``, a warpgroup's. ``fma`` stands for the 16 x 8 results that
    a block of 128 threads makes of single multiply-adds.
    """

    __slots__ = ()

    @property
    def threads(self):
        return WARP if self.kind in (WMMA, MMA) else 4 * WARP

    @property
    def step(self):
        """Bytes of a row of A, or a column of B, that one instruction takes."""
        return self.shape[2] * SIZES[self.input_type]

    @property
    def a_registers(self):
        """wmma's fragments hold each element of A, and of B, twice."""
        return self._registers(self.shape[0] * self.step) * (2 if self.kind == WMMA else 1)

    @property
    def b_registers(self):
        return self._registers(self.shape[1] * self.step) * (2 if self.kind == WMMA else 1)

    @property
    def c_registers(self):
        return self._registers(self.shape[0] * self.shape[1] * SIZES[self.output_type])

    def _registers(self, size):
        """32-bit registers a thread that hold ``size`` bytes of a matrix."""
        return size // (4 * self.threads)


def _mma(shape, input_word, input_type, output_word="f32", output_type="fp32"):
    words = "mma.sync.aligned.m%dn%dk%d.row.col.%s.%s.%s.%s" % (
        shape + (output_word, input_word, input_word, output_word)
    )
    return Instruction(MMA, words, shape, input_type, output_type)


def _wmma(word, output_type):
    words = "wmma.mma.sync.row.col.m16n16k16.%s.%s" % (word, word)
    return Instruction(WMMA, words, (16, 16, 16), "fp16", output_type)


def wgmma(columns):
    """The FP8 instruction of Hopper, with so many columns."""
    words = "wgmma.mma_async.sync.aligned.m64n%dk32.f32.e4m3.e4m3" % columns
    return Instruction(WGMMA, words, (64, columns, 32), "e4m3", "fp32")


FFMA = Instruction(FMA, "fma.rn.f32", (16, 8, 1), "fp32", "fp32")

# One module: the instructions whose bits are looked at; the first is also timed. ``first`` and ``last``
# are the compute capabilities between which it is used, both included.
Product = namedtuple("Product", "first last version target instructions")

_ANY = (99, 9)
_HALF = ("f16", "fp16")
PRODUCTS = {
    "fp32": (Product((0, 0), _ANY, "6.0", "sm_30", (FFMA,)),),
    "tf32": (Product((8, 0), _ANY, "7.0", "sm_80", (_mma((16, 8, 8), "tf32", "fp32"),)),),
    "fp16": (
        Product(
            (8, 0),
            _ANY,
            "7.0",
            "sm_80",
            (_mma((16, 8, 16), "f16", "fp16"), _mma((16, 8, 16), "f16", "fp16", *_HALF)),
        ),
        Product(
            (7, 5),
            (7, 5),
            "6.5",
            "sm_75",
            (_mma((16, 8, 8), "f16", "fp16"), _mma((16, 8, 8), "f16", "fp16", *_HALF)),
        ),
        # driver 418, of CUDA 10.1, takes this one on 7.5 too
        Product((7, 0), (7, 5), "6.0", "sm_70", (_wmma("f32", "fp32"), _wmma("f16", "fp16"))),
    ),
    "bf16": (Product((8, 0), _ANY, "7.0", "sm_80", (_mma((16, 8, 16), "bf16", "bf16"),)),),
    "int8": (
        Product((8, 0), _ANY, "7.0", "sm_80", (_mma((16, 8, 32), "s8", "int8", "s32", "int32"),)),
        Product((7, 5), (7, 5), "6.5", "sm_75", (_mma((8, 8, 16), "s8", "int8", "s32", "int32"),)),
    ),
    "fp8": (
        # On 9.0 mma.sync would unpack FP8 and run as FP16, on 10.x and 11.x too.
        Product((9, 0), (9, 0), "8.0", "sm_90a", (wgmma(8),)),
        Product((8, 9), (8, 9), "8.4", "sm_89", (_mma((16, 8, 32), "e4m3", "e4m3"),)),
        Product((12, 0), (12, 9), "8.4", "sm_89", (_mma((16, 8, 32), "e4m3", "e4m3"),)),
    ),
}

_FIRST_TENSOR = (7, 0)


def products(mode, capability):
    """The mode's modules for a compute capability (major, minor), the best first; [] where there is none."""
    return [p for p in PRODUCTS[mode] if p.first <= capability <= p.last]


def why_none(mode, capability):
    """The sentence for a mode without products."""
    has = "compute capability %d.%d" % capability
    if capability < _FIRST_TENSOR:
        return "%s has no Tensor Cores; 7.0 and later have them" % has
    first = min(product.first for product in PRODUCTS[mode])
    if capability < first:
        return "%s has no Tensor Core instruction for %s that is used here; %d.%d is the first" % (
            (has, mode.upper()) + first
        )
    return (
        "%s on %s needs tcgen05 instructions, which are not among these kernels; "
        "mma.sync would unpack it and show FP16 at work" % (mode.upper(), has)
    )


def header(product):
    return ".version %s\n.target %s\n.address_size 64\n" % (product.version, product.target)


# At a loop's head: the compiler then leaves the loop as it is, and its instructions can be counted.
AS_WRITTEN = '.pragma "nounroll"'


def names(prefix, count):
    """ "{%c0, %c1, ...}": so many registers as an operand."""
    return "{" + ", ".join("%%%s%d" % (prefix, number) for number in range(count)) + "}"


def entry(name, parameters, threads, declarations, body):
    """A kernel. parameters: (type, name) pairs; body: its lines, labels among them."""
    declared = ",\n".join("    .param .%s %s" % pair for pair in parameters)
    lines = ["    %s;" % line for line in declarations]
    lines += [line if line.endswith(":") else "    " + line + ";" for line in body]
    return ".visible .entry %s(\n%s\n)\n.maxntid %d, 1, 1\n{\n%s\n}\n" % (
        name,
        declared,
        threads,
        "\n".join(lines),
    )
