"""The lock as pylock.toml: the same bytes, read back as it was, and what a broken one is told."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envcheck.exit_codes import UsageError
from envcheck.install import pylock
from envcheck.install.lockfile import LockedFile, LockedPackage, Lockfile

INDEX = "https://index.example/simple/"


def package(name: str, version: str, *, sdist: bool = False, size: int | None = 9) -> LockedPackage:
    escaped = name.replace("-", "_")
    file = f"{escaped}-{version}" + (".tar.gz" if sdist else "-py3-none-any.whl")
    digest = hashlib.sha256(file.encode()).hexdigest()
    locked = LockedFile(name=file, url=f"https://index.example/f/{file}", sha256=digest, size=size)
    return LockedPackage(name=name, version=version, index=INDEX, file=locked)


def lock(*packages: LockedPackage, building: tuple[LockedPackage, ...] = ()) -> Lockfile:
    return Lockfile(
        stack="nvidia-tf1",
        release="23.03",
        python="3.8",
        architecture="x86_64",
        packages=list(packages),
        building=list(building),
        provided={"nvidia-pyindex": "the index in the environment's pip.conf"},
        created_at="2026-11-21T17:00:00Z",
    )


GOOD = lock(
    package("nvidia-tensorflow", "1.15.5+nv23.3"),
    package("gast", "0.2.2", sdist=True, size=None),
    building=(package("setuptools", "59.6.0"),),
)

_names = st.from_regex(r"[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,5})?", fullmatch=True)
_versions = st.from_regex(r"[1-9][0-9]?\.[1-9][0-9]?(\+nv[1-9])?", fullmatch=True)
_packages = st.builds(
    lambda *a, needed_by, **k: msgspec.structs.replace(package(*a, **k), needed_by=needed_by),
    _names,
    _versions,
    sdist=st.booleans(),
    size=st.none() | st.integers(1, 1 << 40),
    needed_by=st.lists(st.text(max_size=5), max_size=2),
)
_words = st.text(st.characters(codec="utf-8"), max_size=8)
_locks = st.builds(
    Lockfile,
    stack=st.from_regex(r"[a-z0-9-]+", fullmatch=True),
    release=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9.+_-]*", fullmatch=True),
    python=st.from_regex(r"3\.[1-9][0-9]?", fullmatch=True),
    architecture=st.sampled_from(["x86_64", "aarch64"]),
    packages=st.lists(_packages, max_size=3),
    building=st.lists(_packages, max_size=2),
    provided=st.dictionaries(_names, _words, max_size=2),
    created_at=st.sampled_from(["", "2026-11-21T17:00:00Z"]),
)


@given(_locks)
@settings(max_examples=20, deadline=None)
def test_what_is_written_is_read(made: Lockfile) -> None:
    text = pylock.text(made)
    assert pylock.parse(text, "lock") == made
    again = msgspec.convert(msgspec.to_builtins(made), Lockfile)
    backwards = msgspec.structs.replace(again, provided=dict(reversed(made.provided.items())))
    assert pylock.text(backwards) == text


def test_the_digest_is_of_what_is_installed() -> None:
    without = msgspec.structs.replace(GOOD, gpu=False)
    assert pylock.parse(pylock.text(without), "lock") == without
    assert "gpu" not in pylock.text(GOOD) and pylock.digest(without) == pylock.digest(GOOD)
    later = msgspec.structs.replace(GOOD, created_at="2027-01-01T00:00:00Z")
    assert pylock.digest(later) == pylock.digest(GOOD)
    other = msgspec.structs.replace(GOOD, packages=GOOD.packages[:1])
    assert pylock.digest(other) != pylock.digest(GOOD)


def test_credentials_are_never_written() -> None:
    (first, *_) = GOOD.packages
    secret = "https://user:s3cret@index.example/simple/"
    file = msgspec.structs.replace(first.file, url=secret + first.file.name)
    made = lock(msgspec.structs.replace(first, index=secret, file=file))
    for text in (pylock.text(made), pylock.for_pip(made.packages)):
        assert "s3cret" not in text and "user" not in text
    assert f'index = "{INDEX}"' in pylock.text(made)


TEXT = pylock.text(GOOD)
HASH = GOOD.packages[0].file.sha256


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("packages = [\n  1 2\n]", "pylock.toml:2:5: the lock is not valid TOML"),
        (TEXT.replace('lock-version = "1.0"', 'lock-version = "2.0"'), "reads version 1.0"),
        (TEXT.partition("[tool.envcheck]")[0], "made by 'envcheck' and has no [tool.envcheck]"),
        (TEXT.replace("stack = ", "stacks = "), "[tool.envcheck] is not valid"),
        (TEXT.replace('python = "3.8"', 'python = "3.8\'"'), "python is not of the form"),
        (TEXT.replace(HASH, HASH[:-1]), "packages[0].file.sha256 is not"),
        (TEXT.replace("tf1", "tf1\\nRUN evil"), "stack is not of the form"),
        (TEXT.replace("T17:00:00Z", "\\nRUN evil"), "created_at is not"),
        (TEXT.replace("nvidia-pyindex =", '"a\\"b" ='), "provided is not"),
        (TEXT.replace('simple/"', 'simple/\\n[install]"'), "packages[0].index is not"),
        (TEXT.replace("py3-none-any", "py3$(id)-none-any"), "Invalid wheel filename"),
        (TEXT.replace("/f/gast-", "/f/\\u202egast-"), "packages[1].file.url is not"),
        (TEXT.replace('name = "gast-0', 'name = "../gast-0'), "not consistent with package name"),
        (TEXT.replace('version = "0.2.2"\n', ""), "its version"),
        (TEXT.replace("https://index.example/f/gast", "ftp://x/gast"), "has no address"),
        (
            TEXT.replace('setuptools-59.6.0-py3-none-any.whl"', 'wheel.whl"'),
            "tool.envcheck.building is not a valid lock",
        ),
    ],
)
def test_a_broken_lock_is_told_where(text: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "pylock.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        pylock.read(path)
    assert expected in str(caught.value) and str(path) in str(caught.value)
