"""How Horovod's ranks find each other without ssh: by variables, and a rendezvous on the loopback."""

import http.server
import socketserver
import threading

from . import loopback


def gloo_environ(rank, number, port, seconds):
    """The variables by which a rank finds the others. port: of the Rendezvous. seconds: it waits so long."""
    return {
        "HOROVOD_RANK": str(rank),
        "HOROVOD_SIZE": str(number),
        "HOROVOD_LOCAL_RANK": str(rank),
        "HOROVOD_LOCAL_SIZE": str(number),
        "HOROVOD_CROSS_RANK": "0",
        "HOROVOD_CROSS_SIZE": "1",
        "HOROVOD_HOSTNAME": loopback.HOST,
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": loopback.HOST,
        "HOROVOD_GLOO_RENDEZVOUS_PORT": str(port),
        "HOROVOD_GLOO_IFACE": "lo",
        "HOROVOD_GLOO_TIMEOUT_SECONDS": "%d" % seconds,
    }


class Rendezvous(object):
    """Where ranks find each other: what one puts under /SCOPE/KEY, the others get."""

    def __enter__(self):
        self._server = _Server((loopback.HOST, 0), _Handler)
        self._server.kept = {}
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self._server.server_address[1]

    def __exit__(self, *_error):
        self._server.shutdown()
        self._server.server_close()


class _Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def server_bind(self):
        socketserver.TCPServer.server_bind(self)  # HTTPServer's looks up the host's name
        self.server_name, self.server_port = self.server_address


class _Handler(http.server.BaseHTTPRequestHandler):
    timeout = 5

    def do_GET(self):
        self._answer(self.server.kept.get(self.path))

    def do_PUT(self):
        length = min(int(self.headers.get("Content-Length") or 0), 1 << 20)
        self.server.kept[self.path] = self.rfile.read(length)
        self._answer(b"")

    def do_DELETE(self):
        self.server.kept.pop(self.path, None)
        self._answer(b"")

    def _answer(self, content):
        self.send_response(404 if content is None else 200)
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()
        self.wfile.write(content or b"")

    def log_message(self, *_words):
        pass
