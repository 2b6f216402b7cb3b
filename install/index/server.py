"""Serves a view as a package index on the loopback interface, to one installer that knows the secret.

uv reaches it as a proxy, under the unchanging ``address.INDEX_URL``: uv's cache then knows the files
again in the next run, whatever the port. pip reaches it by ``url``, whose first part is the secret.
"""

from __future__ import annotations

import secrets

from ..serving.server import LoopbackServer
from .handler import Handler
from .views import View


class IndexServer(LoopbackServer):
    """While its ``with`` lasts, the view is served on a free port of 127.0.0.1, a thread a connection."""

    def __init__(self, view: View) -> None:
        self.view = view
        super().__init__(Handler, secrets.token_urlsafe(24))

    @property
    def proxy(self) -> str:
        """For HTTP_PROXY; it holds the secret, so it belongs into the environment of a process."""
        return f"http://envcheck:{self.secret}@127.0.0.1:{self.server_port}"

    @property
    def url(self) -> str:
        """The index's URL for pip; it holds the secret."""
        return f"http://127.0.0.1:{self.server_port}/{self.secret}/simple/"
