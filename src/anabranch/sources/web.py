"""Documents from the web, over http and https.

Apart from `graphs`, because it loads encryption, which a run over files does not need.

Invariant: a download ends after 20 seconds of silence, and follows redirects only to http and https.
"""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from email.message import Message
from typing import IO, NamedTuple

from anabranch.errors import StreamError
from anabranch.formats.rdf.graphs import ACCEPT

TIMEOUT = 20.0  # seconds
_WEB = ("http://", "https://")


class WebDocument(NamedTuple):
    """A fetched document, and the address that it came from in the end."""

    data: bytes
    url: str
    content_type: str | None


class _WebOnly(urllib.request.HTTPRedirectHandler):
    """Follows redirects only to the web: a server must not redirect us to our own files."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        if not newurl.lower().startswith(_WEB):
            raise StreamError(f"{req.full_url} leads to {newurl}, which is not on the web")
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]


def fetched(url: str, most_bytes: int, hint: str) -> WebDocument:
    """Return the document, or its first `most_bytes` and one more."""
    with opened(url, "GET", hint) as response:
        try:
            data = response.read(most_bytes + 1)
        except (OSError, http.client.HTTPException) as error:
            raise StreamError(f"{url}: the answer was cut short: {error}") from None
        return WebDocument(data, response.url, response.headers["Content-Type"])


def opened(url: str, method: str, hint: str) -> http.client.HTTPResponse:
    """Return the server's answer; the `hint` follows the reason why there is none."""
    headers = {"Accept": ACCEPT, "User-Agent": "anabranch"}
    try:
        request = urllib.request.Request(url, headers=headers, method=method)
        answer: http.client.HTTPResponse = urllib.request.build_opener(_WebOnly).open(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        raise StreamError(f"{url}: the server says {error.code} {error.reason}\n{hint}") from None
    except urllib.error.URLError as error:
        reason = error.reason if isinstance(error.reason, str) else getattr(error.reason, "strerror", None)
        raise StreamError(f"{url} cannot be reached: {reason or error.reason}\n{hint}") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise StreamError(f"{url} cannot be reached: {error}\n{hint}") from None
    return answer
