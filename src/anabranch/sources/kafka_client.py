"""The common part of Kafka's source and sink: settings, clients of a process, a topic's offsets, ranges of its records.

Clients are expensive to open (threads, connections, metadata) and survive neither a pickle nor a fork; so they are kept
in a cache of the process, and only a `Topic` is sent to other processes.

Invariant: `records` gives the records between two offsets, whole and in order, or raises a StreamError; offsets without
a record (transaction markers, aborted and compacted records) never block it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from anabranch.errors import StreamError, closest
from anabranch.sources.address import Address, refuse_unknown
from anabranch.sources.kafka_properties import PREFIX, SECRET, refuse_property
from anabranch.sources.reach import ANYWHERE, Reach
from anabranch.sources.secrets import revealed

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message
    from confluent_kafka.admin import AdminClient

_OPTIONS: Mapping[str, str] = {
    "timeout": "seconds to wait for brokers that do not answer, 60 unless given",
    "user": "the user's name for SASL",
    "password": "the user's password",
    "rdkafka.<property>": "a property of librdkafka that tunes or secures a client, such as rdkafka.ssl.ca.location",
}
_HAS_PORT = re.compile(r":[0-9]+$")
_PORT = 9092
_PATIENCE = 60.0
_RECORDS_PER_CALL = 10_000
_SECONDS_PER_CALL = 0.1
_SECONDS_PER_REQUEST = 10.0
_SECONDS_BETWEEN_TRIES = 0.2
_IDLE_READERS = 4
_LEGAL_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_NO_GROUP = "anabranch"

_DEFAULTS: Mapping[str, str] = {
    # Errors reach the user as exceptions; librdkafka's own lines on stderr come back with rdkafka.log_level=6.
    "log_level": "0",
    "enable.metrics.push": "false",
}
_READER_DEFAULTS: Mapping[str, str] = {
    "isolation.level": "read_committed",
    # A range ends where records are known to be: waiting at the end of the log, and reading far beyond the range, is
    # time and traffic for nothing.
    "fetch.wait.max.ms": "10",
    "fetch.queue.backoff.ms": "5",
    "queued.min.messages": "20000",
    "queued.max.messages.kbytes": "16384",
    "max.poll.interval.ms": "86400000",
}
_READER_FIXED: Mapping[str, str] = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "error",
}
_FIXED = frozenset((*_READER_FIXED, "group.id", "enable.idempotence", "transactional.id"))
_HOPELESS = re.compile(
    r"(CLUSTER|GROUP|TOPIC|TRANSACTIONAL_ID)_AUTHORIZATION_FAILED|(SASL)?_AUTHENTICATION(_FAILED)?"
    r"|UNSUPPORTED_SASL_MECHANISM|_SSL|_FATAL|INVALID_TOPIC_EXCEPTION|TOPIC_EXCEPTION"
)
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic and how to reach it. `settings` may hold passwords and is never shown."""

    bootstrap: str
    name: str
    settings: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    timeout: float = _PATIENCE
    group: str = _NO_GROUP
    reach: Reach = ANYWHERE

    def __str__(self) -> str:
        return f"kafka://{self.bootstrap}/{self.name}"

    def client_settings(self) -> dict[str, Any]:
        """Return the settings of a client, including the secrets that the address refers to."""
        settings = {name: revealed(text, self.reach) if name in SECRET else text for name, text in self.settings}
        return {"bootstrap.servers": self.bootstrap, **_DEFAULTS, **settings}

    def setting(self, name: str, default: str) -> str:
        return dict(self.settings).get(name, default)


