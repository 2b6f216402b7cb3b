"""The collector as a program: prints a Snapshot. Exits 2, with one sentence, for what it cannot read."""

import sys

if sys.version_info < (3, 6):
    sys.stderr.write(
        "envcheck-collector: needs Python 3.6 or newer, this is %d.%d\n" % sys.version_info[:2]
    )
    sys.exit(2)

from envcheck.collector.main import main  # noqa: E402

sys.exit(main(sys.argv[1:]))
