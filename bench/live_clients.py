"""Live push: how a server serves many clients at once, one of whom does not read.

A server with a session whose results are made up, 5,000 a second, over REST's WebSocket to 50 clients of another
process; one more client subscribes and never reads. Told are the numbers that a client missed (there must be none), how
long a result was on its way, the server's memory at the beginning and at the end, and what became of the client that
does not read.

    python bench/run.py live_clients              600 seconds
    python bench/live_clients.py --seconds 30     less
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

import psutil

CLIENTS = 50
PER_SECOND = 5_000
SECONDS = 600.0
_TURN = 0.02  # seconds between two batches
_QUERY = "REGISTER QUERY q STARTING AT 2022-10-14T14:45 { MATCH (b) WITHIN PT1M EMIT b.x AS x SNAPSHOT EVERY PT1M }"
_SEQ = b'"seq": '
_LAST = re.compile(rb'"seq": (\d+)')
_PARTS = re.compile(rb'"seq": (\d+),.*?"rows": \[\[([0-9.]+)')


def run(smoke: bool = False, seconds: float | None = None) -> dict[str, Any]:
    if smoke:
        return measure(5, 500, 2.0)
    return measure(CLIENTS, PER_SECOND, SECONDS if seconds is None else seconds)


def measure(clients: int, per_second: int, seconds: float) -> dict[str, Any]:
    from anabranch.server.app import create_app, make_server
    from anabranch.server.hub import Hub
    from anabranch.server.limits import Limits

    limits = Limits(results_kept=20_000, client_queue=10_000)
    with tempfile.TemporaryDirectory() as folder, Hub(folder, "local", limits) as hub:
        session = hub.create("s")
        session.add_stream("rides")
        session.register(_QUERY)
        server = make_server(create_app(hub), "127.0.0.1", 0)
        serving = threading.Thread(target=server.run)
        serving.start()
        while not server.started:
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        try:
            return _measured(hub, port, clients, per_second, seconds)
        finally:
            server.should_exit = True
            serving.join()


def _measured(hub: Any, port: int, clients: int, per_second: int, seconds: float) -> dict[str, Any]:
    log = hub.session("s").log
    command = [sys.executable, __file__, "--listen", str(port), "--clients", str(clients)]
    total = int(per_second * seconds)
    listening = subprocess.Popen([*command, "--until", str(total)], stdout=subprocess.PIPE, text=True)
    stuck = _stuck(port)
    while hub.clients < clients + 1:
        time.sleep(0.05)
    process = psutil.Process()
    memory: list[int] = []
    cut_after: float | None = None
    begun = time.monotonic()
    number = late = 0
    while number < total:
        due = min(total, int((time.monotonic() - begun + _TURN) * per_second))
        log.write(number, [_told(one) for one in range(number, due)])
        number = due
        memory.append(process.memory_info().rss)
        if cut_after is None and hub.clients == clients:
            cut_after = time.monotonic() - begun
        behind = time.monotonic() - begun - number / per_second
        late += behind > _TURN
        time.sleep(max(0.0, -behind - _TURN / 2))
    took = time.monotonic() - begun
    told = json.loads(listening.communicate(timeout=60)[0])
    stuck.close()
    tenth = max(1, len(memory) // 10)
    return {
        "clients": clients,
        "results_per_second": round(number / took),
        "deliveries_per_second": round(number * clients / took),
        "seconds": round(took, 1),
        **told,
        "memory_begin_mb": round(max(memory[:tenth]) / 2**20, 1),
        "memory_end_mb": round(max(memory[-tenth:]) / 2**20, 1),
        "stuck_client_cut_off_after_s": None if cut_after is None else round(cut_after, 1),
    }


def _told(number: int) -> Any:
    from anabranch.formats.answers import AnswerParts, to_typed
    from anabranch.sinks.base import RenderedAnswer

    row = (time.time(), "an item of the auction", number % 97)
    typed = to_typed(AnswerParts("q", number, "snapshot", "", 0, number, ["x", "title", "bid"], [row]))
    return RenderedAnswer("q", number, number, 1, typed=typed)


def _stuck(port: int) -> socket.socket:
    """A client that subscribes by server-sent events and never reads."""
    one = socket.create_connection(("127.0.0.1", port))
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    path = "/api/v1/sessions/s/queries/q/results/live"
    one.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    return one


# --- the clients' process ---------------------------------------------------------------------------------------------


async def _listen(port: int, clients: int, total: int) -> dict[str, Any]:
    found = await asyncio.gather(*(_client(port, total) for _ in range(clients)))
    ways = sorted(one for ways, _, _ in found for one in ways)
    return {
        "lost": sum(lost for _, lost, _ in found),
        "cut_off": sum(cut for _, _, cut in found),
        "delivery_p50_ms": round(1000 * ways[len(ways) // 2], 1),
        "delivery_p99_ms": round(1000 * ways[int(len(ways) * 0.99)], 1),
        "delivery_max_ms": round(1000 * ways[-1], 1),
    }


async def _client(port: int, total: int) -> tuple[list[float], int, bool]:
    """How long messages were on their way (of each the oldest result), numbers that were missed, and if cut off."""
    from websockets.asyncio.client import connect
    from websockets.exceptions import ConnectionClosed

    ways: list[float] = []
    expected = lost = 0
    try:
        async with connect(
            f"ws://127.0.0.1:{port}/api/v1/sessions/s/live", compression=None, max_size=None, ping_interval=None
        ) as one:
            await one.send(json.dumps({"subscribe": "q", "after": -1}))
            while expected < total:
                data = bytes(await one.recv(decode=False))
                first = _PARTS.search(data)
                if first is None:
                    continue
                ways.append(time.time() - float(first[2]))
                last = int(_LAST.findall(data, data.rindex(_SEQ))[0])
                lost += last + 1 - expected - data.count(_SEQ)
                expected = last + 1
    except ConnectionClosed:
        return ways, lost + total - expected, True
    return ways, lost, False


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--rate", type=int, default=PER_SECOND)
    parser.add_argument("--listen", type=int)
    parser.add_argument("--until", type=int, default=0)
    asked = parser.parse_args()
    if asked.listen is not None:
        print(json.dumps(asyncio.run(_listen(asked.listen, asked.clients, asked.until))))
        return
    print(json.dumps(measure(asked.clients, asked.rate, asked.seconds), indent=1))


if __name__ == "__main__":
    main()