def topic_of(
    bootstrap: str, name: str, options: Mapping[str, str], known: Mapping[str, str], reach: Reach = ANYWHERE
) -> Topic:
    """The topic that an address names. `known` are the caller's own options, with what they mean."""
    if "@" in bootstrap:
        hint = "write kafka://host:port/topic?user=...&password=..."
        raise StreamError(
            f"kafka://***@{bootstrap.rpartition('@')[2]}/{name}: a user is no part of a broker\nhint: {hint}"
        )
    where = f"kafka://{bootstrap}/{name}"
    if not bootstrap:
        raise StreamError(f"{where} names no broker\nhint: write it like kafka://localhost:{_PORT}/bikes")
    if not _LEGAL_TOPIC.fullmatch(name):
        problem = f"`{name}` is not the name of a topic" if name else "it names no topic"
        hint = f"write it like kafka://localhost:{_PORT}/bikes, with letters, digits, `.`, `_` and `-`"
        raise StreamError(f"{where}: {problem}\nhint: {hint}")
    own = {option: text for option, text in options.items() if not option.startswith(PREFIX)}
    refuse_unknown(where, own, {**known, **_OPTIONS})
    settings = {option.removeprefix(PREFIX): options[option] for option in options if option not in own}
    for fixed in sorted(_FIXED & settings.keys()):
        raise StreamError(f"{where}: {PREFIX}{fixed} cannot be set, Anabranch relies on it\nhint: leave it out")
    for setting, value in settings.items():
        refuse_property(where, setting, value)
    if "user" in own:
        login = {"sasl.username": own["user"], "sasl.password": own.get("password", "")}
        settings = {"security.protocol": "sasl_ssl", "sasl.mechanism": "PLAIN", **login, **settings}
    elif "password" in own:
        raise StreamError(f"{where}: a password without a user\nhint: add user=<name>")
    group = own.get("group") or _NO_GROUP
    return Topic(bootstrap, name, tuple(sorted(settings.items())), _seconds(where, own.get("timeout")), group, reach)


def bootstrap_of(address: Address) -> str:
    """The brokers of an address: Kafka's port unless given, brackets around IPv6."""
    if address.port is not None or "," not in address.host:
        host = f"[{address.host}]" if ":" in address.host else address.host
        return f"{host}:{address.port or _PORT}" if host else ""
    return ",".join(one if _HAS_PORT.search(one) else f"{one}:{_PORT}" for one in address.host.split(","))


def _seconds(where: str, text: str | None) -> float:
    if text is None:
        return _PATIENCE
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86_400:
        raise StreamError(f"{where}: timeout=`{text}` is no number of seconds between 0 and 86400\nhint: timeout=60")
    return seconds


