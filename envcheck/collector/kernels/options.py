"""What was asked of the micro-kernels, and how the collector's command line asks for it."""

import argparse

from . import LEVELS, MODES

EVIDENCE = ("quick", "full")


class Options(object):
    """levels, modes: as in LEVELS and MODES, in that order. gpus: nvidia-smi's indices, None for all."""

    def __init__(self, levels=LEVELS, modes=MODES, gpus=None, busy_ok=False, evidence="quick"):
        self.levels = [level for level in LEVELS if level in levels]
        # FP32 is the control, and what the others are compared with.
        self.modes = [mode for mode in MODES if mode in modes or mode == "fp32"]
        self.gpus = None if gpus is None else sorted(set(gpus))
        self.busy_ok = busy_ok
        self.evidence = evidence


def add_arguments(parser):
    """--no-kernels and what chooses among the kernels; ``from_arguments`` reads it."""
    group = parser.add_argument_group(
        "micro-kernels", "matrix products on the GPUs, where there are any: seconds a GPU"
    )
    group.add_argument("--no-kernels", action="store_true", help="leave them out")
    group.add_argument(
        "--kernels",
        metavar="L0,L1,L2",
        type=_words(LEVELS),
        help="these levels: the driver alone, the target's cuBLAS, the target's framework",
    )
    group.add_argument(
        "--gpu",
        metavar="N[,N]",
        type=_indices,
        action="append",
        help="on these GPUs, by nvidia-smi's index (default: those that CUDA_VISIBLE_DEVICES leaves)",
    )
    group.add_argument(
        "--modes", metavar="MODE[,MODE]", type=_words(MODES), help="of " + ", ".join(MODES)
    )
    group.add_argument("--busy-ok", action="store_true", help="on GPUs that are in use, too")
    group.add_argument(
        "--evidence", choices=EVIDENCE, help="full: sample the GPUs' own counters, too"
    )


def from_arguments(parser, arguments):
    """The Options, None where no kernel is to run. Ends the program where arguments contradict."""
    names = ("kernels", "gpu", "modes", "busy_ok", "evidence", "no_kernels")
    given = ["--" + name.replace("_", "-") for name in names if getattr(arguments, name)]
    if arguments.nvidia_smi and given:
        parser.error(
            "%s and --nvidia-smi cannot be used together: nothing runs here then" % given[0]
        )
    if arguments.no_kernels:
        if given[:-1]:
            parser.error("%s and --no-kernels cannot be used together" % given[0])
        return None
    return Options(
        arguments.kernels or LEVELS,
        arguments.modes or MODES,
        [index for indices in arguments.gpu for index in indices] if arguments.gpu else None,
        arguments.busy_ok,
        arguments.evidence or EVIDENCE[0],
    )


def arguments(options):
    """The arguments that ask for these Options (None: for no kernel), as ``from_arguments`` reads them."""
    if options is None:
        return ["--no-kernels"]
    words = ["--kernels", ",".join(options.levels), "--modes", ",".join(options.modes)]
    if options.gpus is not None:
        words += ["--gpu", ",".join(str(index) for index in options.gpus)]
    if options.busy_ok:
        words.append("--busy-ok")
    return words + ["--evidence", options.evidence]


def _words(choices):
    known = {choice.lower(): choice for choice in choices}

    def words(text):
        asked = [word.strip() for word in text.split(",")]
        for word in asked:
            if word.lower() not in known:
                raise argparse.ArgumentTypeError("%r is not one of %s" % (word, ", ".join(choices)))
        return [known[word.lower()] for word in asked]

    return words


def _indices(text):
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and len(word) < 5 for word in words):
        raise argparse.ArgumentTypeError(
            "%r is not a GPU's number in nvidia-smi: write 0 or 0,2" % text
        )
    return [int(word) for word in words]
