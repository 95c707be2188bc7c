"""MQTT: every message of a topic is a record, or several lines of records.

The session is persistent: its client id comes from the spool, so the broker keeps messages that are published while we
are away. A message is acknowledged after the spool has it. If we die in between, the broker sends it again: QoS 1 is
"at least once", so a record may stand twice in the spool but is never missing. QoS 2 is not offered: its handshake
takes a message over before it could be on disk.

Invariant: every acknowledged message is in the spool.
"""

from __future__ import annotations

import select
import ssl
import time
from hashlib import blake2b
from types import ModuleType
from typing import Any

from anabranch.errors import StreamError
from anabranch.sources.receivers.base import POLL_STOP, PeerRefusal, Receiver
from anabranch.sources.receivers.framing import message_records

_GROUP_MESSAGES = 1000
_GROUP_BYTES = 4 << 20
_ANSWER_WITHIN = 10.0
_KEEPALIVE = 30
_LATER = ("Server unavailable", "Server busy")


class MqttReceiver(Receiver):
    """Subscribes to a topic, which may hold the wildcards + and #."""

    def __init__(
        self,
        host: str,
        port: int,
        topic: str,
        qos: int = 1,
        client_id: str | None = None,
        user: str | None = None,
        password: str | None = None,
        tls: bool = False,
    ) -> None:
        super().__init__(f"{'mqtts' if tls else 'mqtt'}://{host}:{port}/{topic}")
        if qos not in (0, 1):
            raise StreamError(
                f"{self.name}: qos={qos}\nhint: qos=1 brings every message at least once, qos=0 what the network brings"
            )
        if not topic:
            raise StreamError(f"{self.name} names no topic\nhint: mqtt://host/topic/with/slashes, # for all")
        self._host, self._port, self._topic, self._qos = host, port, topic, qos
        self._client_id = client_id
        self._user, self._password, self._tls = user, password, tls
        self._library = _library()
        self._waiting: list[Any] = []  # messages that are not in the spool yet
        self._size = 0
        self._failure: StreamError | OSError | None = None
        self._subscribed = False

    @property
    def client_id(self) -> str:
        """The name of our session at the broker: the same for the same spool and subscription."""
        if self._client_id is not None:
            return self._client_id
        place = f"{self.spool.directory.resolve()}\n{self._host}:{self._port}\n{self._topic}\n{self._qos}"
        return f"anabranch-{blake2b(place.encode(), digest_size=6).hexdigest()}"  # 22 characters: all brokers take 23

    def _receive(self) -> None:
        self._keep_connected(self._once)

    def _once(self) -> bool:
        self._waiting, self._size, self._failure, self._subscribed = [], 0, None, False
        # A knock at the door: the library's own connecting cannot be given up, and it leaves its socket open when a
        # certificate is not trusted.
        try:
            self._dialer.dial(self._host, self._port, self._host if self._tls else None).close()
        except ssl.SSLCertVerificationError as error:
            raise PeerRefusal(f"{self.name}: the certificate is not trusted: {error.verify_message}") from None
        client = self._new_client()
        try:
            client.connect(self._host, self._port, keepalive=_KEEPALIVE)
            self._work(client)
        finally:
            client.disconnect()
        return False

    def _work(self, client: Any) -> None:
        deadline = time.monotonic() + _ANSWER_WITHIN
        while not self._stopping.is_set():
            code = client.loop(POLL_STOP)
            while not code and self._more(client):
                code = client.loop(0)
            if self._failure is not None:
                raise self._failure
            self._acknowledge(client)
            if code:
                raise ConnectionError(str(self._library.error_string(code)))
            if not self._subscribed and time.monotonic() > deadline:
                raise TimeoutError(f"no answer within {_ANSWER_WITHIN:.0f} s")

    def _on_message(self, _client: Any, _data: Any, message: Any) -> None:
        self._waiting.append(message)
        self._size += len(message.payload)

    def _more(self, client: Any) -> bool:
        """Whether another message is there that the same sync could cover."""
        connection = client.socket()
        full = len(self._waiting) >= _GROUP_MESSAGES or self._size >= _GROUP_BYTES
        if connection is None or not self._waiting or full:
            return False
        pending = getattr(connection, "pending", None)
        return bool(pending and pending()) or bool(select.select([connection], [], [], 0)[0])

    def _acknowledge(self, client: Any) -> None:
        if not self._waiting:
            return
        self._take(record for message in self._waiting for record in message_records(message.payload))
        for message in self._waiting:
            client.ack(message.mid, message.qos)
        self._waiting, self._size = [], 0

    def _new_client(self) -> Any:
        client = self._library.Client(
            self._library.CallbackAPIVersion.VERSION2,
            client_id=self.client_id,
            clean_session=False,
            protocol=self._library.MQTTv311,
            manual_ack=True,
        )
        if self._user is not None:
            client.username_pw_set(self._user, self._password)
        if self._tls:
            client.tls_set()
        client.on_connect = self._on_connect
        client.on_subscribe = self._on_subscribe
        client.on_message = self._on_message
        return client

    def _on_connect(self, client: Any, _data: Any, flags: Any, reason: Any, _properties: Any) -> None:
        if reason.is_failure:
            if str(reason) in _LATER:
                self._failure = ConnectionError(str(reason))
            else:
                hint = "hint: mqtt://user:password@host/topic; % and @ in a password are written %25 and %40"
                self._failure = PeerRefusal(f"{self.name}: the broker refuses us: {reason}\n{hint}")
        elif flags.session_present and self.spool.cursor == self._subscription():
            # Subscribing again would bring the topic's retained messages again.
            self._at_work()
        else:
            client.subscribe(self._topic, self._qos)

    def _on_subscribe(self, _client: Any, _data: Any, _id: int, reasons: list[Any], _properties: Any) -> None:
        if any(reason.is_failure for reason in reasons):
            self._failure = PeerRefusal(
                f"{self.name}: the broker refuses the topic `{self._topic}`\nhint: may this user read it?"
            )
        else:
            self.spool.cursor = self._subscription()
            self._at_work()

    def _subscription(self) -> dict[str, Any]:
        return {"client_id": self.client_id, "topic": self._topic, "qos": self._qos}

    def _at_work(self) -> None:
        self._subscribed = True
        self._accepted(f"{self.name}: subscribed as {self.client_id}")


def _library() -> ModuleType:
    try:
        import paho.mqtt.client
    except ImportError:
        raise StreamError("reading mqtt:// needs paho-mqtt: pip install 'anabranch[mqtt]'") from None
    return paho.mqtt.client
