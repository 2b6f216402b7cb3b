"""What can be said of a request by its words alone: before anything is looked at, which takes a second."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from ..exit_codes import UsageError
from .catalogue import containers
from .catalogue import load as catalogue
from .catalogue.model import Stack
from .fit import select
from .network import addresses
from .plan import rooms
from .request import Request
from .transaction import guard, layout


def check(request: Request) -> None:
    """Raises UsageError for what is wrong whatever the machine is: before looking at it takes a second."""
    if request.mode == "container":
        if request.image:
            select.image_of(request)
        else:
            left = containers.among(request.stack, request.flavour)
            if request.release:
                containers.find(left, request.release)
        if request.path:
            rooms.check_name(request.path, "")
            guard.look(layout.root_of(request, ""))
        return
    if request.path:
        rooms.check_path(request.path, "")
        guard.look(layout.root_of(request, ""))
    for index in request.indexes:
        _check_index(index, request.allow_insecure)
    if request.stack and not request.offline:
        stack = catalogue.load(request.stack)
        if request.release:
            catalogue.find(stack, request.release)


def meant_for(stack: Stack, request: Request) -> Request:
    """Where envcheck chooses the stack, an index of one that it passes over says nothing to the others."""
    if request.stack:
        return request
    others = {index.name for name in select.DEFAULTS for index in catalogue.load(name).indexes}
    others -= {index.name for index in stack.indexes}
    kept = [index for index in request.indexes if index.partition("=")[0] not in others]
    return msgspec.structs.replace(request, indexes=kept)


def _check_index(index: str, allowed: list[str]) -> None:
    url = index[index.find("http") :] if "://" in index else ""
    if not addresses.is_whole(url):
        raise UsageError(
            f"--index {addresses.typed(index)}: this is not an index's address",
            f"write https://HOST/PATH ({addresses.QUOTED})",
        )
    if urlsplit(url).scheme != "http" or addresses.is_loopback(url):
        return
    if not {addresses.host(url), urlsplit(url).hostname or ""} & {name.lower() for name in allowed}:
        raise UsageError(
            f"--index {addresses.shown(url)}: plain http, where anybody on the way can change what comes",
            f"use https://, or allow it by name: --allow-insecure {urlsplit(url).hostname}",
        )
