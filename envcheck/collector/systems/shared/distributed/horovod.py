"""How Horovod's ranks find each other without ssh: by variables, and a rendezvous."""

import http.server
import socketserver
import threading

from . import loopback


def gloo_environ(rank, number, address, port, seconds):
    """The variables by which a rank finds the others. address, port: of the Rendezvous; ranks whose address
    is not the loopback's are each on a machine of their own. seconds: it waits so long."""
    together = address == loopback.HOST
    every, alone = (rank, number), (0, 1)
    local, cross = (every, alone) if together else (alone, every)
    found = {
        "HOROVOD_RANK": str(rank),
        "HOROVOD_SIZE": str(number),
        "HOROVOD_LOCAL_RANK": str(local[0]),
        "HOROVOD_LOCAL_SIZE": str(local[1]),
        "HOROVOD_CROSS_RANK": str(cross[0]),
        "HOROVOD_CROSS_SIZE": str(cross[1]),
        "HOROVOD_HOSTNAME": loopback.HOST if together else "rank-%d" % rank,
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": address,
        "HOROVOD_GLOO_RENDEZVOUS_PORT": str(port),
        "HOROVOD_GLOO_TIMEOUT_SECONDS": "%d" % seconds,
    }
    return dict(found, HOROVOD_GLOO_IFACE="lo") if together else found


class Rendezvous(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """Where ranks find each other: what one puts under /SCOPE/KEY, the others get. came: their addresses."""

    daemon_threads = True

    def __init__(self, address=loopback.HOST, port=0):
        self.kept, self.came = {}, set()
        super(Rendezvous, self).__init__((address, port), _Handler)

    def server_bind(self):
        socketserver.TCPServer.server_bind(self)  # HTTPServer's looks up the host's name
        self.server_name, self.server_port = self.server_address

    def verify_request(self, _request, client_address):
        self.came.add(client_address[0])
        return True

    def start(self):
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self):
        self.start()
        return self.server_port

    def __exit__(self, *_error):
        self.shutdown()
        self.server_close()


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