def _list(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def library(doing: str = "reading") -> Any:
    """Import confluent_kafka, which is an extra."""
    try:
        import confluent_kafka
    except ImportError:
        raise StreamError(f"{doing} kafka:// needs confluent-kafka: pip install 'anabranch[kafka]'") from None
    return confluent_kafka


# --- clients of this process ------------------------------------------------------------------------------------------


class Reader:
    """A consumer and the last problem of its connections."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.problem: KafkaError | None = None
        settings = {**_READER_DEFAULTS, **topic.client_settings(), **_READER_FIXED, "group.id": topic.group}
        self.consumer: Consumer = opened(topic, library().Consumer, {**settings, "error_cb": self._note})

    def _note(self, error: KafkaError) -> None:
        # "All brokers are down" says less than why they are.
        if self.problem is None or error.name() != "_ALL_BROKERS_DOWN":
            self.problem = error

    def trouble(self) -> KafkaError | None:
        """The last problem, after hearing what came in meanwhile."""
        self.consumer.poll(0)
        return self.problem

    def why(self) -> str:
        return f" ({self.problem.str()})" if self.problem is not None else ""


def opened(topic: Topic, kind: Callable[[dict[str, Any]], Answer], settings: dict[str, Any]) -> Answer:
    """Open a client; report librdkafka's objections to its settings."""
    try:
        return kind(settings)
    except (library().KafkaException, ValueError, TypeError) as error:
        raise StreamError(f"{topic}: Kafka's client refuses its settings: {_text(error)}") from None


_readers: dict[tuple[int, Topic], list[Reader]] = {}
_admins: dict[tuple[int, Topic], AdminClient] = {}


def _take(topic: Topic) -> Reader:
    """Return a reader that is not in use: readings that take turns in one process must not share a consumer."""
    idle = _readers.get((os.getpid(), topic))
    try:
        reader = idle.pop() if idle else Reader(topic)
    except IndexError:
        reader = Reader(topic)
    reader.problem = None
    return reader


def _give_back(reader: Reader) -> None:
    idle = _readers.setdefault((os.getpid(), reader.topic), [])
    if len(idle) < _IDLE_READERS:
        reader.consumer.unassign()
        idle.append(reader)
    else:
        reader.consumer.close()


def _admin(topic: Topic) -> AdminClient:
    key = (os.getpid(), topic)
    if key not in _admins:
        library()
        from confluent_kafka.admin import AdminClient

        _admins[key] = opened(topic, AdminClient, topic.client_settings())
        # Requests of an admin client that has no connection yet may wait for seconds; asking for metadata connects. The
        # topic is known to exist here, so the question makes none.
        _admins[key].list_topics(topic.name, timeout=min(topic.timeout, _SECONDS_PER_REQUEST))
    return _admins[key]


def forget(topic: Topic) -> None:
    """Close what this process keeps open for a topic; it is opened again on the next use."""
    _admins.pop((os.getpid(), topic), None)
    for reader in _readers.pop((os.getpid(), topic), ()):
        reader.consumer.close()


# --- a topic's partitions and offsets ---------------------------------------------------------------------------------


def partitions(topic: Topic) -> list[int]:
    """The partitions' numbers. A consumer asks, because its questions never create a topic."""
    reader = _take(topic)

    def ask(seconds: float) -> list[int]:
        told = reader.consumer.list_topics(topic.name, timeout=seconds).topics[topic.name]
        if told.error is None:
            return sorted(told.partitions)
        if told.error.name() in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"):
            raise missing(topic, reader.consumer.list_topics(timeout=seconds).topics)
        raise library().KafkaException(told.error)

    try:
        return patiently(topic, ask, reader.trouble)
    finally:
        _give_back(reader)


def offsets(topic: Topic, numbers: Iterable[int], which: Literal["earliest", "latest"] | int) -> dict[int, int]:
    """Return an offset of each partition.

    It is the first one, the end (without open transactions), or that of the first record since an instant in epoch
    milliseconds, -1 when there is none.
    """
    kafka = library()
    from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

    match which:
        case "earliest" | "latest":
            spec = getattr(OffsetSpec, which)()
        case millis:
            spec = OffsetSpec.for_timestamp(millis)
    wanted = {kafka.TopicPartition(topic.name, number): spec for number in numbers}
    reads_all = topic.setting("isolation.level", "read_committed") == "read_uncommitted"
    isolation = kafka.IsolationLevel.READ_UNCOMMITTED if reads_all else kafka.IsolationLevel.READ_COMMITTED

    def ask(seconds: float) -> dict[int, int]:
        futures = _admin(topic).list_offsets(wanted, isolation_level=isolation, request_timeout=seconds)
        try:
            found = {place.partition: future.result(seconds + 1).offset for place, future in futures.items()}
        except kafka.KafkaException:
            # It may go by what it learned of the topic before partitions were added; a new client asks.
            _admins.pop((os.getpid(), topic), None)
            raise
        # A connection that broke during the request leaves its partitions without an offset and without an error.
        if min(found.values()) < (-1 if isinstance(which, int) else 0):
            raise kafka.KafkaException(
                kafka.KafkaError(kafka.KafkaError._TRANSPORT, "a broker left the request unanswered")
            )
        return found

    return patiently(topic, ask) if wanted else {}


def commit(topic: Topic, reached: Mapping[int, int]) -> None:
    """Commit the group's offsets to the brokers, for tools that show its lag."""
    kafka = library()
    places = [kafka.TopicPartition(topic.name, number, offset) for number, offset in reached.items()]
    request = [kafka.ConsumerGroupTopicPartitions(topic.group, places)]

    def ask(seconds: float) -> None:
        futures = _admin(topic).alter_consumer_group_offsets(request, request_timeout=seconds)
        for future in futures.values():
            for place in future.result(seconds + 1).topic_partitions:
                if place.error is not None:
                    raise kafka.KafkaException(place.error)

    patiently(topic, ask)


def patiently(
    topic: Topic, ask: Callable[[float], Answer], problem: Callable[[], KafkaError | None] = lambda: None
) -> Answer:
    """Return the answer to a request, which is repeated until the topic's deadline."""
    kafka = library()
    deadline = time.monotonic() + topic.timeout
    while True:
        left = deadline - time.monotonic()
        try:
            return ask(min(max(left, _SECONDS_BETWEEN_TRIES), _SECONDS_PER_REQUEST))
        except (kafka.KafkaException, TimeoutError) as error:
            known = problem()
            hopeless = any(_HOPELESS.fullmatch(one.name()) for one in (_error(error), known) if one is not None)
            if hopeless or time.monotonic() + _SECONDS_BETWEEN_TRIES >= deadline:
                why = known.str() if known is not None else _text(error)
                raise unanswered(topic, why, hopeless) from None
        time.sleep(_SECONDS_BETWEEN_TRIES)


# --- records ----------------------------------------------------------------------------------------------------------


def records(topic: Topic, partition: int, start: int, end: int) -> Iterator[list[Message]]:
    """The records of a range, in lists as they come over the wire. Waits for silent brokers until the deadline."""
    kafka = library()
    reader = _take(topic)
    usable = False
    try:
        reader.consumer.assign([kafka.TopicPartition(topic.name, partition, start)])
        at = start
        deadline = time.monotonic() + topic.timeout
        while at < end:
            # Never more than the range can hold: `consume` returns as soon as it has that many.
            messages = reader.consumer.consume(min(_RECORDS_PER_CALL, end - at), _SECONDS_PER_CALL)
            found = [message for message in messages if message.error() is None]
            reached = _offset(found[-1]) + 1 if found else at
            if len(found) < len(messages):
                for message in messages:
                    reached = max(reached, _heed(reader, message, partition, start, end))
            if found and _offset(found[-1]) >= end:
                found = [message for message in found if _offset(message) < end]
            if found:
                yield found
            if reached > at:
                at = reached
                deadline = time.monotonic() + topic.timeout
            elif time.monotonic() > deadline:
                place = f"{topic.name}[{partition}]@{at}"
                raise unanswered(topic, f"no record at {place} of {start} to {end}{reader.why()}", False)
        usable = True
    except GeneratorExit:
        usable = True
        raise
    finally:
        if usable:
            _give_back(reader)
        else:
            reader.consumer.close()


def _heed(reader: Reader, message: Message, partition: int, start: int, end: int) -> int:
    """Return how far the range is read according to a message that is no record; 0 for a temporary problem."""
    error = message.error()
    if error is None:
        return 0
    if error.name() == "_PARTITION_EOF":
        return _offset(message)
    if error.name() == "_AUTO_OFFSET_RESET":
        raise lost(reader.topic, partition, start, end, error.str())
    if _HOPELESS.fullmatch(error.name()):
        raise unanswered(reader.topic, error.str(), True)
    reader.problem = error
    return 0


def _offset(message: Message) -> int:
    offset = message.offset()
    return -1 if offset is None else offset


# --- failures ---------------------------------------------------------------------------------------------------------


def lost(topic: Topic, partition: int, start: int, end: int, why: str) -> StreamError:
    return StreamError(
        f"{topic}: offsets {start} to {end} of partition {partition} are gone ({why}): retention removed them "
        f"before they were read, or the topic was made anew\n"
        f"hint: begin a new run with from=earliest (what is left), from=latest or from=<instant>"
    )


def unanswered(topic: Topic, why: str, hopeless: bool) -> StreamError:
    if hopeless:
        return StreamError(f"{topic}: the broker refuses: {why}\nhint: look at user, password and rdkafka.<property>")
    return StreamError(
        f"{topic}: no answer from {topic.bootstrap} within {topic.timeout:g} s: {why}\n"
        f"hint: is it running, and is this its address? timeout=<seconds> waits longer"
    )


def missing(topic: Topic, existing: Iterable[str]) -> StreamError:
    names = sorted(name for name in existing if not name.startswith("__"))
    similar = closest(topic.name, names)
    if similar:
        hint = "did you mean " + " or ".join(f"`{name}`" for name in similar) + "?"
    elif names:
        more = f" and {len(names) - 10} more" if len(names) > 10 else ""
        hint = f"there are {_list(names[:10])}{more}"
    else:
        hint = "the cluster has no topics yet"
    return StreamError(f"{topic}: there is no topic `{topic.name}`\nhint: {hint}")


def _error(error: Exception) -> KafkaError | None:
    first = error.args[0] if error.args else None
    return first if isinstance(first, library().KafkaError) else None


def _text(error: Exception) -> str:
    known = _error(error)
    return known.str() if known is not None else str(error) or "the request timed out"
