"""Whatever lies in a root, and whatever its journal and records say, nothing outside of it changes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from planted import IMAGE, PLANTS, VALID, fingerprint, outside_of
from transaction_parts import IMAGE_STEPS, WHEEL_STEPS, in_child, install, request

from envcheck.cli.main import run as envcheck
from envcheck.exit_codes import EnvcheckError, NotPutBack, UsageError
from envcheck.install.engines import client
from envcheck.install.prune import prune
from envcheck.install.start import finding
from envcheck.install.transaction import existing, guard, listing
from envcheck.install.transaction.current import rollback
from envcheck.install.transaction.guard import UnsafeRoot
from envcheck.install.transaction.layout import Root
from envcheck.install.transaction.uninstall import uninstall

pytestmark = pytest.mark.usefixtures("scratch_home")

COMMANDS: dict[str, Callable[[Path], object]] = {
    "install": lambda root: install(root, "3", wait=0),
    "install once more": lambda root: install(root, "2", wait=0),
    "rollback": lambda root: rollback(Root(root), wait=0),
    "uninstall": lambda root: uninstall(Root(root), wait=0),
    "prune": lambda root: prune([Root(root)], keep=0),
    "prune --dry-run": lambda root: prune([Root(root)], keep=0, dry_run=True),
    "list": lambda root: listing.look_at(Root(root)),
    "look": lambda root: existing.look(request(root, "2")),
    "run": lambda root: finding.find(str(root)),
    "run last": lambda root: finding.find(),
}
ONLY_LOOK = ("prune --dry-run", "list", "look", "run", "run last")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with two versions, as envcheck makes it."""
    folder = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as patched:
        for name in ("HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
            (folder / name).mkdir()
            patched.setenv(name, str(folder / name))
        install(folder / "root", "1")
        install(folder / "root", "2")
    return folder / "root"


@pytest.mark.parametrize("plant", PLANTS)
def test_nothing_outside_changes(plant: str, prepared: Path, tmp_path: Path) -> None:
    for name, command in COMMANDS.items():
        place = tmp_path / name
        root = place / "root"
        shutil.copytree(prepared, root, symlinks=True)
        outside = outside_of(root)
        PLANTS[plant](root, outside)
        before, inside = fingerprint(outside), fingerprint(root)
        code = in_child(lambda: command(root))  # noqa: B023
        assert fingerprint(outside) == before, f"{name} has changed what lies outside"
        assert code != -signal.SIGALRM, f"{name} hangs"
        assert code in (0, 2, 3, 5, 6, 125), f"{name} ends with {code}"
        if name in ONLY_LOOK and name != "prune --dry-run":
            assert fingerprint(root) == inside, f"{name} has changed something"


@pytest.mark.parametrize(
    ("plant", "named"),
    [
        ("removing to a directory", "removing: this is a symbolic link"),
        ("journal a FIFO", "journal.jsonl: this is not a regular file"),
        ("lock to a file", "lock: this is a symbolic link"),
        ("own to a directory", ".envcheck: this is a symbolic link"),
        ("failed to a directory", "failed: this is a symbolic link"),
    ],
)
def test_what_was_found_is_named(plant: str, named: str, prepared: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    shutil.copytree(prepared, root, symlinks=True)
    PLANTS[plant](root, outside_of(root))
    for command in (lambda: guard.look(Root(root)), lambda: rollback(Root(root))):
        with pytest.raises(UnsafeRoot, match=named) as refused:
            command()
        assert "rm " in refused.value.hint and refused.value.exit_code == 2


# Whose it is


def belongs(path: Path, uid: int) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory to another user")
    os.chown(path, uid, -1)


@pytest.mark.parametrize("below", ["", ".envcheck"])
def test_a_root_of_another_user_is_refused(
    below: str, prepared: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "root"
    shutil.copytree(prepared, root, symlinks=True)
    belongs(root / below, 4321)
    before = fingerprint(root)
    for words in (
        ["uninstall", "--yes", str(root)],
        ["rollback", str(root)],
        ["prune", "--keep", "0", str(root)],
        ["install", "--mode", "wheel", "--path", str(root), "--yes"],
    ):
        assert envcheck(words) == 2, words
        errors = capfd.readouterr().err
        assert f"{root / below}: belongs to user 4321" in errors and "chown" in errors
    assert fingerprint(root) == before


def test_what_was_installed_last_and_is_another_user_s_by_now_is_not_started(
    tmp_path: Path,
) -> None:
    install(tmp_path / "root", "1")
    assert finding.find().directory.parent == tmp_path / "root"
    belongs(tmp_path / "root", 4321)
    assert in_child(finding.find) == 125
    assert finding.find(str(tmp_path / "root")).is_directory, "whoever names it means it"


def test_a_newer_layout_is_left_to_the_newer_envcheck(tmp_path: Path) -> None:
    root = tmp_path / "root"
    install(root, "1")
    install(root, "2")
    Root(root).owner.write_text('{"owner": "envcheck", "layout": 99, "created_at": ""}')
    before = fingerprint(root)
    for command in (uninstall, rollback):
        with pytest.raises(UsageError, match="made by a newer envcheck"):
            command(Root(root))
    assert any("made by a newer envcheck" in note for note in prune(keep=0).notes)
    assert fingerprint(root) == before


def nested(folder: Path, name: str, times: int) -> None:
    """Directories in each other, also where no path leads to the last."""
    handle = os.open(folder, os.O_RDONLY)
    for _ in range(times):
        os.mkdir(name, dir_fd=handle)
        deeper = os.open(name, os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = deeper
    os.close(handle)


def test_what_is_too_deep_for_a_path_is_removed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    nested(root / install(root, "1").version, "d" * 250, 20)
    assert len(listing.look_at(Root(root)).versions) == 1
    uninstall(Root(root))
    assert not root.exists()


# No name leads out of the test's own directory, whatever envcheck makes of it.
_LEADING = [
    "../outside",
    f"../outside/{VALID}",
    "OUTSIDE",
    "OUTSIDE/removing",
    f"{VALID}/../../outside",
]
_word = st.text(st.characters(exclude_characters="/."), max_size=12)
_name = st.one_of(st.sampled_from([VALID, IMAGE, f"{VALID}\n", f"{VALID}\0", *_LEADING]), _word)
_step = st.sampled_from([*WHEEL_STEPS, *IMAGE_STEPS, "undone", "removed", "other"])
_line = st.one_of(
    st.fixed_dictionaries(
        {"time": st.just(""), "version": _name, "step": _step},
        optional={"details": st.dictionaries(_word, _name, max_size=2)},
    ).map(lambda entry: json.dumps(entry).encode()),
    st.binary(max_size=30),
)
_json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), _name),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_word, inner, max_size=3),
    max_leaves=6,
)
_held = st.fixed_dictionaries(
    {
        "engine": st.sampled_from(["podman", "docker", "apptainer", "rm"]),
        "program": st.sampled_from(["/usr/bin/podman", "OUTSIDE/podman", "podman", "/bin/rm"]),
        "image_id": st.sampled_from(["sha256:" + "1" * 64, "OUTSIDE/a.txt", "--all", ""]),
        "tag": st.sampled_from([f"localhost/envcheck/x:{IMAGE}", "users/image:1", "--force", ""]),
        "reference": _name,
        "before": st.booleans(),
    }
)
_file = st.one_of(_held, _json).map(lambda value: json.dumps(value).encode()) | st.binary(
    max_size=9
)
_FILES = ("record.json", "held.json", "files.json", "start.json", "doctor.json")
_records = st.dictionaries(
    st.tuples(st.sampled_from([VALID, IMAGE]), st.sampled_from(_FILES)), _file
)


