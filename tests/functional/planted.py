"""Roots as a hostile user prepares them: envcheck's own files, and in them what leads out of the root."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

from envcheck.install.transaction.layout import Root

VALID = "9.0-py3.11-0badf00d"  # a version's name that nobody has installed
IMAGE = "9-tf1-0badf00d"


def outside_of(root: Path) -> Path:
    """A tree beside the root, with all that envcheck would look for, read or remove if it came there."""
    tree = root.parent / "outside"
    for folder in (tree, tree / VALID, tree / "removing" / VALID, tree / "failed"):
        own = folder / ".envcheck" / "logs"
        own.mkdir(parents=True)
        (folder / "precious.txt").write_text("precious")
        (own.parent / "record.json").write_text("{}")
        (own / "install.log").write_text("log")
    for name in ("journal.jsonl", "lock", "owner.json", "a.txt"):
        (tree / name).write_text('{"owner": "envcheck", "layout": 1, "created_at": ""}\n')
    (tree / "failed").chmod(0o500)
    return tree


def fingerprint(tree: Path) -> str:
    """Of every name below it with its kind, its permissions and its content; times of what is written."""
    seen = hashlib.sha256()
    for folder, folders, files in os.walk(tree):
        folders.sort()
        for name in [".", *folders, *sorted(files)]:
            path = Path(folder, name)
            status = path.lstat()
            content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
            link = os.readlink(path) if path.is_symlink() else ""  # noqa: PTH115 - as it stands
            seen.update(f"{path} {status.st_mode} {status.st_mtime_ns} {link}\n".encode() + content)
    return seen.hexdigest()


def _journal(*names: str) -> Callable[[Path, Path], None]:
    def plant(root: Path, outside: Path) -> None:
        with Root(root).journal.open("a") as file:
            for name in names:
                version = name.replace("OUTSIDE", str(outside))
                for step in ("begun", "created"):
                    entry = {"time": "", "version": version, "step": step}
                    file.write(json.dumps(entry) + "\n")

    return plant


def _link(name: str, to: str) -> Callable[[Path, Path], None]:
    """In place of what is there; ``to`` as seen from outside's directory."""

    def plant(root: Path, outside: Path) -> None:
        path = _room(root, name)
        path.symlink_to(outside / to)

    return plant


