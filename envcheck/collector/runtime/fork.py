"""A process that is a copy of this one and runs one function, without an interpreter's start."""

import os
import signal
import warnings


class Fork(object):
    """As much of a subprocess.Popen as process.Child uses. Raises OSError."""

    def __init__(self, work, stdin, stdout, stderr, cwd, own_session, tie):
        """work(): never comes back in earnest; what it raises is lost. tie: as of orphans.tie, or None."""
        self.returncode = None
        ready, done = os.pipe()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that there are threads: a framework's
                self.pid = os.fork()
            if self.pid == 0:
                _become(work, (stdin, stdout, stderr), cwd, own_session, tie)
        finally:
            os.close(done)
            if own_session and getattr(self, "pid", None):
                os.read(ready, 1)  # until it leads a session: its group can be killed from here on
            os.close(ready)

    def wait(self):
        """Its exit status, negative for the signal that it died by."""
        status = os.waitpid(self.pid, 0)[1]
        exited = os.WIFEXITED(status)
        self.returncode = os.WEXITSTATUS(status) if exited else -os.WTERMSIG(status)
        return self.returncode


def _become(work, streams, cwd, own_session, tie):
    """In the child, which never comes back from here."""
    try:
        if own_session:
            os.setsid()
        if tie is not None:
            tie()
        for ended_by in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(ended_by, signal.SIG_DFL)
        for number, stream in enumerate(streams):
            os.dup2(stream.fileno(), number)
        if cwd is not None:
            os.chdir(cwd)
        os.closerange(3, 256)  # other children's files, and the pipe that ends the parent's wait
        work()
    finally:
        os._exit(1)
