"""Figures for Prometheus."""

from __future__ import annotations

import socket
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from anabranch.errors import EngineError
from anabranch.runner.metrics import MetricsServer, exposition
from anabranch.runner.outlet import RunProgress

STATUS = {
    "events": 12,
    "rows": 3,
    "bytes": 100,
    "streams": {
        "rides": {"watermark": 1_500_000, "newest": 2_000_000, "held": 4, "closed": False},
        "quiet": {"watermark": -(2**63), "newest": None, "held": 0, "closed": False},
    },
}


def test_the_figures_of_a_run_are_there_by_name_and_stream() -> None:
    lines = exposition(RunProgress(STATUS, batch=7)).splitlines()
    assert "anabranch_events_total 12" in lines
    assert "anabranch_late_total 0" in lines
    assert "anabranch_batch 7" in lines
    assert 'anabranch_stream_watermark_seconds{stream="rides"} 1.500000' in lines
    assert 'anabranch_stream_held_events{stream="rides"} 4.000000' in lines


def test_a_stream_without_a_watermark_has_no_figure_for_it() -> None:
    assert not [
        line for line in exposition(RunProgress(STATUS)).splitlines() if "watermark" in line and "quiet" in line
    ]


def test_a_run_that_has_not_begun_has_figures_of_zero() -> None:
    assert "anabranch_events_total 0" in exposition(RunProgress())


def test_the_server_answers_until_it_is_closed() -> None:
    server = MetricsServer(0, lambda: RunProgress(STATUS))
    try:
        with urlopen(f"http://127.0.0.1:{server.port}/metrics") as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            assert answer.read().decode() == exposition(RunProgress(STATUS))
        with pytest.raises(HTTPError, match="404") as refused:
            urlopen(f"http://127.0.0.1:{server.port}/other")
        refused.value.close()
    finally:
        server.close()


def test_a_port_that_is_taken_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(EngineError, match="--metrics-port"):
            MetricsServer(taken.getsockname()[1], RunProgress)
