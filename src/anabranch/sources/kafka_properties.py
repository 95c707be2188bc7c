"""Properties of librdkafka that an address may set: those that tune a client and those that secure its connections.

An address may come from a client of a server, and librdkafka does more than read records: it loads libraries, runs
commands, writes files, and follows other brokers than those of the address. So an address sets what is listed here,
for every user alike.

Invariant: no listed property loads code, runs a command, writes a file, or names another server; of the files that one
names, none is sent anywhere.
"""

from __future__ import annotations

import re

from anabranch.errors import StreamError, closest

PREFIX = "rdkafka."

_CLIENT = """
    client.id client.rack client.dns.lookup message.max.bytes message.copy.max.bytes receive.message.max.bytes
    max.in.flight max.in.flight.requests.per.connection metadata.request.timeout.ms metadata.max.age.ms
    metadata.recovery.strategy metadata.recovery.rebootstrap.trigger.ms topic.metadata.refresh.interval.ms
    topic.metadata.refresh.fast.interval.ms topic.metadata.refresh.fast.cnt topic.metadata.refresh.sparse
    topic.metadata.propagation.max.ms topic.blacklist debug log_level log.connection.close log.thread.name
    socket.timeout.ms socket.blocking.max.ms socket.send.buffer.bytes socket.receive.buffer.bytes
    socket.keepalive.enable socket.nagle.disable socket.max.fails socket.connection.setup.timeout.ms
    broker.address.ttl broker.address.family connections.max.idle.ms enable.sparse.connections
    reconnect.backoff.jitter.ms reconnect.backoff.ms reconnect.backoff.max.ms retry.backoff.ms retry.backoff.max.ms
    statistics.interval.ms api.version.request api.version.request.timeout.ms api.version.fallback.ms
    broker.version.fallback allow.auto.create.topics enable.metrics.push enable.random.seed
"""
_READING = """
    session.timeout.ms heartbeat.interval.ms coordinator.query.interval.ms max.poll.interval.ms
    queued.min.messages queued.max.messages.kbytes fetch.wait.max.ms fetch.queue.backoff.ms fetch.message.max.bytes
    max.partition.fetch.bytes fetch.max.bytes fetch.min.bytes fetch.error.backoff.ms isolation.level check.crcs
"""
_WRITING = """
    acks request.required.acks request.timeout.ms transaction.timeout.ms queue.buffering.max.messages
    queue.buffering.max.kbytes queue.buffering.max.ms linger.ms message.send.max.retries retries
    queue.buffering.backpressure.threshold compression.codec compression.type compression.level batch.num.messages
    batch.size sticky.partitioning.linger.ms message.timeout.ms
"""
_SECURITY = """
    security.protocol ssl.cipher.suites ssl.curves.list ssl.sigalgs.list ssl.endpoint.identification.algorithm
    enable.ssl.certificate.verification ssl.ca.location ssl.ca.pem ssl.certificate.location ssl.certificate.pem
    ssl.key.location ssl.key.pem ssl.key.password ssl.keystore.location ssl.keystore.password ssl.crl.location
    sasl.mechanism sasl.mechanisms sasl.username sasl.password sasl.kerberos.service.name sasl.kerberos.principal
    sasl.kerberos.keytab sasl.kerberos.min.time.before.relogin
"""
ALLOWED = frozenset(f"{_CLIENT}{_READING}{_WRITING}{_SECURITY}".split())

_PEM = ("ssl.key.pem", "ssl.certificate.pem", "ssl.ca.pem")
SECRET = frozenset(("sasl.username", "sasl.password", "ssl.key.password", "ssl.keystore.password", *_PEM))
"""Where a reference to a secret may stand."""

_RUNNING_CODE = ("plugin.library.paths", "ssl.engine.location", "ssl.engine.id", "ssl.providers")
_REASONS = {
    **dict.fromkeys(_RUNNING_CODE, "it loads code into this process"),
    "sasl.kerberos.kinit.cmd": "it runs a command",
    "bootstrap.servers": "the brokers stand in the address",
    "metadata.broker.list": "the brokers stand in the address",
}
_KERBEROS, _PLAIN = "sasl.kerberos.", re.compile(r"[A-Za-z0-9@._/][A-Za-z0-9@._/-]*")


def refuse_property(where: str, name: str, value: str) -> None:
    """Refuse a property that an address cannot set, before any client is made of it."""
    if name in ALLOWED:
        if name.startswith(_KERBEROS) and not _PLAIN.fullmatch(value):
            raise StreamError(
                f"{where}: {PREFIX}{name}=`{value}` becomes part of a command\n"
                "hint: it has letters, digits and @ . / _ - alone"
            )
        return
    near = closest(name, ALLOWED, limit=1)
    hint = f"did you mean {PREFIX}{near[0]}?  " if near and name not in _REASONS else ""
    reason = f": {_REASONS[name]}" if name in _REASONS else ""
    raise StreamError(
        f"{where}: {PREFIX}{name} cannot be set by an address{reason}\n"
        f"hint: {hint}an address sets what tunes a client or secures its connections, such as {PREFIX}linger.ms, "
        f"{PREFIX}security.protocol and {PREFIX}ssl.ca.location"
    )
