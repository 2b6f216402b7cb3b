"""What could not be taken away."""

from __future__ import annotations


class Left(Exception):
    """Something could not be removed; the message names it and says why. hint: how a user removes it."""

    def __init__(self, sentence: str, hint: str = "") -> None:
        super().__init__(sentence)
        self.hint = hint
