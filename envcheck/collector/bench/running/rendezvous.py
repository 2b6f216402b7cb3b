"""A process where Horovod's ranks find each other: it prints its port, and serves until it is ended."""

import sys
import time

from ...systems.shared.distributed.horovod import Rendezvous
from ...worker import PACKAGE

# Started as `python -c BOOTSTRAP ROOT`.
BOOTSTRAP = PACKAGE + ("from envcheck.collector.bench.running.rendezvous import main\nmain()\n")


def main():
    with Rendezvous() as port:
        sys.stdout.write("%d\n" % port)
        sys.stdout.flush()
        while True:
            time.sleep(3600)
