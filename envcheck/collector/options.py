"""What is to run on the GPUs, micro-kernels and acceleration systems, and how the command line asks."""

import argparse

from .acceleration import systems
from .kernels import LEVELS, MODES

LOOKS = ("quick", "standard", "deep")  # facts; and micro-kernels; and acceleration systems

EVIDENCE = ("quick", "full")


class Options(object):
    """levels, modes: as in LEVELS and MODES, in that order. gpus: nvidia-smi's indices, None for all.

    systems: names of acceleration systems. sweep: those of links and collectives by size, too.
    """

    def __init__(
        self,
        levels=LEVELS,
        modes=MODES,
        gpus=None,
        busy_ok=False,
        evidence="quick",
        systems=(),
        sweep=False,
    ):
        self.levels = [level for level in LEVELS if level in levels]
        # FP32 is the control, and what the others are compared with.
        self.modes = [mode for mode in MODES if mode in modes or mode == "fp32"]
        self.gpus = None if gpus is None else sorted(set(gpus))
        self.busy_ok = busy_ok
        self.evidence = evidence
        self.systems = list(systems)
        self.sweep = sweep


def add_arguments(parser):
    """--level and what chooses among kernels and systems; ``from_arguments`` reads it."""
    parser.add_argument(
        "--level",
        choices=LOOKS,
        help="quick: facts alone; standard (default): and the micro-kernels; deep: and the acceleration"
        " systems, memory and links",
    )
    # Between envcheck and its collector.
    parser.add_argument("--systems", type=_words(names()), help=argparse.SUPPRESS)
    parser.add_argument("--sweep", action="store_true", help=argparse.SUPPRESS)
    group = parser.add_argument_group(
        "micro-kernels", "matrix products on the GPUs, where there are any: seconds a GPU"
    )
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


def names():
    """The names of all acceleration systems."""
    return sorted({one.name for one in systems.load()})


def from_arguments(parser, arguments):
    """The Options, None where nothing is to run on a GPU. Ends the program where arguments contradict."""
    chosen = [name for name in ("kernels", "modes", "evidence") if getattr(arguments, name)]
    given = chosen + [name for name in ("gpu", "busy_ok") if getattr(arguments, name)]
    given = ["--" + name.replace("_", "-") for name in given]
    if arguments.nvidia_smi and (given or arguments.level):
        words = "%s and --nvidia-smi cannot be used together: nothing runs here then"
        parser.error(words % (given or ["--level"])[0])
    quick = arguments.level == "quick"
    run = arguments.systems or (names() if arguments.level == "deep" else [])
    if quick and given and (chosen or not run):
        parser.error("%s and --level quick cannot be used together" % given[0])
    if quick and not run:
        return None
    return Options(
        () if quick else arguments.kernels or LEVELS,
        arguments.modes or MODES,
        [index for indices in arguments.gpu for index in indices] if arguments.gpu else None,
        arguments.busy_ok,
        arguments.evidence or EVIDENCE[0],
        run,
        arguments.sweep,
    )


def arguments(options):
    """The arguments that ask for these Options (None: for no kernel), as ``from_arguments`` reads them."""
    if options is None:
        return ["--level", "quick"]
    if options.levels:
        words = ["--kernels", ",".join(options.levels), "--modes", ",".join(options.modes)]
        words += ["--evidence", options.evidence]
    else:
        words = ["--level", "quick"]
    if options.systems:
        words += ["--systems", ",".join(options.systems)]
        words += ["--sweep"] if options.sweep else []
    if options.gpus is not None:
        words += ["--gpu", ",".join(str(index) for index in options.gpus)]
    if options.busy_ok:
        words.append("--busy-ok")
    return words


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
