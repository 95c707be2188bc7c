"""What tests of sources have in common: a spool, and that no thread outlives its test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.push import wait_until

from anabranch.sources.spool import Spool


@pytest.fixture(autouse=True)
def every_thread_ends() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    wait_until(lambda: set(threading.enumerate()) <= before)


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    with Spool(tmp_path / "spool") as opened:
        yield opened
