"""Starts processes, and always comes back: the only module in envcheck that starts one."""

import errno
import os
import re
import signal
import subprocess
import time

from . import cpu_wait, orphans
from .capture import capture_file
from .fork import Fork

OUTPUT_LIMIT = 16 * 1024 * 1024  # bytes of stdout or stderr
MOST_PATIENCE = 3.0  # times its deadline: a patient child gets no more, however busy the machine is
_ASK_AGAIN = 0.5  # seconds between looks at how long it had to wait for a CPU
INHERIT = object()  # as a child's stdin: this process's own
# Of the user's environment, what envcheck itself logs in with, and no child of its has any use for.
LOGINS = ("NGC_API_KEY", "NGC_CLI_API_KEY")

# How a Python that does not work, or what was to load it, begins to say why. Other programs' words about a
# script that they were handed help nobody.
_PYTHONS_OWN = re.compile(
    r"(?:[A-Z]\w{0,60}(?:Error|Exception|Exit)|Fatal Python error|Could not find platform\w{0,20}|pyenv"
    r"|.{0,300}: (?:error while loading shared libraries|symbol lookup error))\b"
)


class Result(object):
    """What became of a child.

    outcome: "exited", "timeout", "flooded" (wrote more than the limit), "not-started", "stopped".
    code: the exit status, negative for the signal it died by, None unless it exited by itself.
    stuck: None, or {"pid", "command", "state"} of a child that could not be killed.
    """

    def __init__(self, argv, outcome, code, stdout, stderr, seconds, stuck=None, error=""):
        self.argv = argv
        self.outcome = outcome
        self.code = code
        self.stdout = stdout
        self.stderr = stderr
        self.seconds = seconds
        self.stuck = stuck
        self.error = error

    @property
    def ok(self):
        return self.outcome == "exited" and self.code == 0

    def describe(self):
        """What happened, as the end of a sentence that begins with the program's name."""
        if self.outcome == "not-started":
            return "could not be started: %s" % self.error
        if self.outcome == "timeout":
            return "gave no answer within %g s" % round(self.seconds, 1)
        if self.outcome == "flooded":
            return "wrote more than %d MiB" % (OUTPUT_LIMIT // 1048576)
        if self.outcome == "stopped":
            return "was stopped"
        if self.code < 0:
            return "died by signal %d (%s)" % (-self.code, signal_name(-self.code))
        return "exited with status %d" % self.code

    def tail(self, lines=5, limit=2000):
        """The last lines of stderr, or of stdout where stderr is empty, as text."""
        text = (self.stderr.strip() or self.stdout.strip()).decode("utf-8", "replace")
        return "\n".join(text.splitlines()[-lines:])[-limit:]

    def words_of_python(self):
        """The last line of a Python that says why it does not work; "" where no Python speaks."""
        lines = self.tail(5, 4000).splitlines() if self.outcome == "exited" else []
        found = [line.strip() for line in lines if _PYTHONS_OWN.match(line.strip())]
        return found[-1][:200] if found else ""


def _without_logins(env):
    return {name: value for name, value in env.items() if name not in LOGINS}


def signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


class Child(object):
    """One running process. Call ``poll`` until it gives a Result."""

    def __init__(
        self,
        argv,
        deadline,
        env=None,
        cwd=None,
        grace=0.0,
        limit=OUTPUT_LIMIT,
        own_session=True,
        tied=False,
        stdin=None,
        patient=False,
        work=None,
    ):
        """deadline: seconds from now. grace: seconds between SIGTERM and SIGKILL.

        stdin: the path of the file that it reads as its standard input; None: nothing; INHERIT: ours.
        tied: it dies with this process, even when that is killed and can end nothing itself. Not in a
        process with threads: something of ours then runs between fork and exec.
        patient: time in which it was ready to run and had no CPU does not count. It has a session of its own.
        work: a function that it runs as a copy of this process, instead of argv, which only names it.
        """
        self.argv = [str(part) for part in argv]
        self.started = time.monotonic()
        self._patience = MOST_PATIENCE if patient else 1.0
        self.allow(deadline)
        self.grace = grace
        self.limit = limit
        self.own_session = own_session
        self.result = None
        self._ending = None  # (outcome, time of SIGTERM, time of SIGKILL or None)
        self._reaped = False  # by somebody else: its process id may be another's by now
        self._stdout = self._stderr = None
        self._seen = {"stdout": 0, "stderr": 0}
        self._popen = None
        self.pid = None
        given = None
        try:
            keep_statuses()
            self._stdout = capture_file()
            self._stderr = capture_file()
            if stdin is not INHERIT:
                given = open(stdin or os.devnull, "rb")  # noqa: SIM115 - closed below
            tie = orphans.tie(os.getpid()) if tied else None
            if work is not None:
                self._popen = Fork(work, given, self._stdout, self._stderr, cwd, own_session, tie)
            else:
                self._popen = subprocess.Popen(
                    self.argv,
                    stdin=given,
                    stdout=self._stdout,
                    stderr=self._stderr,
                    env=_without_logins(os.environ if env is None else env),
                    cwd=cwd,
                    start_new_session=own_session,
                    close_fds=True,
                    preexec_fn=tie,
                )
            self.pid = self._popen.pid
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            self._finish("not-started", None, error=getattr(error, "strerror", None) or str(error))
        finally:
            if given is not None:
                given.close()

    def allow(self, deadline):
        """Another deadline in place of the first: seconds from its start."""
        self.deadline = deadline
        self._last = self.started + deadline * self._patience
        self._next_look = self.started + deadline

    def poll(self):
        """The Result, or None while the child runs. Never blocks."""
        if self.result is not None:
            return self.result
        now = time.monotonic()
        if self._exited():
            if not self._reaped:
                self._signal(signal.SIGKILL)  # whatever it left behind in its group
            code = self._popen.wait()
            outcome = self._ending[0] if self._ending else "exited"
            self._finish(outcome, code if outcome == "exited" else None)
        elif self._ending is not None:
            self._press_on(now)
        elif self._is_late(now):
            self._end("timeout", now)
        elif max(_size(self._stdout), _size(self._stderr)) > self.limit:
            self._end("flooded", now)
        return self.result

    def stop(self):
        """Begin to end the child; ``poll`` tells when it is over."""
        if self.result is None and self._ending is None:
            self._end("stopped", time.monotonic())

    def interrupt(self):
        """Ask the child alone, as Ctrl-C would."""
        if self.result is None and not self._exited():
            os.kill(self.pid, signal.SIGINT)

    def new_stderr(self):
        """Whole lines that the child has written to stderr since the last call."""
        if self.result is not None:
            return []
        return self._new_lines("stderr", self._stderr).decode("utf-8", "replace").splitlines()

    def new_stdout(self):
        """What the child has written to stdout since the last call (bytes)."""
        if self.result is None:
            return self._new_lines("stdout", self._stdout)
        rest = self.result.stdout[self._seen["stdout"] :]
        self._seen["stdout"] = len(self.result.stdout)
        return rest

    def _new_lines(self, name, file):
        seen = self._seen[name]
        size = _size(file)
        if size <= seen:
            return b""
        fresh = os.pread(file.fileno(), min(size - seen, self.limit), seen)
        whole = fresh.rfind(b"\n") + 1
        self._seen[name] += whole
        return fresh[:whole]

    def _exited(self):
        try:
            # WNOWAIT: its process id, and so its group's, stays reserved until the group is killed.
            state = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except OSError:
            self._reaped = True
            return True
        return state is not None

    def _is_late(self, now):
        if now >= self._last:
            return True
        if now < self._next_look:
            return False
        self._next_look = now + _ASK_AGAIN
        return now - self.started - cpu_wait.of_group(self.pid) >= self.deadline

    def _end(self, outcome, now):
        if self.grace:
            self._ending = (outcome, now, None)
            self._signal(signal.SIGTERM)
        else:
            self._ending = (outcome, now, now)
            self._signal(signal.SIGKILL)

    def _press_on(self, now):
        outcome, asked, killed = self._ending
        if killed is None and now - asked >= self.grace:
            self._ending = (outcome, asked, now)
            self._signal(signal.SIGKILL)
        elif killed is not None and orphans.is_stuck(self.pid, now - killed):
            self._finish(outcome, None, stuck=orphans.describe(self.pid, self.argv))

    def _signal(self, number):
        try:
            if self.own_session:
                os.killpg(self.pid, number)
            else:
                os.kill(self.pid, number)
        except OSError as error:
            if error.errno not in (errno.ESRCH, errno.EPERM):
                raise

    def _finish(self, outcome, code, stuck=None, error=""):
        self.result = Result(
            self.argv,
            outcome,
            code,
            _content(self._stdout, self.limit),
            _content(self._stderr, self.limit),
            time.monotonic() - self.started,
            stuck,
            error,
        )
        if stuck is not None:
            self._popen.returncode = -signal.SIGKILL  # keeps Popen.__del__ from waiting for it
        for file in (self._stdout, self._stderr):
            if file is not None:
                file.close()


def run(argv, deadline, **options):
    """Run one program to its end or its deadline: a Result."""
    child = Child(argv, deadline, **options)
    run_all([child])
    return child.result


def run_all(children, tick=None):
    """Wait for all of them, side by side; ``tick`` is called between looks. Stops them if interrupted."""
    pause = 0.001
    try:
        while True:
            if tick is not None:
                tick()
            running = sum(child.poll() is None for child in children)
            if not running:
                return
            time.sleep(pause)
            pause = min(pause * 1.25, 0.01)
    except BaseException:
        stop_all(children)
        raise


def stop_all(children):
    """End them all, and wait (bounded by their grace and orphans.EXIT_WAIT) until they are gone."""
    for child in children:
        child.stop()
    while any(child.poll() is None for child in children):
        time.sleep(0.005)


def keep_statuses():
    """See to it that dead children wait to be asked for their status, and keep their process ids."""
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        try:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        except ValueError:
            pass  # only the main thread may


def _size(file):
    return os.fstat(file.fileno()).st_size


def _content(file, limit):
    return b"" if file is None else os.pread(file.fileno(), limit, 0)


def resident(pid):
    """Bytes of memory that a process holds; 0 where that cannot be read."""
    try:
        with open("/proc/%d/statm" % pid) as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def written(pid):
    """Bytes that a process has written in all; growing with the time where that cannot be read."""
    try:
        with open("/proc/%d/io" % pid) as file:
            return int(file.read().split("wchar:")[1].split()[0])
    except (OSError, ValueError, IndexError):
        return int(time.monotonic() * 65536)
