"""Kills a run again and again, and asks whether its output is that of an undisturbed one.

    python tools/kill_loop.py --inputs files,folder,kafka --events 60000 --kills 30 --seed 1

Each round starts the same command on the same checkpoint and, after a drawn time, kills the driver, its Java process or
a Python worker with SIGKILL, or ends the driver with SIGTERM. When the kills are used up the run may end. Then the
output of all sinks (one file, one folder, a topic), the dead letters and what lies around are compared with those of an
undisturbed run. The inputs are files that end; a folder that is followed while files come to it, grow by parts of lines
and get other names, and one is no file of events; and a topic of Kafka, whose brokers are librdkafka's own.

    python tools/kill_loop.py --engine local

does the same with runs in one process, which start faster: more kills in less time.

    python tools/kill_loop.py --trials

asks what becomes of a run whose disk is full, whose checkpoint is damaged, whose sink cannot be written, and whose
queries change: it says so and goes on to the same output when that is mended, or refuses with a reason.

Invariant: it ends only processes that it started, and their children.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))

QUERY = """
REGISTER QUERY busy STARTING AT 2024-01-01T00:00:00Z
{
  MATCH (a)-[r]->(b) WITHIN PT2M
  WITH a, count(r) AS links WHERE links > 3
  EMIT a.name, links ON ENTERING EVERY PT20S
}
REGISTER QUERY count STARTING AT 2024-01-01T00:00:00Z
{
  MATCH (a)-[r]->(b) WITHIN PT1M
  EMIT count(r) AS links, count(DISTINCT a) AS sources SNAPSHOT EVERY PT1M
}
"""
LOCAL = """
import json, signal, sys
asked = []
signal.signal(signal.SIGTERM, lambda number, frame: asked.append(number))
import anabranch
try:
    anabranch.run(**json.loads(sys.argv[1]), engine="local", idle_timeout=None, should_stop=lambda: bool(asked))
except anabranch.AnabranchError as error:
    sys.exit(f"error: {error}")
