"""The transaction: an installation is there, verified, or everything is as it was."""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from processes import ran, wait_for
from transaction_parts import (
    WHEEL_STEPS,
    Judge,
    TinyBuilder,
    holds,
    in_child,
    install,
    is_tidy,
    names,
    runs,
    start,
    wait,
)

from envcheck.exit_codes import Cannot, CouldNotLook, PutBack
from envcheck.install.transaction import record, removal, roots
from envcheck.install.transaction.current import rollback
from envcheck.install.transaction.journal import Journal
from envcheck.install.transaction.layout import Root
from envcheck.install.transaction.lock import locked as root_lock

EVERY_STEP = ["python", "fetch", "create", "install", "configure", "verify"]


pytestmark = pytest.mark.usefixtures("scratch_home")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "a root with spaces"


def failing(at: str, error: Callable[[], BaseException]) -> dict[str, object]:
    def fail(step: str) -> None:
        if step == at:
            raise error()

    return {"builder": TinyBuilder("2", fail), "verify": Judge(at=fail)}


def test_installed_and_recorded(root: Path) -> None:
    done = install(root, "1")
    assert not done.already and done.before == ""
    assert done.version.startswith("1-py") and str((root / "current").readlink()) == done.version
    assert done.prefix == str(root / "current") == roots.last()
    assert runs(root) == "1"
    is_tidy(root, versions=1)
    version = Root(root).version(done.version)
    assert version.doctor.read_text() == '{"a": "report"}\n'
    assert "tiny" in version.lock.read_text()
    noted = record.read(version)
    assert noted is not None and noted == done.record
    assert noted.versions == {"tiny": "1"} and noted.bytes_total > 0
    assert [entry.step for entry in Journal(Root(root).journal).entries()] == list(WHEEL_STEPS)
    assert [known.path for known in roots.known()] == [root]


@pytest.mark.parametrize("step", EVERY_STEP)
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (lambda: CouldNotLook("the index is away", hint="look there"), "the index is away"),
        (lambda: OSError(errno.ENOSPC, "No space left", "/x"), "/x: No space left"),
        (lambda: ValueError("oops"), "internal error: ValueError: oops"),
    ],
)
def test_an_error_in_a_step_puts_everything_back(
    root: Path, step: str, error: Callable[[], BaseException], text: str
) -> None:
    install(root, "1")
    with pytest.raises(PutBack) as caught:
        install(root, "2", **failing(step, error))
    assert str(caught.value) == f"tiny 2 was not installed, and nothing has changed: {text}"
    assert holds(root) == "1"
    is_tidy(root, versions=1)
    assert not install(root, "2").already
    assert holds(root) == "2"


def test_an_unverified_version_is_removed_and_what_it_said_is_kept(root: Path) -> None:
    install(root, "1")
    for release in ("2", "3", "4", "5"):
        judge = Judge(["FRM-001: tensorflow does not import"])
        with pytest.raises(PutBack, match="FRM-001: tensorflow does not import") as caught:
            install(root, release, verify=judge)
        kept = Path(caught.value.hint.removeprefix("the log is in "))
        assert (kept / "doctor.json").read_text() == '{"a": "report"}\n'
    assert runs(root) == "1"
    is_tidy(root, versions=1)
    assert {name[0] for name in names(Root(root).failed)} == {"3", "4", "5"}, "three are kept"


@pytest.mark.parametrize("step", EVERY_STEP)
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_in_a_step_undoes_it(root: Path, step: str, number: int, code: int) -> None:
    install(root, "1")

    def at(now: str) -> None:
        if now == step:
            os.kill(os.getpid(), number)
            time.sleep(5)

    def work() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        builder, judge = TinyBuilder("2", at), Judge(at=at)
        install(root, "2", builder=builder, verify=judge, tell=path.write_text)

    path = root.parent / "message"
    assert in_child(work) == code
    assert "tiny 2 was not installed, and nothing has changed" in path.read_text()
    is_tidy(root, versions=1)
    assert holds(root) == "1"


def test_control_c_while_it_is_undone_changes_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(root, "1")
    wipe = removal.wipe

    def interrupted(path: Path) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        wipe(path)

    monkeypatch.setattr(removal, "wipe", interrupted)
    assert in_child(lambda: install(root, "2", **failing("install", ValueError))) == 5
    is_tidy(root, versions=1)


def test_control_c_at_the_swap_comes_too_late(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(root, "1")
    remember = roots.remember

    def interrupted(root: Root) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        remember(root)

    monkeypatch.setattr(roots, "remember", interrupted)
    path = root.parent / "message"
    assert in_child(lambda: install(root, "2", tell=path.write_text)) == 130
    assert path.read_text() == "tiny 2 is installed: it was too late to stop"
    assert runs(root) == "2"
    is_tidy(root, versions=2)
    assert Journal(Root(root).journal).entries()[-1].step == "done"


def test_back_and_forward(root: Path) -> None:
    one, two = install(root, "1"), install(root, "2")
    assert rollback(Root(root)).version == one.version and runs(root) == "1"
    assert rollback(Root(root)).version == two.version and runs(root) == "2"
    install(root, "3")
    assert rollback(Root(root)).version == two.version
    assert rollback(Root(root), one.version).before == two.version
    assert rollback(Root(root)).version == two.version, "back to the one before, not to the newest"


def test_two_at_once_the_second_waits_and_finds_it_done(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "message"
    entered, go_on = tmp_path / "entered", tmp_path / "go on"

    def at(step: str) -> None:
        if step == "install":
            entered.touch()
            assert wait_for(go_on.exists)

    def second() -> None:
        builder = TinyBuilder("1")
        done = install(root, "1", builder=builder, tell=path.write_text)
        assert done.already and builder.done == []

    one = start(lambda: install(root, "1", builder=TinyBuilder("1", at)))
    assert wait_for(entered.exists)
    two = start(second)
    assert wait_for(lambda: path.exists() and path.stat().st_size > 0)
    sentence = path.read_text()
    assert f"process {one}, envcheck install tiny" in sentence and "waiting for" in sentence
    with pytest.raises(Cannot, match=f"process {one}"):
        install(root, "1", wait=0)
    go_on.touch()
    assert (wait(one), wait(two)) == (0, 0)
    is_tidy(root, versions=1)


def test_waiting_ends_by_control_c(root: Path) -> None:
    install(root, "1")
    with root_lock(Root(root), "a test"):
        child = start(lambda: install(root, "2", tell=lambda _message: (root / "message").touch()))
        assert wait_for((root / "message").exists)
        os.kill(child, signal.SIGINT)
        assert wait(child) == 130


def test_a_look_is_quick_and_imports_little(root: Path) -> None:
    install(root, "1")
    script = (
        "import sys\n"
        "from envcheck.install.request import Request\n"
        "from envcheck.install.transaction import existing\n"
        f"assert existing.look(Request(stack='tiny', release='1', path={str(root)!r})).already\n"
        "heavy = {'requests', 'virtualenv', 'packaging', 'rich', 'tomli_w', 'uv', 'filelock'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    result = ran([sys.executable, "-c", script], text=True, check=True)
    assert result.stdout == "[]\n"
