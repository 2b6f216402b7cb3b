"""What goes wrong over HTTP, each as one sentence that names the host and holds no credentials.

The exceptions of requests and urllib3 carry URLs, and those carry passwords: none of them gets out.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping

import requests
import urllib3.exceptions

from ...exit_codes import CouldNotLook
from . import addresses

# What raw reads and requests raise; ValueError is urllib3's for URLs and headers that are none.
FAILURES = (requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError)

_MEANINGS = {
    400: "does not understand the request (400)",
    401: "asks for a user name and a password (401)",
    403: "refuses access (403)",
    404: "does not have it (404)",
    407: "is behind a proxy that asks for a user name and a password (407)",
    408: "gave up waiting for the request (408)",
    410: "does not have it any more (410)",
    416: "does not have the part that was asked for (416)",
    429: "limits the number of requests (429)",
    451: "may not give it out for legal reasons (451)",
    500: "has an internal error (500)",
    502: "gets no proper answer from a server behind it (502)",
    503: "is not available at the moment (503)",
    504: "gets no answer from a server behind it (504)",
    511: "is behind a network that asks for a log-in first (511)",
}
_LATER = {408, 425, 429, 500, 502, 503, 504}  # may answer better when asked again
_CERTIFICATES = (
    "name the certificate authority of your network in SSL_CERT_FILE (a PEM file), or add it to the"
    " system's store; --allow-insecure {host} skips the check"
)
_LOG_IN = "log in to the network with a browser, or set HTTPS_PROXY, and start again"


_Made = Callable[[str, BaseException, str], "HttpError"]  # (URL, exception, reason)


class HttpError(CouldNotLook):
    """A request that failed.

    status: of the answer, None where there was none. again: a later attempt may succeed. slow: each
    attempt takes long, for there is no connection, or nothing comes. wait: seconds by Retry-After.
    """

    def __init__(
        self,
        sentence: str,
        hint: str = "",
        *,
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
        again: bool = False,
        slow: bool = False,
        wait: float | None = None,
    ) -> None:
        super().__init__(sentence, hint)
        self.status = status
        self.headers = headers or {}
        self.again = again
        self.slow = slow
        self.wait = wait


def of_status(
    url: str,
    status: int,
    headers: Mapping[str, str],
    *,
    wait: float | None,
    credentials: str = "",
    said: str = "",
) -> HttpError:
    """The error of an answer. credentials: what to do where it is about them. said: the server's words."""
    host = addresses.host(url)
    meaning = _MEANINGS.get(status, f"answers with the status {status}")
    hint = ""
    if status in (401, 403):
        hint = credentials
    elif status == 407:
        hint = "put them into the URL in HTTPS_PROXY: http://USER:PASSWORD@HOST:PORT"
    elif status == 511:
        hint = _LOG_IN
    elif wait:
        hint = f"{'rate-limited: ' * (status == 429)}retry after {_time(wait)}"
    elif status in _LATER:
        hint = "try again later: this is about that server, or what stands in front of it"
    return HttpError(
        f"{host} {meaning}: {addresses.shown(url)}" + (f" (it says: {said})" if said else ""),
        hint,
        status=status,
        headers=headers,
        again=status in _LATER or 505 <= status < 511,
        wait=wait,
    )


def _time(seconds: float) -> str:
    """ "40 s", "60 minutes"."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"


def of_exception(url: str, error: BaseException) -> HttpError:
    """The error of a request without an answer, or of an answer that broke off."""
    chain = list(_chain(error))
    for kinds, made in _KINDS:
        found = next((inner for inner in chain if isinstance(inner, kinds)), None)
        if found is not None:
            return made(url, found, _reason(chain))
    return HttpError(f"{addresses.host(url)} cut the connection{_reason(chain)}", again=True)


def page_for_file(url: str) -> HttpError:
    """An HTML page where a file should be: a proxy's, or a network's that wants a log-in."""
    host, name = addresses.host(url), addresses.shown(url).rpartition("/")[2]
    return HttpError(
        f"a web page (HTML) came from {host} in the place of {name}: a proxy or a network with"
        " a login page is in between",
        _LOG_IN,
    )


def too_large(url: str, limit: int) -> HttpError:
    """A page that does not end. limit: bytes."""
    return HttpError(f"{addresses.shown(url)} sends a page larger than {limit >> 20} MiB")


def broken_proxy(url: str) -> HttpError:
    """A proxy's address that cannot be taken apart; it may hold a password, so it is not shown."""
    return HttpError(
        f"the proxy that is set for {addresses.host(url)} is not an address",
        f"look at HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and pip's proxy setting; {addresses.QUOTED}",
    )


