"""Kills a run again and again, and asks whether its output is that of an undisturbed one.

    python tools/kill_loop.py --events 100000 --kills 30 --seed 1

Each round starts the same command on the same checkpoint and, after a drawn time, kills the driver, its Java process or
a Python worker with SIGKILL. When the kills are used up the run may end. Then the output of both sinks (one file, one
folder), the dead letters and what lies around are compared with the run that nobody disturbed.

Invariant: it ends only processes that it started, and their children.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil

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


class Loop:
    def __init__(self, root: Path, events: int, batch: int, seed: int) -> None:
        self.root = root
        self.random = random.Random(seed)
        self.query = root / "query.seraph"
        self.query.write_text(QUERY)
        self.input = root / "events"
        self.batch = batch
        self._write_events(events)

    def _write_events(self, count: int) -> None:
        """Files of events with now and then a line that is none, and an event that comes too late."""
        import json

        self.input.mkdir()
        draw = random.Random(7)
        lines = []
        for index in range(count):
            a, b = draw.randrange(400), draw.randrange(400)
            at = 1_704_067_200_000 + index * 1000
            if draw.random() < 0.0005:
                lines.append("this is no event")
            if draw.random() < 0.0005:
                at -= 3_600_000
            nodes = [{"id": one, "labels": ["V"], "properties": {"name": f"v{one}"}} for one in {a: 0, b: 0}]
            lines.append(json.dumps({"at": at, "nodes": nodes, "relationships": [{"type": "R", "from": a, "to": b}]}))
        size = max(1, len(lines) // 7)
        for number in range(0, len(lines), size):
            (self.input / f"{number:08}.ndjson").write_text("\n".join(lines[number : number + size]) + "\n")

    def command(self, where: Path) -> list[str]:
        return [
            *(sys.executable, "-m", "anabranch", "run", str(self.query)),
            *("--stream", f"edges={self.input}", "--checkpoint", str(where / "checkpoint")),
            *("--sink", str(where / "answers.ndjson"), "--sink", f"{where / 'parts'}/"),
            *("--output", "json", "--dead-letter", str(where / "dead.ndjson")),
            *("--batch-events", str(self.batch), "--master", "local[2]", "--summary", "json"),
        ]

    def start(self, where: Path) -> subprocess.Popen[bytes]:
        where.mkdir(exist_ok=True)
        environment = {**os.environ, "TMPDIR": str(self.temporary(where)), "ANABRANCH_ENGINE": "spark"}
        with (where / "stdout.ndjson").open("ab") as out, (where / "stderr.txt").open("ab") as err:
            return subprocess.Popen(self.command(where), stdout=out, stderr=err, env=environment)

    @staticmethod
    def temporary(where: Path) -> Path:
        folder = where / "tmp"
        folder.mkdir(exist_ok=True)
        return folder

    def kill(self, process: subprocess.Popen[bytes]) -> str:
        """Kill the driver, its Java process, or a Python worker of it; gives which."""
        try:
            children = psutil.Process(process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return "gone"
        java = [child for child in children if _is(child, "java")]
        workers = [child for child in children if _is(child, "python")]
        kind = self.random.choice(["driver", "driver", "java", "worker", "worker"])
        if kind == "worker" and workers:
            self.random.choice(workers).kill()
            return "worker"
        if kind == "java" and java:
            java[0].kill()
            return "java"
        process.kill()
        return "driver"


def _is(process: psutil.Process, name: str) -> bool:
    try:
        return name in process.name()
    except psutil.NoSuchProcess:
        return False


def parts(where: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted((where / "parts").glob("*.ndjson")))


def leftovers(where: Path) -> list[str]:
    """Files that a run should have taken away."""
    found = [str(path.relative_to(where)) for path in (where / "tmp").rglob("*")]
    for path in where.rglob("*"):
        hidden = path.name.startswith(".") and not path.name.endswith(".crc")
        if hidden or path.name.endswith((".tmp", ".part")) or path.name == "scratch":
            found.append(str(path.relative_to(where)))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--batch", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=25.0, help="seconds until a kill, at most")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kill-loop-") as folder:
        return run(Loop(Path(folder), asked.events, asked.batch, asked.seed), asked.kills, asked.longest)


def run(loop: Loop, kills: int, longest: float) -> int:
    calm, wild = loop.root / "calm", loop.root / "wild"
    begun = time.monotonic()
    if loop.start(calm).wait() != 0:
        print((calm / "stderr.txt").read_text()[-2000:])
        return 1
    seconds = time.monotonic() - begun
    lines = (calm / "answers.ndjson").read_bytes().count(b"\n")
    print(f"undisturbed: {lines:,} rows in {seconds:.0f} s", flush=True)
    counts: Counter[str] = Counter()
    early = 0
    while sum(counts.values()) < kills:
        process = loop.start(wild)
        deadline = time.monotonic() + loop.random.uniform(0.5, longest)
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        if process.poll() is not None:
            early += 1
            if process.returncode != 0 or early > 1:
                break
            continue
        while process.poll() is None and sum(counts.values()) < kills:
            kind = loop.kill(process)
            counts[kind] += 1
            if kind != "worker":
                process.wait()
            else:  # the run goes on by itself; the next kill comes on top
                time.sleep(loop.random.uniform(0.1, 5.0))
        if process.poll() is None:
            process.wait()
    for _ in range(3):
        if loop.start(wild).wait() == 0:
            break
    print("kills:", dict(counts), f"in {time.monotonic() - begun - seconds:.0f} s", flush=True)
    checks = {
        "one file": (calm / "answers.ndjson").read_bytes() == (wild / "answers.ndjson").read_bytes(),
        "folder": parts(calm) == parts(wild) == (calm / "answers.ndjson").read_bytes(),
        "stdout": (calm / "stdout.ndjson").read_bytes() == (wild / "stdout.ndjson").read_bytes(),
        "dead letters": (calm / "dead.ndjson").read_bytes() == (wild / "dead.ndjson").read_bytes(),
        "nothing left behind": not leftovers(calm) and not leftovers(wild),
    }
    for name, holds in checks.items():
        print(f"{name}: {'equal' if holds else 'DIFFERENT'}" if name[0] != "n" else f"{name}: {holds}")
    if not all(checks.values()):
        print(leftovers(wild)[:20], (wild / "stderr.txt").read_text()[-3000:])
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
