"""WebSocket: every message is a record, or several lines of records.

The protocol has no acknowledgement and no memory: messages that a server sends while no client is connected are lost,
unless its `subscribe` message asks for the past.

Invariant: a connection that ends, for whatever reason, is made again until the receiver is stopped.
"""

from __future__ import annotations

import ssl
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from anabranch.errors import StreamError
from anabranch.sources.receivers.base import POLL_STOP, PeerRefusal, Receiver
from anabranch.sources.receivers.framing import MAX_RECORD, message_records

_GROUP = 4 << 20
_CLOSE_WITHIN = 0.5
_PASSING = (408, 425, 429)  # refusals that only mean "later"


class WebSocketReceiver(Receiver):
    """Connects to a ws:// or wss:// address; the text `subscribe` is sent each time it is connected."""

    def __init__(self, url: str, subscribe: str | None = None) -> None:
        self._url = urlsplit(url)
        host = self._url.netloc.rpartition("@")[2]
        super().__init__(f"{self._url.scheme}://{host}{self._url.path}")
        self._subscribe = subscribe
        self._library = _library()

    def _receive(self) -> None:
        self._keep_connected(self._once)

    def _once(self) -> bool:
        exceptions = self._library.exceptions
        try:
            return self._connection()
        except exceptions.ConnectionClosed as error:
            raise ConnectionError(f"the connection was closed: {error}") from None
        except exceptions.InvalidStatus as error:
            status = error.response.status_code
            if 400 <= status < 500 and status not in _PASSING:
                raise PeerRefusal(
                    f"{self.name}: refused with status {status}\nhint: check the address, and what it asks of its users"
                ) from None
            raise ConnectionError(f"answered with status {status}") from None
        except exceptions.InvalidURI as error:
            raise PeerRefusal(f"{self.name}: {error}") from None
        except exceptions.WebSocketException as error:
            raise ConnectionError(str(error) or type(error).__name__) from None
        except EOFError:
            raise ConnectionError("the connection was closed before it was open") from None
        except ssl.SSLCertVerificationError as error:
            raise PeerRefusal(f"{self.name}: the certificate is not trusted: {error.verify_message}") from None

    def _connection(self) -> bool:
        host = self._url.hostname or "localhost"
        port = self._url.port or (443 if self._url.scheme == "wss" else 80)
        dialled = self._dialer.dial(host, port)
        with self._library.sync.client.connect(
            self._url.geturl(), sock=dialled, max_size=MAX_RECORD, close_timeout=_CLOSE_WITHIN
        ) as connection:
            if self._subscribe is not None:
                connection.send(self._subscribe)
            self._accepted(f"{self.name}: connected")
            while not self._stopping.is_set():
                self._take(self._waiting(connection))
        return False

    def _waiting(self, connection: Any) -> list[bytes]:
        """Return the messages that have come by now, after a short wait for the first one."""
        records: list[bytes] = []
        size, wait = 0, POLL_STOP
        while size < _GROUP:
            try:
                message = connection.recv(timeout=wait)
            except TimeoutError:
                break
            except self._library.exceptions.ConnectionClosed:
                if not records:
                    raise
                break  # the next call finds it closed again
            payload = message.encode() if isinstance(message, str) else message
            records += message_records(payload)
            size += len(payload)
            wait = 0
        return records


def _library() -> ModuleType:
    try:
        import websockets.exceptions
        import websockets.sync.client
    except ImportError:
        raise StreamError("reading ws:// needs websockets: pip install 'anabranch[websocket]'") from None
    return websockets
