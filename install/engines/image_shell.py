"""Whether an image has a shell: a container of it says so."""

from __future__ import annotations

import secrets

import msgspec

from ..engine import Start
from . import command, wiring
from .client import ask
from .command import Here

_ABSENT = (126, 127)  # engines' codes for a program that is not there or cannot be executed


def is_there(start: Start) -> bool:
    """Also where the engine cannot start a container at all, which the doctor will say in its words.

    apptainer and enroot start no image without one.
    """
    if start.engine not in ("podman", "docker"):
        return True
    bare = msgspec.structs.replace(start, wiring=wiring.NONE, gpus=0, devices=[], entrypoint="")
    name = f"envcheck-shell-{secrets.token_hex(6)}"
    here = Here(uid=0, gid=0, network="none", check=False, own_user=True, name=name)
    _, *arguments = command.argv(bare, ["sh", "-c", ":"], here)
    result = ask(start.program, arguments)
    if result.outcome != "exited":
        ask(start.program, ["rm", "--force", name])
    return not (result.outcome == "exited" and result.code in _ABSENT)
