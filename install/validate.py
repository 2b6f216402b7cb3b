"""What is wrong with a request whatever the machine is: checked before looking at it takes a second."""

from __future__ import annotations

from ..exit_codes import CouldNotLook, UsageError
from .catalogue import containers
from .catalogue import load as catalogue
from .network import addresses
from .network.access import Access
from .registry import reference
from .request import Request
from .transaction import guard, layout

_LONGEST_PATH = 4096  # PATH_MAX, with its closing zero
_LONGEST_NAME = 255
_INSIDE = 400  # bytes that wheels are allowed for the paths inside an environment
_INSIDE_CONTAINER = 100  # the same for a container's version: its records, an image file

_ELSEWHERE = "--path DIR names another place"

# What activation scripts, shebangs or PATH cannot carry, in one or another of the tools and shells.
_FORBIDDEN = {
    ":": "a colon",
    '"': "a quotation mark",
    "$": "a dollar sign",
    "`": "a backtick",
    "\\": "a backslash",
}


def check(request: Request) -> None:
    """Raises UsageError."""
    if request.path:
        check_path(request.path, "", request)
        guard.look(layout.root_of(request, ""))
    if request.mode == "container":
        if request.image:
            reference.parse(request.image)
        else:
            stacks = containers.among(request.flavour)
            if request.release:
                containers.find(stacks, request.release)
        return
    access = Access(request.allow_insecure)
    for index in request.indexes:
        _check_index(index, access)
    if request.stack and not request.offline:
        stack = catalogue.load(request.stack)
        if request.release:
            catalogue.find(stack, request.release)


def check_path(directory: str, version: str, request: Request) -> None:
    """Raises UsageError for a path that some tool between here and the shell cannot take."""
    container = request.mode == "container"
    for character in directory:
        if not character.isprintable() or "\ud800" <= character <= "\udfff":
            raise UsageError(
                f"{directory!r}: a path with a line end or another character that cannot be printed"
                " breaks shebangs and configuration files",
                _ELSEWHERE,
            )
        if character in _FORBIDDEN and not container:
            raise UsageError(
                f"{directory}: a path with {_FORBIDDEN[character]} in it cannot stand in PATH or in"
                " every shell's activation script",
                _ELSEWHERE,
            )
    inside = _INSIDE_CONTAINER if container else _INSIDE
    length = len(directory.encode()) + 1 + len(version.encode()) + inside
    longest = max(len(name.encode()) for name in directory.split("/"))
    if length > _LONGEST_PATH or longest > _LONGEST_NAME:
        raise UsageError(
            f"{directory[:60]}… is too long: the file system takes {_LONGEST_NAME} bytes for a name and"
            f" {_LONGEST_PATH} for a path, and {inside} of them are needed inside it",
            _ELSEWHERE,
        )


def _check_index(index: str, access: Access) -> None:
    url = index[index.find("http") :] if "://" in index else ""
    if not addresses.is_index(url):
        raise UsageError(
            f"--index {addresses.typed(index)}: this is not an index's address",
            f"write https://HOST/PATH ({addresses.QUOTED})",
        )
    try:
        access.permit(url)
    except CouldNotLook as error:
        raise UsageError(f"--index {error}", error.hint) from None
