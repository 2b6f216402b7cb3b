"""Dockerfiles: a lock's packages on a plain base, or an image of NVIDIA's with envcheck in it.

One template. Without a context it is one self-contained text for any builder (no heredoc, no cache mount,
no file beside it); with one, the lists of hashes, envcheck's own wheel and the text lie side by side.
"""

from .options import Context, Options
from .render import render, render_over

__all__ = ["Context", "Options", "render", "render_over"]