sys.exit(130 if asked else 0)
"""
BEGIN = 1_704_067_200_000
TOPIC = "edges"
LETTERS = "dead letters"


def lines_of(count: int) -> list[str]:
    """Events with now and then a line that is none, and an event that comes too late; the last one ends all windows."""
    draw = random.Random(7)
    lines = []
    for index in range(count):
        a, b = draw.randrange(400), draw.randrange(400)
        at = BEGIN + index * 1000
        if draw.random() < 0.0005:
            lines.append("this is no event")
        if draw.random() < 0.0005:
            at -= 3_600_000
        nodes = [{"id": one, "labels": ["V"], "properties": {"name": f"v{one}"}} for one in {a: 0, b: 0}]
        lines.append(json.dumps({"at": at, "nodes": nodes, "relationships": [{"type": "R", "from": a, "to": b}]}))
    lines.append(json.dumps({"at": BEGIN + count * 1000 + 600_000, "nodes": []}))
    return lines


class Loop:
    """A command, its input, and what it leaves behind."""

    lateness: str | None = None

    def __init__(self, root: Path, asked: argparse.Namespace) -> None:
        self.root = root
        self.is_local = asked.engine == "local"
        events, batch, seed = asked.events, asked.batch, asked.seed
        self.random = random.Random(seed)
        self.query = root / "query.seraph"
        self.query.write_text(QUERY)
        self.batch = batch
        self.lines = lines_of(events)
        self.last = (events * 1000 + 540_000) // 60_000  # the minute whose answer says that all was answered

    # --- what differs between inputs ----------------------------------------------------------------------------------

    def stream(self, where: Path) -> str:
        return str(self.root / "events")

    def prepare(self, where: Path) -> None:
        folder = self.root / "events"
        if not folder.exists():
            folder.mkdir()
            for number, part in enumerate(self.parts()):
                (folder / f"{number:08}.ndjson").write_text("\n".join(part) + "\n")

    def sinks(self, where: Path) -> list[str]:
        return [str(where / "answers.ndjson"), f"{where / 'parts'}/"]

    @property
    def follow(self) -> bool:
        return False

    def told(self, where: Path) -> dict[str, object]:
        """What a run has put out."""
        return {
            "one file": _bytes(where / "answers.ndjson"),
            "folder": b"".join(file.read_bytes() for file in sorted((where / "parts").glob("*.ndjson"))),
            "stdout": _bytes(where / "stdout.ndjson"),
            LETTERS: _bytes(where / "dead.ndjson"),
        }

    def is_told(self, where: Path) -> bool:
        """Whether a run that does not end has no more to say."""
        return False

    def finish(self, where: Path, process: subprocess.Popen[bytes]) -> int:
        """Let a run come to its end."""
        return process.wait()

    # --- what they share ----------------------------------------------------------------------------------------------

    def parts(self, count: int = 7) -> Iterator[list[str]]:
        size = max(1, len(self.lines) // count)
        for number in range(0, len(self.lines), size):
            yield self.lines[number : number + size]

    def command(self, where: Path) -> list[str]:
        checkpoint, letters, stream = where / "checkpoint", where / "dead.ndjson", self.stream(where)
        if self.is_local:
            said = {"text": self.query.read_text(), "streams": {"edges": stream}, "sinks": self.sinks(where)}
            said |= {"checkpoint": str(checkpoint), "dead_letter": str(letters), "batch_events": self.batch}
            said |= {"follow": self.follow, "lateness": self.lateness}
            return [sys.executable, "-c", LOCAL, json.dumps(said)]
        return [
            *(sys.executable, "-m", "anabranch", "run", str(self.query)),
            *("--stream", f"edges={stream}", *(["--follow"] if self.follow else [])),
            *(["--lateness", self.lateness] if self.lateness else []),
            *("--checkpoint", str(checkpoint), "--idle-timeout", "PT10H"),
            *(part for sink in self.sinks(where) for part in ("--sink", sink)),
            *("--output", "json", "--dead-letter", str(letters)),
            *("--batch-events", str(self.batch), "--master", "local[2]", "--summary", "json"),
        ]

    def start(self, where: Path, before: Callable[[], None] | None = None) -> subprocess.Popen[bytes]:
        if not where.exists():
            where.mkdir()
            self.prepare(where)
        temporary = where / "tmp"
        temporary.mkdir(exist_ok=True)
        environment = {**os.environ, "TMPDIR": str(temporary), "ANABRANCH_ENGINE": "spark"}
        with (where / "stdout.ndjson").open("ab") as out, (where / "stderr.txt").open("ab") as err:
            return subprocess.Popen(self.command(where), stdout=out, stderr=err, env=environment, preexec_fn=before)

    def kill(self, process: subprocess.Popen[bytes]) -> str:
        """Kill the driver, its Java process, or a Python worker of it, or ask the driver to end; gives which."""
        try:
            children = psutil.Process(process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return "gone"
        java = [child for child in children if _is(child, "java")]
        workers = [child for child in children if _is(child, "python")]
        kind = self.random.choice(["driver", "driver", "java", "worker", "worker", "term"])
        with suppress(psutil.NoSuchProcess):
            if kind == "worker" and workers:
                self.random.choice(workers).kill()
                return "worker"
            if kind == "java" and java:
                java[0].kill()
                return "java"
        if kind == "term":
            process.terminate()
            return "term"
        process.kill()
        return "driver"

    def batches(self, where: Path) -> int:
        """How many offsets and commits Spark has written; without Spark, how much was told."""
        if self.is_local:
            return len(_bytes(where / "answers.ndjson")) // 512
        count = 0
        for kind in ("offsets", "commits"):
            with suppress(OSError):
                numbers = [int(name) for name in os.listdir(where / "checkpoint" / "spark" / kind) if name.isdigit()]
                count += max(numbers, default=-1) + 1
        return count


class FolderLoop(Loop):
    """A folder that is followed; the undisturbed run finds all files, the other one sees them come."""

    def stream(self, where: Path) -> str:
        return str(where / "events")

    @property
    def follow(self) -> bool:
        return True

    def prepare(self, where: Path) -> None:
        folder = where / "events"
        folder.mkdir()
        (folder / "00000000.json").write_text('[{"at"')  # never to become a file of events
        os.utime(folder / "00000000.json", (0, 0))
        if where.name == "calm":
            for number, part in enumerate(self.parts(), 1):
                self._fill(folder, number, [part])
        else:
            threading.Thread(target=self._feed, args=(folder,), name="feeder", daemon=True).start()

    def _feed(self, folder: Path) -> None:
        draw = random.Random(11)
        for number, part in enumerate(self.parts(), 1):
            cuts = sorted(draw.sample(range(1, len(part)), 5)) if len(part) > 6 else []
            shares = [part[first:stop] for first, stop in zip([0, *cuts], [*cuts, len(part)], strict=True)]
            self._fill(folder, number, shares, lambda: time.sleep(draw.uniform(0.2, 3.0)))

    def _fill(
        self, folder: Path, number: int, shares: list[list[str]], pause: Callable[[], None] = lambda: None
    ) -> None:
        """Write a file share by share, and each in halves that may end within a line. Two of three get another name
        before their last share, as a log does that is rotated."""
        name = folder / f"{number:08}.ndjson"
        for index, share in enumerate(shares):
            if index and index == len(shares) - 1 and number % 3:
                name = name.rename(folder / f"rotated-{number:08}.ndjson")
            with name.open("a") as file:
                text = "\n".join(share) + "\n"
                file.write(text[: len(text) // 2])
                file.flush()
                pause()
                file.write(text[len(text) // 2 :])
            at = (BEGIN + number * 1000) / 1000
            os.utime(name, (at, at))

    def is_told(self, where: Path) -> bool:
        wanted = time.strftime("%Y-%m-%dT%H:%M:00Z", time.gmtime(BEGIN / 1000 + self.last * 60)).encode()
        return wanted in _bytes(where / "answers.ndjson")[-4000:]

    def finish(self, where: Path, process: subprocess.Popen[bytes]) -> int:
        """It never ends: it is asked to when the last answer is out."""
        while process.poll() is None:
            # One that has not taken its checkpoint yet cannot take away what a killed one has left there.
            taken = f'"pid": {process.pid},'.encode() in _bytes(where / "checkpoint" / "lock")
            if taken and self.is_told(where):
                process.terminate()
                return 0 if process.wait() == 130 else process.returncode
            time.sleep(0.2)
        return process.returncode or 1

    def told(self, where: Path) -> dict[str, object]:
        """Answers of two queries come as batches do: each query's own order is what counts."""
        found = {name: data for name, data in super().told(where).items() if name != LETTERS}
        letters = [json.loads(line) for line in _bytes(where / "dead.ndjson").splitlines()]
        # A file may have been renamed when it was read: its name is no part of the comparison.
        said = [(one["line"], one["reason"].partition(": ")[2] or one["reason"]) for one in letters]
        return {**{name: by_query(data) for name, data in found.items() if isinstance(data, bytes)}, LETTERS: said}


