"""The check on what the system's logs say of containers that got no GPU."""

from __future__ import annotations

from ...data.engine_errors import explain
from .. import containers as shared
from ..container_start import mended
from ..declared import declared_causes
from ..reading import SnapshotView
from ..verdicts import Passed, Verdicts, about_file, check, fill_in

CAUSE = declared_causes(__name__)


@check("CTR-016")
def nothing_refused(view: SnapshotView) -> Verdicts:
    shared.need_gpus(view)
    for one in shared.containers_of(view).errors:
        if meant := explain(one.text):
            yield CAUSE["gpus-refused"].found(
                about_file(one.path),
                [view.evidence("machine.containers.errors", one.text)],
                advice=mended(view, meant, fill_in("IMAGE", "your image")),
                path=one.path,
                why=meant.meaning,
            )
    yield Passed("none")
