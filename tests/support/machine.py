"""A machine that loses its power at a chosen call of the disk, and with it, where wanted, all that was not synced."""

from __future__ import annotations

import os
import pathlib
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest


class Stopped(BaseException):
    """The machine has lost its power."""


class Machine:
    """Counts the calls that change a disk and stops at one of them, half-way; then nothing works any more."""

    def __init__(self, stops_at: int | None = None, disk: Disk | None = None) -> None:
        self.calls = 0
        self.stops_at = stops_at
        self._disk = disk

    @contextmanager
    def running(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for owner, name in (
                (os, "ftruncate"),
                (pathlib.Path, "replace"),
                (pathlib.Path, "unlink"),
                (pathlib.Path, "mkdir"),
            ):
                patch.setattr(owner, name, self._counted(getattr(owner, name)))
            patch.setattr(os, "fsync", self._counted(os.fsync if self._disk is None else self._disk.sync))
            patch.setattr(os, "write", self._write(os.write))
            patch.setattr(os, "pwrite", self._write(os.pwrite))
            yield

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **options: Any) -> Any:
            self._tick()
            return call(*args, **options)

        return counted

    def _write(self, call: Callable[..., int]) -> Callable[..., int]:
        def write(number: int, data: bytes, *at: int) -> int:
            try:
                self._tick()
            except Stopped:
                if self.calls == self.stops_at:
                    call(number, data[: len(data) // 2], *at)
                raise
            return call(number, data, *at)

        return write

    def _tick(self) -> None:
        self.calls += 1
        if self.stops_at is not None and self.calls >= self.stops_at:
            raise Stopped


class Disk:
    """What of a folder's content would outlive a loss of power: names that their folder's sync has seen, with the bytes
    that their file's sync has seen. All there is at the beginning counts as synced."""

    def __init__(self, root: pathlib.Path) -> None:
        self._root = root
        self._files: dict[int, bytes] = {}
        self._folders: dict[int, dict[str, os.stat_result]] = {}
        self._pins: dict[int, int] = {}  # an open file for each inode, so that no other file gets its number
        self.lost = 0  # bytes of files and names of folders that `lose_power` took back
        for path in (root, *root.rglob("*")):
            number = os.open(path, os.O_RDONLY)
            try:
                self.sync(number)
            finally:
                os.close(number)

    def sync(self, number: int) -> None:
        found = os.fstat(number)
        if found.st_ino not in self._pins:
            self._pins[found.st_ino] = os.dup(number)
        if stat.S_ISDIR(found.st_mode):
            names = os.listdir(number)
            self._folders[found.st_ino] = {name: os.stat(name, dir_fd=number) for name in names}
        else:
            self._files[found.st_ino] = pathlib.Path(f"/proc/self/fd/{number}").read_bytes()

    def lose_power(self) -> None:
        """Leave in the folder what was synced, and nothing else."""
        before = self._content()
        kept = self._root.stat().st_ino
        for path in self._root.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        self._bring_back(self._root, kept)
        after = self._content()
        self.lost += sum(len(data) + 1 for path, data in before.items() if after.get(path) != data)
        for pin in self._pins.values():
            os.close(pin)
        self._pins.clear()

    def _bring_back(self, folder: pathlib.Path, inode: int) -> None:
        for name, child in self._folders.get(inode, {}).items():
            path = folder / name
            if stat.S_ISDIR(child.st_mode):
                path.mkdir()
                self._bring_back(path, child.st_ino)
            else:
                path.write_bytes(self._files.get(child.st_ino, b""))  # empty: a name whose bytes were never synced

    def _content(self) -> dict[pathlib.Path, bytes]:
        return {path: path.read_bytes() for path in self._root.rglob("*") if path.is_file()}
