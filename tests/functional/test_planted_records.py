"""Whatever the journal and the records of a root say, nothing outside of it changes."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from planted import IMAGE, VALID, fingerprint, outside_of
from transaction_parts import IMAGE_STEPS, WHEEL_STEPS, install, request

from envcheck.exit_codes import EnvcheckError, NotPutBack
from envcheck.install.engines import client
from envcheck.install.prune import prune
from envcheck.install.transaction import existing, listing
from envcheck.install.transaction.current import rollback
from envcheck.install.transaction.layout import Root
from envcheck.install.transaction.uninstall import uninstall

pytestmark = pytest.mark.usefixtures("scratch_home")

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
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
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
def test_nothing_outside_changes(
    prepared: Path,
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
    shutil.copytree(prepared, path, symlinks=True)
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
