"""A run's metrics for Prometheus, on a port of the loopback interface.

Invariant: reading the metrics never waits for the run; a port in use is reported before the run begins.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from anabranch.errors import EngineError
from anabranch.runner.outlet import RunProgress

_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(progress: RunProgress) -> str:
    """Return the metrics in Prometheus' text format."""
    return "".join(f"{line}\n" for line in _lines(progress))


def quoted(value: str) -> str:
    """Return a label's value, escaped for its quotes."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _lines(progress: RunProgress) -> Iterator[str]:
    status = progress.status
    counters = {
        "events": "Events that were taken in.",
        "rows": "Rows that were told.",
        "malformed": "Records that could not be read.",
        "late": "Events that came too late and were set aside.",
        "ahead": "Events that were set aside because their clock was too far ahead.",
        "corrected": "Events that came after their answers and corrected them.",
        "instants": "Evaluation instants that have passed, over all queries.",
        "evaluations": "Instants that had to be computed.",
        "skipped": "Rows that were skipped because an expression failed on them.",
    }
    for name, said in counters.items():
        yield f"# HELP anabranch_{name}_total {said}"
        yield f"# TYPE anabranch_{name}_total counter"
        yield f"anabranch_{name}_total {status.get(name, 0)}"
    yield "# HELP anabranch_restarts_total Starts of the query after a failure."
    yield "# TYPE anabranch_restarts_total counter"
    yield f"anabranch_restarts_total {progress.restarts}"
    gauges = {
        "batch": ("The last committed batch.", progress.batch),
        "batch_seconds": ("How long the last batch took.", progress.batch_seconds),
        "state_bytes": ("What Spark's state store holds in memory.", progress.state_bytes),
        "failed_queries": ("Queries that have failed and are not evaluated any more.", status.get("failed", 0)),
        "window_bytes": ("Chunks of events in the state, packed.", status.get("bytes", 0)),
    }
    for name, (said, value) in gauges.items():
        yield f"# HELP anabranch_{name} {said}"
        yield f"# TYPE anabranch_{name} gauge"
        yield f"anabranch_{name} {value}"
    streams = status.get("streams", {})
    for name, said, key, scale in (
        ("watermark_seconds", "Event time before which a stream is complete.", "watermark", 1e6),
        ("newest_event_seconds", "Event time of the newest event.", "newest", 1e6),
        ("answered_seconds", "Event time before which answers are, also where a stream is idle.", "answered", 1e6),
        ("held_events", "Events that windows still need.", "held", 1),
        ("idle", "Whether a stream is idle.", "idle", 1),
        ("ahead_events", "Events that were set aside because their clock was too far ahead.", "ahead", 1),
        ("in_doubt_events", "Events that wait until others confirm their clock.", "in_doubt", 1),
        ("jumps", "How often a stream's time jumped past the widest window.", "jumps", 1),
    ):
        yield f"# HELP anabranch_stream_{name} {said}"
        yield f"# TYPE anabranch_stream_{name} gauge"
        for stream, figures in streams.items():
            value = figures.get(key)
            if value is not None and abs(value) < 2**62:
                yield f'anabranch_stream_{name}{{stream="{quoted(stream)}"}} {value / scale:.6f}'


class MetricsServer:
    """Serves /metrics until it is closed. Port 0 takes a free one; `port` says which."""

    def __init__(self, port: int, progress: Callable[[], RunProgress]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.split("?")[0] not in ("/metrics", "/"):
                    self.send_error(404)
                    return
                body = exposition(progress()).encode()
                self.send_response(200)
                self.send_header("Content-Type", _TYPE)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        except OSError as error:
            raise EngineError(f"--metrics-port {port}: {error.strerror}") from None
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
