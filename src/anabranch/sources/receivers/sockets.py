"""Lines over TCP: from a server that we connect to, or from any number of clients that connect to us.

TCP has no acknowledgement that a program could give: lines in the spool are safe, lines in transit when a process died
may be lost. A peer is slowed down, never dropped, when the disk is slower than the network.

Invariant: a line enters the spool whole; of a connection that breaks, the unfinished last line is left out.
"""

from __future__ import annotations

import selectors
import socket

from anabranch.errors import StreamError
from anabranch.sources.receivers.base import POLL_STOP, Receiver
from anabranch.sources.receivers.framing import LineBuffer

_READ = 1 << 18


class SocketReceiver(Receiver):
    """Connects to a server of lines, whose closing is the end of the input; with `reconnect` it is no end."""

    def __init__(self, host: str, port: int, reconnect: bool = False) -> None:
        super().__init__(f"socket://{_shown(host, port)}")
        self._host = host
        self._port = port
        self._reconnect = reconnect
        self.finite = not reconnect

    def _receive(self) -> None:
        self._keep_connected(self._once)

    def _once(self) -> bool:
        lines = LineBuffer(self.name)
        with self._dialer.dial(self._host, self._port) as connection:
            self._accepted(f"{self.name}: connected")
            try:
                while data := connection.recv(_READ):
                    self._take(lines.feed(data))
            except OSError as error:
                if self._reconnect or self._stopping.is_set():
                    raise
                raise StreamError(
                    f"{self.name}: the connection broke: {error.strerror or error}\n"
                    "hint: the end of the input would be a closed connection; reconnect=1 connects again"
                ) from None
        if self._stopping.is_set():  # our own doing, not the end of the input
            return False
        self._take(lines.rest())
        if not self._reconnect:
            self.spool.finish()
        return not self._reconnect


class ListeningReceiver(Receiver):
    """Listens, and takes lines from all clients that connect. Port 0 is any free one; `port` says which."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(f"socket://{_shown(host, port)}")
        self.host = host
        self.port = port
        self._server: socket.socket | None = None

    def _prepare(self) -> None:
        try:
            family = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)[0][0]
            self._server = socket.create_server((self.host, self.port), family=family, backlog=128)
        except OSError as error:
            raise StreamError(
                f"cannot listen on {_shown(self.host, self.port)}: {error.strerror or error}\n"
                "hint: the port must be free, the address one of this machine"
            ) from None
        self.port = self._server.getsockname()[1]
        self.name = f"socket://{_shown(self.host, self.port)}"

    def _receive(self) -> None:
        assert self._server is not None
        with self._server as server, selectors.DefaultSelector() as selector:
            server.setblocking(False)
            selector.register(server, selectors.EVENT_READ)
            self._accepted(f"{self.name}: listening")
            try:
                while not self._stopping.is_set():
                    self._round(selector, server)
            finally:
                for key in list(selector.get_map().values()):
                    if isinstance(key.fileobj, socket.socket):
                        key.fileobj.close()

    def _round(self, selector: selectors.BaseSelector, server: socket.socket) -> None:
        """Append the lines that all clients have sent by now to the spool together: one sync, however many clients
        there are.
        """
        records: list[bytes] = []
        for key, _ in selector.select(POLL_STOP):
            client = key.fileobj
            assert isinstance(client, socket.socket)
            if client is server:
                self._welcome_client(selector, server)
                continue
            lines: LineBuffer = key.data
            try:
                data = client.recv(_READ)
                records += lines.feed(data) if data else lines.rest()
            except BlockingIOError:
                continue
            except (OSError, StreamError) as error:  # one client's fault is not the others'
                self._tell(f"{self.name}: a client was dropped: {error}")
                data = b""
            if not data:
                selector.unregister(client)
                client.close()
        if records:
            self._take(records)

    def _welcome_client(self, selector: selectors.BaseSelector, server: socket.socket) -> None:
        try:
            client, address = server.accept()
        except BlockingIOError:
            return
        except OSError as error:  # no more files may be open: those that are go on
            self._tell(f"{self.name}: a client could not be let in: {error.strerror or error}")
            self._pause(POLL_STOP)
            return
        client.setblocking(False)
        selector.register(client, selectors.EVENT_READ, LineBuffer(f"{self.name} from {_shown(*address[:2])}"))


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
