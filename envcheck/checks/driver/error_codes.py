"""What the driver's error codes mean: NVML's, nvidia-smi's and the CUDA driver API's (driver_errors.csv)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ...data import table
from ..verdicts import Cause, fail


class ErrorCode(NamedTuple):
    """meaning completes "NVML does not start: ..."; remedy is for where nothing else is known."""

    name: str
    meaning: str
    remedy: str
    commands: tuple[str, ...] = ()
    key: str = "other-error"

    def cause(self, headline: str, sentence: str, follows: Sequence[str] | None = None) -> Cause:
        """sentence: a template with {meaning}; its other parameters are the finding's."""
        worded = sentence.replace("{meaning}", self.meaning)
        return fail(self.key, headline, worded, self.remedy, *self.commands, follows=follows)


def _rows(of: str) -> Iterator[tuple[int, ErrorCode]]:
    for row in table("driver_errors"):
        if row["of"] == of:
            texts = row["name"], row["meaning"], row["remedy"]
            commands = tuple(filter(None, row["commands"].split(" ;; ")))
            yield int(row["code"]), ErrorCode(*texts, commands, row["cause"])


NVML, CUDA = dict(_rows("nvml")), dict(_rows("cuda"))
NVIDIA_SMI = NVML | dict(_rows("nvidia-smi"))
CUINIT = {code.key: code for _, code in _rows("cuinit")}


def causes(
    codes: dict[int, ErrorCode],
    headline: str,
    sentence: str,
    follows: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Cause]:
    """{key: the cause that these codes share}; follows: {key: the checks that alone explain it}"""
    explained = follows or {}
    return {
        code.key: code.cause(headline, sentence, explained.get(code.key)) for code in codes.values()
    }