@pytest.fixture(scope="module")
def one_version(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("one version")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(folder / "state"))
        install(folder / "root", "1")
    return folder / "root"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What engines were told, which are not there."""
    told: list[list[str]] = []

    def ask(program: str, arguments: list[str], **options: Any) -> None:
        told.append([program, *arguments])
        raise NotPutBack("there is no engine here")

    monkeypatch.setattr(client, "ask", ask)
    monkeypatch.setattr("envcheck.install.engines.engine_storage.ask", ask)
    monkeypatch.setattr("envcheck.install.engines.engine_storage.ask", ask)
    return told


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    lines=st.lists(_line, max_size=6),
    records=_records,
    holder=st.none() | _file,
    current=_name,
)
def test_no_record_leads_outside(
    one_version: Path,
    tmp_path: Path,
    asked: list[list[str]],
    lines: list[bytes],
    records: dict[tuple[str, str], bytes],
    holder: bytes | None,
    current: str,
) -> None:
    asked.clear()
    place = Path(tempfile.mkdtemp(dir=tmp_path))
    path = place / "root"
    shutil.copytree(one_version, path, symlinks=True)
    root, there = Root(path), outside_of(path)

    def put(file: Path, data: bytes) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data.replace(b"OUTSIDE", os.fsencode(there)))

    put(root.journal, root.journal.read_bytes() + b"".join(line + b"\n" for line in lines))
    for (version, name), data in records.items():
        put(path / version / ".envcheck" / name, data)
    if holder is not None:
        put(root.lock, holder)
    if current and "\0" not in current:
        root.current.unlink()
        root.current.symlink_to(current.replace("OUTSIDE", str(there)))
    before = fingerprint(there)
    for command in (
        lambda: listing.look_at(root),
        lambda: existing.look(request(path, "1")),
        lambda: rollback(root, wait=0),
        lambda: install(path, "2", wait=0),
        lambda: prune([root], keep=0),
        lambda: uninstall(root, wait=0),
    ):
        with suppress(EnvcheckError):
            command()
        assert fingerprint(there) == before
    ours = ["sha256:" + "1" * 64, f"localhost/envcheck/x:{IMAGE}"]
    assert all(words[0] == "/usr/bin/podman" and words[-1] in ours for words in asked), asked
    for folder, _, _ in os.walk(place):
        Path(folder).chmod(0o700)
    shutil.rmtree(place)
