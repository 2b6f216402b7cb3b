"""What can be wrong with the network between machines (causes.toml), and the code that reports show it by."""

from __future__ import annotations

from ...checks.declared import declared_causes, declared_check
from ...checks.registry import CheckText

CODE = "FLT-001"
CAUSE = declared_causes(__name__)

_DECLARED = declared_check(__name__, CODE)
# No check of the doctor's: it judges no Snapshot.
CHECK = CheckText(
    code=CODE,
    area="network",
    title=_DECLARED.title,
    about=_DECLARED.about.strip(),
    sources=_DECLARED.sources,
    follows=(),
    causes=tuple(CAUSE.values()),
)
