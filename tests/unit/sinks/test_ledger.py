"""Ledgers: what was put is there after a crash, whole, and nothing else is."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.support.machine import Disk, Machine, Stopped

from anabranch.errors import EngineError
from anabranch.sinks.durable import replacing
from anabranch.sinks.ledger import FileLedger, MemoryLedger

KEYS = ["a", "file /tmp/out.ndjson", "", "..", "..json", "ünï/cödé", "x" * 400, "x" * 400 + "y", "\udcff"]


@pytest.fixture(params=["file", "memory"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return FileLedger(tmp_path / "ledger") if request.param == "file" else MemoryLedger()


def test_what_was_never_put_is_none(ledger: Any) -> None:
    assert ledger.get("a") is None


def test_the_last_value_of_each_key_is_kept(ledger: Any) -> None:
    for number, key in enumerate(KEYS):
        ledger.put(key, {"number": 0})
        ledger.put(key, {"number": number, "text": "ä"})
    assert [ledger.get(key)["number"] for key in KEYS] == list(range(len(KEYS)))


def test_a_value_that_is_changed_outside_is_not_changed_inside(ledger: Any) -> None:
    value = {"list": [1]}
    ledger.put("a", value)
    value["list"].append(2)
    ledger.get("a")["list"].append(3)
    assert ledger.get("a") == {"list": [1]}


def test_a_new_ledger_in_the_folder_knows_what_the_old_one_knew(tmp_path: Path) -> None:
    old = FileLedger(tmp_path / "deep" / "ledger")
    for number, key in enumerate(KEYS):
        old.put(key, number)
    new = FileLedger(tmp_path / "deep" / "ledger")
    assert [new.get(key) for key in KEYS] == list(range(len(KEYS)))


def test_a_put_that_is_cut_off_anywhere_leaves_the_old_value_or_the_new(tmp_path: Path) -> None:
    counted = Machine()
    FileLedger(tmp_path / "count").put("a", "old")
    with counted.running():
        FileLedger(tmp_path / "count").put("a", "new")
    seen = set()
    for call in range(1, counted.calls + 1):
        folder = tmp_path / str(call)
        ledger = FileLedger(folder)
        ledger.put("a", "old")
        with Machine(call).running(), pytest.raises(Stopped):
            ledger.put("a", "new")
        again = FileLedger(folder)
        seen.add(again.get("a"))
        assert ledger.get("a") == again.get("a")
        assert [path.name for path in folder.iterdir()] == ["a.json"]
        again.put("a", "newest")
        assert FileLedger(folder).get("a") == "newest"
    assert seen == {"old", "new"}


def test_a_value_that_was_put_outlives_a_loss_of_power(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    with Machine(disk=disk).running():
        FileLedger(tmp_path / "ledger").put("a", "old")
        FileLedger(tmp_path / "ledger").put("a", "new")
    (tmp_path / "unsynced").write_bytes(b"gone")
    disk.lose_power()
    assert disk.lost
    assert FileLedger(tmp_path / "ledger").get("a") == "new"


def test_a_damaged_file_is_refused_with_its_name(tmp_path: Path) -> None:
    FileLedger(tmp_path).put("a", 1)
    for damage in (b"", b'{"key": "a"', b'{"key": "b", "value": 1}', b"[]"):
        (tmp_path / "a.json").write_bytes(damage)
        with pytest.raises(EngineError, match=r"a\.json is damaged.*\nhint: take the checkpoint from a backup"):
            FileLedger(tmp_path).get("a")


def test_a_place_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EngineError, match=r"cannot use .*file/ledger to remember what was written"):
        FileLedger(tmp_path / "file" / "ledger")


def test_a_file_whose_writing_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    with suppress(ValueError), replacing(tmp_path / "a") as file:
        file.write(b"new")
        raise ValueError("half-way")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"old"}
