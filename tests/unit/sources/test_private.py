"""What is kept for one user can be read by that user alone, also if it was made by an earlier version."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from anabranch.runner.folder import RunFolder
from anabranch.server.hub import Hub
from anabranch.sinks.ledger import FileLedger
from anabranch.sources.private import private_file, private_folder, private_umask
from anabranch.sources.spool import Spool


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def open_to_others(folder: Path) -> list[str]:
    found = [folder, *folder.rglob("*")]
    return [str(one.relative_to(folder.parent)) for one in found if one.lstat().st_mode & 0o077]


def test_folders_and_files_are_closed_from_the_first_moment_on(tmp_path: Path) -> None:
    private_folder(tmp_path / "a" / "b")
    private_file(tmp_path / "a" / "b" / "c")
    with private_umask():
        (tmp_path / "a" / "b" / "d").write_text("x")
        (tmp_path / "a" / "b" / "e").mkdir()
    assert open_to_others(tmp_path / "a" / "b") == []
    assert (tmp_path / "a" / "b" / "d").stat().st_mode & 0o777 == 0o600
    (tmp_path / "f").write_text("x")
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o644


def test_a_folder_of_ours_is_closed_and_one_with_other_things_is_left_alone(tmp_path: Path) -> None:
    for name in ("ours", "other"):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "deep" / "x").write_text("x")
    (tmp_path / "ours" / "mark").write_text("")
    (tmp_path / "ours" / "link").symlink_to(tmp_path / "other" / "deep" / "x")
    private_folder(tmp_path / "ours", "mark")
    private_folder(tmp_path / "other", "mark")
    assert open_to_others(tmp_path / "ours") == ["ours/link"]  # a link has no rights of its own
    assert (tmp_path / "other" / "deep" / "x").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "other").stat().st_mode & 0o777 == 0o755


def test_a_server_keeps_everything_for_itself(tmp_path: Path) -> None:
    def work() -> None:
        with Hub(tmp_path / "hub", "local") as hub:
            session = hub.create("s") if not hub.sessions() else hub.session("s")
            if not session.streams():
                session.add_stream("rides")
                session.add_graph("g", b'{"nodes": [], "relationships": []}', "application/json")
            session.push("rides", b'{"at": 1, "nodes": [{"id": 1}]}\nrubbish', None, None)
            assert open_to_others(tmp_path / "hub") == []

    work()
    for one in (tmp_path / "hub", *(tmp_path / "hub").rglob("*")):
        one.chmod(0o755 if one.is_dir() else 0o644)
    work()


def test_a_checkpoint_is_closed_too(tmp_path: Path) -> None:
    folder = RunFolder(str(tmp_path / "run"))
    folder.open()
    folder.ledger().put("a", 1)
    with Spool(folder.spool("s")) as spool:
        spool.append([b"x"])
        spool.cursor = {"a": 1}
    (folder.spark / "offsets").mkdir(parents=True)
    (folder.spark / "offsets" / "0").write_text("of Spark's own making")
    folder.close()
    FileLedger(tmp_path / "run" / "ledger").put("b", 2)
    assert open_to_others(tmp_path / "run") == []
