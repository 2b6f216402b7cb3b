"""What a probe may use of the machine that it looks at."""

from .. import files
from ..facts import from_error, unavailable


class Context(object):
    """What a probe may use: a root directory (tests bring their own), an environment, parameters."""

    def __init__(self, environ, root="/", params=None):
        self.environ = environ
        self.root = root
        self.params = params or {}

    def path(self, path):
        """An absolute path of the machine, below this context's root."""
        return path if self.root == "/" else self.root.rstrip("/") + path

    def read(self, path, limit=1 << 20):
        """A small text file of the machine, undecodable bytes replaced. Raises OSError."""
        return files.read(self.path(path), limit).decode("utf-8", "replace")

    def text(self, path):
        """The same; "" where it cannot be read."""
        try:
            return self.read(path)
        except OSError:
            return ""

    def fact(self, path, parse=str):
        """What ``parse`` makes of a short text file; or the unavailable fact of why there is nothing."""
        try:
            return parse(self.read(path, 4096).strip())
        except OSError as error:
            return from_error(error)
        except ValueError as error:
            return unavailable("error", "%s: %s" % (path, error))

    def names(self, folder):
        """The sorted names in a directory of the machine; [] where it cannot be listed."""
        return files.names(self.path(folder))

    def run(self, argv, deadline, env=None):
        """A helper program, inside the probe's own process group: a process.Result."""
        from . import process  # here: most probes start no program

        return process.run(
            argv, deadline, env=self.environ if env is None else env, own_session=False, tied=True
        )
