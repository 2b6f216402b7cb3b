"""What checks answer with: causes, what they were found on, and how the user can mend it."""

from collections.abc import Iterator
from typing import Any

from ..facts.evidence import Evidence
from ..findings.causes import Cause, Level, Param, fail, warn
from ..findings.commands import TRADE, fill_in
from ..findings.model import Finding, Passed, Remedy, Unjudged, Verdict, unjudged
from ..findings.shell import word, words
from ..findings.subjects import (
    Subject,
    about,
    about_device,
    about_device_at,
    about_file,
    about_gpu,
    about_processes,
    gpu_subject,
    joined,
)
from .declared import DeclaredRow, declared_causes, declared_rows
from .registry import check

Verdicts = Iterator[Verdict]
Params = dict[str, Any]  # of a cause