def _not_verified(url: str, error: BaseException, _: str) -> HttpError:
    host = addresses.host(url)
    reason = getattr(error, "verify_message", "") or "it does not verify"
    return HttpError(
        f"the certificate of {host} cannot be trusted: {reason.rstrip('.')}",
        _CERTIFICATES.format(host=host.partition(":")[0]),
    )


def _proxy(url: str, error: BaseException, reason: str) -> HttpError:
    host = addresses.host(url)
    said = " ".join(str(inner) for inner in _chain(error))
    refused = re.search(r"Tunnel connection failed: (\d{3})", said)
    if refused is None:
        return HttpError(
            f"the proxy that is set for {host} refuses the connection{reason}",
            "look at HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY",
            again=True,
            slow=True,
        )
    return HttpError(
        f"the proxy that is set refuses a connection to {host} (status {refused[1]})",
        "look at HTTPS_PROXY and NO_PROXY; its user name and password belong into the URL",
        # No status: a proxy's 404 says nothing of what the index has.
        again=refused[1].startswith("5"),
    )


def _no_tls(url: str, error: BaseException, _: str) -> HttpError:
    reason = (getattr(error, "reason", "") or "no common ground").replace("_", " ").lower()
    host = addresses.host(url)
    if reason in _PLAIN:
        return HttpError(
            f"TLS with {host} fails: it speaks something else, plain http as a rule",
            f"use a server that speaks https://, or allow plain http by name: --allow-insecure {host}",
            again=True,
            slow=True,
        )
    return HttpError(f"TLS with {host} fails: {reason}", again=True, slow=True)


def _saying(sentence: str, hint: str = "", **how: bool) -> _Made:
    """{host}, {url} and {reason} are filled in."""

    def made(url: str, error: BaseException, reason: str) -> HttpError:
        words = {"host": addresses.host(url), "url": addresses.shown(url), "reason": reason}
        return HttpError(sentence.format(**words), hint, **how)  # type: ignore[arg-type]

    return made


# What OpenSSL says of an answer that is none of TLS: its versions differ.
_PLAIN = ("wrong version number", "http request", "packet length too long", "record layer failure")

_NO_SUCH_PROXY = _saying(
    "{host} cannot be reached through the proxy that is set: envcheck speaks to http:// and https:// proxies",
    "look at HTTPS_PROXY, HTTP_PROXY and ALL_PROXY",
)
_NO_ADDRESS = _saying(
    "{host} has no address in DNS{reason}",
    "without a network, --offline installs from a bundle",
    again=True,
    slow=True,
)
_NO_URL = _saying("{url} is not a URL that can be asked")
_GARBLED = _saying("{host} sends what cannot be unpacked: {url}", again=True)
_REFUSED = _saying("{host} refuses the connection{reason}", again=True, slow=True)
_NOT_CONNECTED = _saying("{host} cannot be connected to", again=True, slow=True)
_SILENT = _saying("{host} does not answer any more", again=True, slow=True)

# The first kind that is anywhere in the chain tells it; the more telling ones come first.
_KINDS: list[tuple[tuple[type[BaseException], ...], _Made]] = [
    ((ssl.SSLCertVerificationError,), _not_verified),
    ((requests.exceptions.InvalidSchema,), _NO_SUCH_PROXY),
    (
        (
            requests.exceptions.InvalidURL,
            requests.exceptions.MissingSchema,
            urllib3.exceptions.LocationValueError,
            UnicodeError,
        ),
        _NO_URL,
    ),
    ((urllib3.exceptions.DecodeError, requests.exceptions.ContentDecodingError), _GARBLED),
    ((urllib3.exceptions.ProxyError,), _proxy),
    ((socket.gaierror,), _NO_ADDRESS),
    ((urllib3.exceptions.NewConnectionError,), _REFUSED),
    ((requests.ConnectTimeout, urllib3.exceptions.ConnectTimeoutError), _NOT_CONNECTED),
    ((requests.ReadTimeout, urllib3.exceptions.ReadTimeoutError, TimeoutError), _SILENT),
    ((ssl.SSLError,), _no_tls),
]


def _reason(chain: list[BaseException]) -> str:
    """The operating system's word for it: urllib3's own hold addresses and objects."""
    system = [e for e in chain if isinstance(e, OSError) and not isinstance(e, ssl.SSLError)]
    words = [e.strerror for e in system if isinstance(e.errno, int)]
    said = next((word for word in reversed(words) if word), "")
    return f" ({said})" if said else ""


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception and all that are inside it or led to it."""
    seen: set[int] = set()
    waiting: list[object] = [error]
    while waiting:
        found = waiting.pop(0)
        if not isinstance(found, BaseException) or id(found) in seen:
            continue
        seen.add(id(found))
        yield found
        waiting += [getattr(found, "reason", None), *found.args]
        waiting += [found.__cause__, found.__context__]
