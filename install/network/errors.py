"""What goes wrong over HTTP, each as one sentence that names the host and holds no credentials.

The exceptions of requests and urllib3 carry URLs, and those carry passwords: none of them gets out.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from http.client import responses

import requests
import urllib3.exceptions
from urllib3.util import Retry

from ...exit_codes import CouldNotLook
from . import addresses

# What raw reads and requests raise; ValueError is urllib3's for URLs and headers that are none.
FAILURES = (requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError)

_LATER = {408, 425, 429, 500, 502, 503, 504}  # may answer better when asked again
_LOG_IN = "log in to the network with a browser, or set HTTPS_PROXY, and start again"
_PROXIES = (
    "look at HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY and pip's proxy setting: a proxy is http:// or"
    f" https://, and its user name and password are in its URL ({addresses.QUOTED})"
)


class HttpError(CouldNotLook):
    """A request that failed. again: a later attempt may succeed.

    status, headers, url: of the answer; None and nothing where there was none.
    """

    def __init__(
        self,
        sentence: str,
        hint: str = "",
        *,
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
        url: str = "",
        again: bool = False,
    ) -> None:
        super().__init__(sentence, hint)
        self.status = status
        self.headers = headers or {}
        self.url = url
        self.again = again

    @property
    def wait(self) -> float:
        """Seconds by the Retry-After header, a number or a date (RFC 9110); 0: there is none."""
        text = self.headers.get("Retry-After", "").strip()
        try:
            return float(Retry().parse_retry_after(text)) if text else 0.0
        except (urllib3.exceptions.HTTPError, ValueError, OverflowError):  # "²", 5,000 digits
            return 0.0


_u3, _requests = urllib3.exceptions, requests.exceptions
_TRUST = (
    "check this machine's clock (timedatectl) and that {name} is the name in the certificate; name the"
    " certificate authority of your network in SSL_CERT_FILE (a PEM file), or add it to the system's"
    " store; --allow-insecure {name} skips the check"
)
_INSECURE = "a server that speaks plain http is allowed by name: --allow-insecure {name}"
_OFFLINE = "without a network, --offline installs from a bundle"

# Exceptions, what they mean, and what to do; {host}, {name} (the host without its port) and {url} are filled
# in. The first row that is anywhere in the chain counts; the more specific ones come first.
_KINDS = (
    ((ssl.SSLCertVerificationError,), "the certificate of {host} cannot be trusted", _TRUST),
    (
        (_requests.InvalidProxyURL, _requests.InvalidSchema),  # SOCKS is a schema
        "the proxy that is set for {host} is not an address that can be asked",
        _PROXIES,
    ),
    (
        (_requests.InvalidURL, _requests.MissingSchema, _u3.LocationValueError, UnicodeError),
        "{url} is not a URL that can be asked",
        "",
    ),
    (
        (_u3.DecodeError, _requests.ContentDecodingError),
        "{host} sends what cannot be unpacked",
        "",
    ),
    ((_u3.ProxyError,), "the proxy that is set for {host} refuses the connection", _PROXIES),
    ((socket.gaierror,), "{host} has no address in DNS", _OFFLINE),
    (
        (_u3.NewConnectionError, _u3.ConnectTimeoutError, requests.ConnectTimeout),
        "{host} cannot be connected to",
        "",
    ),
    (
        (requests.ReadTimeout, _u3.ReadTimeoutError, TimeoutError),
        "{host} does not answer any more",
        "",
    ),
    ((ssl.SSLError,), "TLS with {host} fails", _INSECURE),
    ((BaseException,), "{host} cut the connection", ""),
)
_FINAL = {exceptions for exceptions, _, _ in _KINDS[:3]}  # asking again changes nothing


def of_exception(url: str, error: BaseException) -> HttpError:
    """The error of a request without an answer, or of an answer that broke off."""
    chain = list(_chain(error))
    (kind, sentence, hint), found = next(
        (row, inner) for row in _KINDS for inner in chain if isinstance(inner, row[0])
    )
    host = addresses.host(url)
    names = {"host": host, "name": host.partition(":")[0], "url": addresses.shown(url)}
    tunnel = re.search(r"Tunnel connection failed: (\d{3})", " ".join(map(str, chain)))
    why = f"status {tunnel[1]}" if tunnel else _reason(found, chain)
    return HttpError(
        sentence.format(**names) + (f": {why}" if why else ""),
        hint.format(**names),
        again=kind not in _FINAL and not (tunnel and tunnel[1] < "500"),
    )


def of_status(
    url: str, status: int, headers: Mapping[str, str], *, credentials: str = ""
) -> HttpError:
    """The error of an answer. credentials: what to do where it is about them."""
    error = HttpError(
        f"{addresses.host(url)} answers {status} {responses.get(status, '')}".rstrip()
        + f": {addresses.shown(url)}",
        status=status,
        headers=headers,
        url=addresses.shown(url),
        again=status in _LATER or 505 <= status < 511,
    )
    if status in (401, 403):
        error.hint = credentials
    elif status in (407, 511):
        error.hint = _PROXIES if status == 407 else _LOG_IN
    elif error.wait:
        error.hint = f"{'rate-limited: ' * (status == 429)}retry after {error.wait:.0f} s"
    elif error.again:
        error.hint = "try again later: this is about that server, or what stands in front of it"
    return error


def page_for_file(url: str) -> HttpError:
    """An HTML page where a file should be: a proxy's, or a network's that wants a log-in."""
    host, name = addresses.host(url), addresses.shown(url).rpartition("/")[2]
    return HttpError(
        f"a web page (HTML) came from {host} in the place of {name}: a proxy or a network with"
        " a login page is in between",
        _LOG_IN,
    )


def _reason(found: BaseException, chain: list[BaseException]) -> str:
    """OpenSSL's or the operating system's word for it: urllib3's own hold addresses and objects."""
    if isinstance(found, ssl.SSLError):
        word = getattr(found, "verify_message", "") or getattr(found, "reason", "") or ""
        return word.replace("_", " ").rstrip(".")
    system = [e for e in chain if isinstance(e, OSError) and not isinstance(e, ssl.SSLError)]
    words = [e.strerror for e in system if isinstance(e.errno, int)]
    return next((word for word in reversed(words) if word), "")


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
