"""The check on envcheck itself: what other packages add to it."""

from __future__ import annotations

from ..registry import Area

AREA = Area(name="plugins", title="Plug-ins", position=1000)
