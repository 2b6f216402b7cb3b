"""What to do about a finding."""

from __future__ import annotations

import msgspec
from msgspec.structs import force_setattr

from .commands import refusal

# A remedy's text goes on so where its commands are refused.
NOT_PRINTED = "(No command is printed, since "


class Remedy(msgspec.Struct, frozen=True, omit_defaults=True):
    """What to do, in one sentence, and the commands to paste (none where none would help)."""

    text: str
    commands: list[str] = []

    def __post_init__(self) -> None:
        reason = refusal(self.commands, self.text) if self.commands else ""
        if reason:
            force_setattr(self, "commands", [])
            force_setattr(self, "text", f"{self.text} {NOT_PRINTED}{reason}.)")
