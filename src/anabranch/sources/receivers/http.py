"""Checks of HTTP addresses and answers that need no connection.

Invariant: the secrets of an address (user, password, query) are in no message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from anabranch.sources.receivers.base import PeerRefusal

if TYPE_CHECKING:
    import httpx

ANSWER_WITHIN = 30.0  # seconds between two signs of life while a server answers
_PASSING = (408, 425, 429)  # refusals that only mean "later"


def shown(url: str) -> str:
    """The address without user, password and query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def check_status(response: httpx.Response, url: str) -> None:
    """Refuse everything but success: for good when the fault is ours, for now when it is theirs."""
    if response.is_success:
        return
    text = f"{response.status_code} {response.reason_phrase}".strip()
    if response.is_client_error and response.status_code not in _PASSING:
        raise PeerRefusal(f"{shown(url)}: {text}\nhint: check the address, and what it asks of its users")
    raise ConnectionError(f"answered {text}")
