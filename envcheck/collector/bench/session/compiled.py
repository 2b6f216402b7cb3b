"""What XLA has compiled in this process, by the modules that it writes down on request."""

import os
import tempfile

_BEFORE = "before_optimizations.txt"
_MOST = 200  # modules
_LENGTH = 8 << 20  # bytes of a module
_folder = []  # where they are written


def write_down():
    """Has XLA write down each module before it compiles it. To be said before the first graph runs."""
    if not _folder:
        _folder.append(tempfile.mkdtemp(prefix="envcheck-xla-"))
        flags = "--xla_dump_to=%s --xla_dump_hlo_as_text" % _folder[0]
        os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "") + " " + flags).strip()


def modules():
    """The texts of all until now; none where nothing was written."""
    texts = []
    for folder in _folder:
        for name in sorted(os.listdir(folder))[: 20 * _MOST]:
            if name.endswith(_BEFORE) and len(texts) < _MOST:
                with open(os.path.join(folder, name), "rb") as file:
                    texts.append(file.read(_LENGTH).decode("utf-8", "replace"))
    return texts
