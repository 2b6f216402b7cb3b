"""`envcheck bundle`: everything for a machine without a network."""

from __future__ import annotations

import argparse
import sys

from ..exit_codes import ExitCode, UsageError
from . import files, selection
from .faces import Faces
from .style import style_of

EPILOG = """\
examples:
  envcheck bundle --stack tensorflow --output /media/usb/tensorflow
  envcheck bundle --stack tensorflow-cpu --output tensorflow-cpu.tar
  envcheck bundle --mode container --release 23.03 --output ngc.tar
on the machine without a network, with a bundle of wheels (a tar is unpacked
first, or read as it is where envcheck is there already):
  sh setup.sh
  venv/bin/envcheck install --mode wheel --offline .
and with an image's tar, which is read as it is: an OCI archive, that podman
and docker load as well:
  tar -xf ngc.tar setup.sh envcheck
  sh setup.sh
  venv/bin/envcheck install --mode container --offline ngc.tar
exit codes: 0 written, 2 wrong usage or unreadable input, 3 this machine
cannot, 4 envcheck could not look (an index, a registry, this machine),
130 interrupted"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    selection.add_arguments(parser)
    parser.add_argument(
        "--for-python",
        action="append",
        default=[],
        metavar="PYTHON",
        help="a Python that envcheck itself will run under there, 3.10 or newer; repeatable"
        " (default: the version that it runs under here)",
    )
    parser.add_argument(
        "--output",
        required=True,
        metavar="PLACE",
        help="a directory that does not exist yet, or a file whose name ends in .tar",
    )


def run(arguments: argparse.Namespace) -> int:
    selection.refuse_other_mode(arguments, besides="--index")
    selection.refuse_lock(arguments)
    output = selection.absolute_output(arguments.output)
    if output.name.endswith((".gz", ".tgz", ".xz", ".bz2", ".zst", ".zip")):
        raise UsageError(
            f"--output {arguments.output}: a bundle is a directory or a plain .tar: what is in"
            " it is compressed already"
        )
    if arguments.mode == "container":
        from ..install.bundle.image_bundling import make
    else:
        from ..install.bundle.bundling import make
    from ..reports import bundled

    faces = Faces()
    try:
        manifest = make(
            selection.request_of(arguments),
            output,
            pythons=arguments.for_python,
            jobs=arguments.jobs,
            say=faces.say,
            fetching=faces.fetching,
        )
    finally:
        faces.clear()
    style = style_of(sys.stdout)
    text = bundled.render(
        manifest,
        output,
        width=style.width,
        colour=style.colour,
        utf8=style.utf8,
    )
    files.write(None, text)
    return ExitCode.HEALTHY
