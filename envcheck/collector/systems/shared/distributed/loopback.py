"""What processes that talk to each other on this machine need: ports, and no proxy between them."""

import os
import socket
from contextlib import ExitStack

HOST = "127.0.0.1"
_PROXIED = 8.0  # for work that takes one where nothing is in the way
# gRPC reads these, in this order, in lower case alone.
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
_WITHOUT = ("no_grpc_proxy", "no_proxy")


def free_ports(number):
    """So many different ports of the loopback that nobody listens on now."""
    with ExitStack() as stack:
        found = []
        for _each in range(number):
            listener = stack.enter_context(socket.socket())
            listener.bind((HOST, 0))
            found.append(listener.getsockname()[1])
        return found


def proxy(environ):
    """The variable by which gRPC goes to a proxy even for this machine: "http_proxy"; "" without one."""
    named = next((name for name in _PROXIES if environ.get(name)), "")
    without = next((environ[name] for name in _WITHOUT if environ.get(name)), "")
    excepted = [word.strip().rstrip(".") for word in without.split(",")]
    return "" if any(word and HOST.endswith(word) for word in excepted) else named


def attempts(environ, seconds):
    """[(words for its trial's name, variables for its ranks, seconds)]: the first that succeeds is enough.

    Where a proxy is in the way, a second attempt goes around it: if that succeeds, the proxy was the cause.
    """
    if not proxy(environ):
        return [("", {}, seconds)]
    around = {"no_proxy": HOST, "no_grpc_proxy": HOST}
    return [("", {}, min(_PROXIED, seconds)), (", no_proxy", around, seconds)]


def newest(place, name):
    """What TensorFlow has of this name, out of its experimental part or still in it; None without."""
    experimental = getattr(place, "experimental", None)
    return getattr(place, name, None) or getattr(experimental, name, None)


def one_gpu(rank):
    """The variables by which a rank sees that GPU of its parent's, and no other."""
    visible = [word for word in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if word]
    return {"CUDA_VISIBLE_DEVICES": visible[rank]} if rank < len(visible) > 1 else {}
