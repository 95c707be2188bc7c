"""The receivers of a run: what keeps a peer from answering is told, once."""

from __future__ import annotations

import socket
import time
from pathlib import Path

from anabranch.runner.folder import RunFolder
from anabranch.runner.receiving import Receivers


def test_a_peer_that_does_not_answer_is_told_of_once_for_each_reason(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there
        folder = RunFolder(str(tmp_path / "run"))
        folder.open()
        receivers = Receivers(folder)
        receivers.open("rides", f"socket://127.0.0.1:{taken.getsockname()[1]}", True)
        receivers.start()
        try:
            told: list[str] = []
            deadline = time.monotonic() + 60
            while not told and time.monotonic() < deadline:
                told += receivers.troubles()
                time.sleep(0.01)
            assert told
            assert told[0].startswith("stream rides: ")
            assert told[0].endswith("; trying again")
            assert list(receivers.troubles()) == []
        finally:
            receivers.stop()
            folder.close()
