"""The catalogue's stacks, and a user's own: read, validated, and searched."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path

from ... import plugins
from ...data.versions import parse_version
from ...exit_codes import UsageError
from ...suggestions import did_you_mean
from .containers import flavours
from .model import Release, Stack
from .pythons import seed as seed
from .schema import mistake, read


def names() -> list[str]:
    """The stacks that envcheck comes with, and those of other packages."""
    return sorted(_files())


def is_known(name: str) -> bool:
    """Whether there is a stack of this name."""
    return name in _files()


def load(name_or_file: str) -> Stack:
    """A stack by name, or from a user's TOML file.

    Raises UsageError: no such stack (the nearest is named), no readable file, or a mistake in the file,
    with the path of its key.
    """
    if name_or_file in _files():
        return _built_in(name_or_file)
    if not is_file(name_or_file):
        raise unknown(name_or_file, names())
    stack = read(_text(Path(name_or_file)), name_or_file)
    for number, other in enumerate(stack.otherwise):
        if other not in _files():
            sentence = f'"otherwise" is "{other}", and envcheck has {", ".join(names())}'
            raise mistake(name_or_file, ("otherwise", number), sentence)
    return stack


def is_file(name_or_file: str) -> bool:
    """Whether it means a file of the user's, not a name."""
    return "/" in name_or_file or name_or_file.endswith(".toml") or Path(name_or_file).is_file()


def unknown(name: str, known: Iterable[str]) -> UsageError:
    """There is no such stack: the nearest is named."""
    return UsageError(
        f'there is no stack "{name}"{did_you_mean(name, known)}',
        f"there are {', '.join(known)}; a stack of your own is a file such as ./mine.toml"
        " (envcheck explain stack-file)",
    )


def find(stack: Stack, release: str) -> Release:
    """The release that a user means: "23.03", also "23.3" or its version, "1.15.5+nv23.3".

    Raises UsageError for another one.
    """
    named = [r for r in stack.releases if r.release == release] or [
        r for r in stack.releases if _same(release, r.release) or _same(release, r.version)
    ]
    if named:
        return named[0]
    sharing = [r for r in stack.releases if _same(release, r.version.partition("+")[0])]
    if len(sharing) == 1:
        return sharing[0]
    if sharing:
        raise UsageError(
            f'{len(sharing)} releases of {stack.name} are version "{release}",'
            f" from {sharing[-1].release} to {sharing[0].release}: name one of them"
        )
    raise UsageError(
        f'{stack.name} has no release "{release}"; it has {stack.releases[-1].release} to'
        f" {stack.releases[0].release}",
        f"`envcheck releases --stack {stack.name}` shows all of them for this machine.",
    )


def _files() -> dict[str, str]:
    return _own() | _foreign()


@cache
def _foreign() -> dict[str, str]:
    """The stacks of other packages that have no mistake; of the others PLG-001 tells."""
    found: dict[str, str] = {}
    taken = {*_own(), *(flavour.name for flavour in flavours())}
    for entry, folder in plugins.stack_folders().items():
        for path in sorted(folder.glob("*.toml")):
            try:
                if path.stem in taken:
                    raise UsageError(f"there is a stack {path.stem} already")
                stack = read(_text(path), path.name)
                if stack.name != path.stem:
                    raise UsageError(f'{path.name}: its name is "{stack.name}"')
            except UsageError as error:
                plugins.add_problem("envcheck.stacks", entry, str(error))
            else:
                taken.add(path.stem)
                found[path.stem] = str(path)
    return found


def _own() -> dict[str, str]:
    folder = files(__package__).joinpath("stacks")
    return {
        entry.name.removesuffix(".toml"): f"{folder}/{entry.name}"
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    }


@cache
def _built_in(name: str) -> Stack:
    where = _files()[name]
    return read(_text(Path(where)), where)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")  # an editor may have put its mark first
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: this is not UTF-8 text (byte {error.start + 1})") from None
    except OSError as error:
        raise UsageError(f"{path}: the stack cannot be read: {error.strerror}") from None


def _same(asked: str, other: str) -> bool:
    """Equal as versions are: 23.3 is 23.03, and +nv23.3 is +nv23.03."""
    one, two = parse_version(asked), parse_version(other)
    return one is not None and one == two