def _room(root: Path, name: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(path):
        path.rename(root.parent / "moved away")
    return path


def _fifo(name: str) -> Callable[[Path, Path], None]:
    return lambda root, outside: os.mkfifo(_room(root, name))


def _hard(name: str, to: str) -> Callable[[Path, Path], None]:
    return lambda root, outside: os.link(outside / to, _room(root, name))


def _held(**fields: object) -> Callable[[Path, Path], None]:
    """A version of an image's, begun and not finished."""

    def plant(root: Path, outside: Path) -> None:
        evil = outside / "podman"
        evil.write_text(f"#!/bin/sh\ntouch {outside}/started\n")
        evil.chmod(0o755)
        own = root / IMAGE / ".envcheck"
        own.mkdir(parents=True)
        held = {
            "engine": "podman",
            "program": str(evil),
            "image_id": "sha256:" + "1" * 64,
            "tag": f"localhost/envcheck/x:{IMAGE}",
            "reference": "x.test/y@sha256:" + "2" * 64,
            "before": False,
        }
        text = json.dumps(held | fields).replace("OUTSIDE", str(outside))
        (own / "held.json").write_text(text)
        _journal(IMAGE)(root, outside)

    return plant


def _versions_own_link(root: Path, outside: Path) -> None:
    (root / VALID).mkdir()
    (root / VALID / ".envcheck").symlink_to(outside / VALID / ".envcheck")
    _journal(VALID)(root, outside)


def _own_link_in_use(root: Path, outside: Path) -> None:
    """The version in use keeps its records outside, and the next installation would bring one up to date."""
    version = Root(root).version(Root(root).current_id() or "")
    record = json.loads(version.record.read_text())
    record["request"] |= {"path": str(root), "release": "another"}
    version.record.write_text(json.dumps(record))
    version.own.rename(outside / "records")
    version.own.symlink_to(outside / "records")


def _version_link(root: Path, outside: Path) -> None:
    (root / VALID).symlink_to(outside / VALID)
    _journal(VALID)(root, outside)


def _links_in_a_version(root: Path, outside: Path) -> None:
    own = root / VALID / ".envcheck"
    own.mkdir(parents=True)
    (root / VALID / "lib").symlink_to(outside)
    (root / VALID / "file").symlink_to(outside / "a.txt")
    (own / "logs").symlink_to(outside / VALID)
    for name in ("record.json", "held.json", "files.json", "doctor.json"):
        (own / name).symlink_to(outside / "a.txt")
    (own / "pylock.toml").symlink_to("/dev/zero")
    _journal(VALID)(root, outside)


def _waiting_to_be_removed(root: Path, outside: Path) -> None:
    removing = Root(root).removing
    (removing / "read-only" / "below").mkdir(parents=True)
    (removing / "tree").symlink_to(outside)
    (removing / "file").symlink_to(outside / "a.txt")
    (removing / "read-only" / "below" / "tree").symlink_to(outside / "failed")
    (removing / "read-only" / "below").chmod(0o500)
    os.link(outside / "a.txt", removing / "hard")


PLANTS: dict[str, Callable[[Path, Path], None]] = {
    "nothing": lambda root, outside: None,
    "an absolute name": _journal("OUTSIDE", "OUTSIDE/", f"OUTSIDE/{VALID}"),
    "names with dots": _journal("../outside", f"../outside/{VALID}", "..", ".", "", "./../outside"),
    "names with letters": _journal(
        "a\nb", "\x1b[2J", f"{VALID}\n", f"{VALID}/../../outside", "a\0b"
    ),
    "a long name": _journal("9" * 4000 + "-py3.11-0badf00d"),
    "journal to a file": _link(".envcheck/journal.jsonl", "a.txt"),
    "journal to a new file": _link(".envcheck/journal.jsonl", "new.txt"),
    "journal has another name": _hard(".envcheck/journal.jsonl", "a.txt"),
    "journal a FIFO": _fifo(".envcheck/journal.jsonl"),
    "journal a directory": lambda root, outside: _room(root, ".envcheck/journal.jsonl").mkdir(),
    "lock to a file": _link(".envcheck/lock", "a.txt"),
    "lock to a new file": _link(".envcheck/lock", "new.txt"),
    "lock has another name": _hard(".envcheck/lock", "a.txt"),
    "lock a FIFO": _fifo(".envcheck/lock"),
    # What would move a terminal's cursor, and more than anybody reads.
    "holder of another kind": lambda root, _: Root(root).lock.write_text(
        "\x1b]0;x\a\n" + "x" * 100_000
    ),
    "owner to a file": _link(".envcheck/owner.json", "owner.json"),
    "owner a FIFO": _fifo(".envcheck/owner.json"),
    "failed to a directory": _link(".envcheck/failed", "failed"),
    "removing to a directory": _link(".envcheck/removing", "removing"),
    "removing to a file": _link(".envcheck/removing", "a.txt"),
    "removing with links": _waiting_to_be_removed,
    "own to a directory": _link(".envcheck", ""),
    "own to a root's": _link(".envcheck", f"{VALID}/.envcheck"),
    "next to a directory": _link(".envcheck/current", "removing"),
    "next a directory": lambda root, outside: _room(root, ".envcheck/current").mkdir(),
    "current to a directory": _link("current", ""),
    "current to a version elsewhere": _link("current", VALID),
    "current a directory": lambda root, outside: _room(root, "current").mkdir(),
    "a version to a directory": _version_link,
    "a version's own to a directory": _versions_own_link,
    "the own of the version in use to a directory": _own_link_in_use,
    "links in a version": _links_in_a_version,
    "an engine of theirs": _held(),
    "an engine's path with dots": _held(program="/usr/bin/../../OUTSIDE/podman"),
    "a file for an image": _held(image_id="OUTSIDE/a.txt"),
    "an image of the user's": _held(tag="registry.test/users/image:1"),
    "an image that is an option": _held(image_id="--all", tag="--force"),
    "an engine that is none": _held(engine="rm"),
    "a record nested deeply": lambda root, outside: (
        (root / VALID / ".envcheck").mkdir(parents=True),
        (root / VALID / ".envcheck" / "record.json").write_text('{"x":' + "[" * 100_000),
        (root / VALID / ".envcheck" / "held.json").write_bytes(b'{"engine": "\xff"}'),
        Root(root).lock.write_text('{"x":' * 100_000),
        _journal(VALID)(root, outside),
    ),
}