class KafkaLoop(Loop):
    """A topic of three partitions, and a topic for each run's answers."""

    lateness = "PT30S"

    def __init__(self, root: Path, asked: argparse.Namespace, bootstrap: str) -> None:
        super().__init__(root, asked)
        self.bootstrap = bootstrap

    def stream(self, where: Path) -> str:
        return f"kafka://{self.bootstrap}/{TOPIC}?until=end"

    def prepare(self, where: Path) -> None:
        if where.name != "calm":
            return
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.bootstrap})
        for number, line in enumerate(self.lines):
            producer.produce(TOPIC, line.encode(), partition=number % 3)
            if number % 1000 == 0:
                producer.flush()
        producer.flush()

    def sinks(self, where: Path) -> list[str]:
        return [*super().sinks(where), f"kafka://{self.bootstrap}/answers-{where.name}"]

    def told(self, where: Path) -> dict[str, object]:
        return {**super().told(where), "topic": messages(self.bootstrap, f"answers-{where.name}")}


def messages(bootstrap: str, topic: str) -> list[tuple[int, bytes, bytes]]:
    """All messages of a topic: partition, key and value, in their order."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "looker", "enable.auto.commit": "false"})
    found: list[tuple[int, bytes, bytes]] = []
    for number in consumer.list_topics(topic, 10).topics[topic].partitions:
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, number), 10)
        consumer.assign([TopicPartition(topic, number, 0)])
        at = 0
        while at < end:
            message = consumer.poll(10)
            if message is None or message.error():
                raise RuntimeError(f"{topic}[{number}] cannot be read from {at}: {message and message.error()}")
            found.append((number, message.key(), message.value()))
            at = message.offset() + 1
    consumer.close()
    return found


def by_query(data: bytes) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    for line in data.splitlines():
        found.setdefault(json.loads(line)["query"], []).append(line)
    return found


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _is(process: psutil.Process, name: str) -> bool:
    try:
        return name in process.name()
    except psutil.NoSuchProcess:
        return False


def leftovers(where: Path) -> list[str]:
    """Files that a run should have taken away."""
    found = [str(path.relative_to(where)) for path in (where / "tmp").rglob("*")]
    for path in where.rglob("*"):
        hidden = path.name.startswith(".") and not path.name.endswith(".crc")
        if hidden or path.name.endswith((".tmp", ".part")) or path.name == "scratch":
            found.append(str(path.relative_to(where)))
    return found


# --- kills ------------------------------------------------------------------------------------------------------------


def undisturbed(loop: Loop) -> bool:
    calm = loop.root / "calm"
    begun = time.monotonic()
    if loop.finish(calm, loop.start(calm)) != 0:
        print((calm / "stderr.txt").read_text()[-2000:])
        return False
    lines = (calm / "answers.ndjson").read_bytes().count(b"\n")
    print(f"  undisturbed: {lines:,} rows in {time.monotonic() - begun:.0f} s", flush=True)
    return True


def killed(loop: Loop, kills: int, longest: float) -> bool:
    """Whether a run that is killed so often puts out what an undisturbed one does."""
    if not undisturbed(loop):
        return False
    wild = loop.root / "wild"
    begun = time.monotonic()
    counts: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    early = 0
    while sum(counts.values()) < kills and early < 3:
        process = loop.start(wild)
        _wait_for_a_moment(loop, wild, process, longest)
        if process.poll() is not None:
            early += 1
            continue
        while process.poll() is None and sum(counts.values()) < kills:
            kind = loop.kill(process)
            counts[kind] += 1
            if kind != "worker":
                asked = time.monotonic()
                codes[f"{kind} {process.wait()}"] += 1
                if kind == "term" and time.monotonic() - asked > 5:
                    print(f"  SIGTERM took {time.monotonic() - asked:.1f} s", flush=True)
            else:  # the run goes on by itself; the next kill comes on top
                time.sleep(loop.random.uniform(0.1, 5.0))
        if process.poll() is None:
            loop.finish(wild, process)
    for _ in range(3):
        if loop.finish(wild, loop.start(wild)) == 0:
            break
    print(f"  kills: {dict(counts)}, exit codes: {dict(codes)}, {time.monotonic() - begun:.0f} s", flush=True)
    return compared(loop, wild)


def _wait_for_a_moment(loop: Loop, wild: Path, process: subprocess.Popen[bytes], longest: float) -> None:
    """Now and then a moment while Spark starts; mostly one soon after a batch has begun or was committed."""
    if loop.random.random() < 0.2:
        deadline, target = time.monotonic() + loop.random.uniform(0.5, longest), sys.maxsize
    else:
        deadline, target = time.monotonic() + 240, loop.batches(wild) + loop.random.choice([1, 1, 2, 3, 4])
    while process.poll() is None and time.monotonic() < deadline and loop.batches(wild) < target:
        if loop.is_told(wild):
            deadline = min(deadline, time.monotonic() + loop.random.uniform(0.5, longest))
        time.sleep(0.02)
    time.sleep(loop.random.uniform(0, 1.0))


def compared(loop: Loop, wild: Path) -> bool:
    calm, found = loop.told(loop.root / "calm"), loop.told(wild)
    holds = {name: said == found[name] for name, said in calm.items()}
    holds["nothing left behind"] = not leftovers(loop.root / "calm") and not leftovers(wild)
    holds["no traceback"] = "Traceback" not in (wild / "stderr.txt").read_text()
    print("  " + ", ".join(f"{name}: {'equal' if one else 'DIFFERENT'}" for name, one in holds.items()), flush=True)
    if not all(holds.values()):
        print(leftovers(wild)[:20], (wild / "stderr.txt").read_text()[-3000:])
    return all(holds.values())


# --- other trials -----------------------------------------------------------------------------------------------------


def trials(loop: Loop) -> bool:
    """Whether runs that are hindered say so, and go on to the same output, or refuse."""
    if not undisturbed(loop):
        return False
    results = [disk_full(loop), damaged(loop), not_writable(loop), changed_queries(loop)]
    return all(results)


def _says(where: Path, code: int) -> str:
    text = (where / "stderr.txt").read_text()
    if "Traceback" in text:
        return f"exit code {code}, a traceback:\n{text[-3000:]}"
    first = next((line for line in text.splitlines() if line.startswith("error")), "nothing")
    return f"exit code {code}, {first}"


def disk_full(loop: Loop) -> bool:
    """No file may grow beyond half of the answers; then they may."""
    where = loop.root / "full"
    most = (loop.root / "calm" / "answers.ndjson").stat().st_size // 2
    code = loop.start(where, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))).wait()
    print("  full disk:", _says(where, code), flush=True)
    mended = loop.start(where).wait()
    print("  then room:", _says(where, mended), flush=True)
    return code not in (0, 130) and mended == 0 and compared(loop, where)


def _half_way(loop: Loop, where: Path) -> None:
    process = loop.start(where)
    while process.poll() is None and loop.batches(where) < 8:
        time.sleep(0.05)
    process.kill()
    process.wait()


def damaged(loop: Loop) -> bool:
    """The newest of the files that a run goes on from is cut off."""
    holds = True
    for what in (
        ("local.sqlite", "local.sqlite-wal", "ledger")
        if loop.is_local
        else ("spark/offsets", "spark/commits", "spark/state", "ledger")
    ):
        where = loop.root / f"damaged-{what.replace('/', '-')}"
        _half_way(loop, where)
        place = where / "checkpoint" / what
        files = [place] if place.is_file() else [one for one in place.rglob("*") if one.is_file()]
        newest = max((one for one in files if one.name[0] != "."), key=lambda one: one.stat().st_mtime_ns)
        newest.write_bytes(newest.read_bytes()[: newest.stat().st_size // 2])
        code = loop.start(where).wait()
        print(f"  damaged {what}:", _says(where, code), flush=True)
        holds = (compared(loop, where) if code == 0 else code == 1) and holds
    return holds


def not_writable(loop: Loop) -> bool:
    """Where a folder of answers should be, there is a file: at the first start, and half-way."""
    holds = True
    for when in ("first", "half-way"):
        where = loop.root / f"not-writable-{when}"
        if when == "first":
            where.mkdir()
            loop.prepare(where)
        else:
            _half_way(loop, where)
            (where / "parts").rename(where / "moved")
        (where / "parts").write_bytes(b"")
        code = loop.start(where).wait()
        print(f"  a sink that cannot be written, {when}:", _says(where, code), flush=True)
        (where / "parts").unlink()
        if when != "first":
            (where / "moved").rename(where / "parts")
        holds = code not in (0, 130) and loop.start(where).wait() == 0 and compared(loop, where) and holds
    return holds


def changed_queries(loop: Loop) -> bool:
    """A query changes half-way: the other one answers as if nothing had happened."""
    where = loop.root / "changed"
    _half_way(loop, where)
    loop.query.write_text(QUERY.replace("links > 3", "links > 2"))
    try:
        code = loop.start(where).wait()
    finally:
        loop.query.write_text(QUERY)
    print("  changed queries:", _says(where, code), flush=True)
    calm, found = (by_query(_bytes(one / "answers.ndjson")) for one in (loop.root / "calm", where))
    print(f"  the query that stayed: {'equal' if calm['count'] == found['count'] else 'DIFFERENT'}", flush=True)
    return code == 0 and calm["count"] == found["count"]


@contextmanager
def opened(kind: str, root: Path, asked: argparse.Namespace) -> Iterator[Loop]:
    folder = root / kind
    folder.mkdir()
    if kind == "kafka":
        from tests.support.kafka_mock import kafka_mock

        with kafka_mock() as mock:
            for topic, partitions in ((TOPIC, 3), ("answers-calm", 2), ("answers-wild", 2)):
                mock.create(topic, partitions)
            yield KafkaLoop(folder, asked, mock.bootstrap)
    else:
        yield (FolderLoop if kind == "folder" else Loop)(folder, asked)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", default="files,folder,kafka", help="some of files, folder and kafka")
    parser.add_argument("--engine", choices=["spark", "local"], default="spark")
    parser.add_argument("--events", type=int, default=60_000)
    parser.add_argument("--kills", type=int, default=30, help="over all inputs together")
    parser.add_argument("--batch", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=25.0, help="seconds until a kill while Spark starts, at most")
    parser.add_argument("--trials", action="store_true", help="a full disk, a damaged checkpoint and others instead")
    asked = parser.parse_args()
    inputs = ["files"] if asked.trials else asked.inputs.split(",")
    holds = True
    with tempfile.TemporaryDirectory(prefix="kill-loop-") as root:
        for kind in inputs:
            print(kind, flush=True)
            with opened(kind, Path(root), asked) as loop:
                kills = -(-asked.kills // len(inputs))
                holds = (trials(loop) if asked.trials else killed(loop, kills, asked.longest)) and holds
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
