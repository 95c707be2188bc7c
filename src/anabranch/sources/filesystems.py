"""File systems: resolve a path to a file, or to the files of a directory or of a pattern, locally or in a remote store.

Everything goes through pyarrow's file systems, so that `s3://`, `gs://`, `hdfs://` and `abfs://` are read as local
paths are. A directory is not searched below its own files; a pattern goes as deep as its slashes.

Invariant: a name is the file's path below `root`, and stays the same however many files come or go.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, BinaryIO, Literal, cast

from anabranch.errors import StreamError, closest
from anabranch.model.masking import without_password
from anabranch.sources.reach import ANYWHERE, Reach

REMOTE_SCHEMES = ("s3", "gs", "gcs", "hdfs", "viewfs", "abfs", "abfss")
"""File systems that pyarrow opens by their address."""

_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_WILD, _REMOTE_WILD = re.compile(r"[*?[]"), re.compile(r"[*[]")  # `?` begins the settings of an address


class FileSystemError(StreamError):
    """A failure of the file system, independent of the file's content: a later attempt may succeed."""


class FileGoneError(FileSystemError):
    """A file that existed when it was listed, and does not when it is opened."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file of a place. `inode` and `changed` (when name, rights or content changed last) are 0 in a remote store."""

    name: str
    size: int
    modified: int  # nanoseconds since the epoch
    inode: int = 0
    changed: int = 0
    is_file: bool = True  # and no pipe or device

    @property
    def stamp(self) -> list[int]:
        """Differs when anything about the file may have changed."""
        return [self.size, self.modified, self.changed]


@dataclass(frozen=True, slots=True)
class FoundPath:
    """A path that was looked up: `base` is the part without wildcards, `root` the absolute directory of the names."""

    text: str
    kind: Literal["file", "directory", "pattern"]
    base: str
    root: str
    parts: tuple[str, ...] = ()
    reach: Reach = ANYWHERE

    @property
    def is_local(self) -> bool:
        return not _REMOTE.match(self.base)

    def path(self, name: str) -> str:
        """Return the absolute path of a file in its file system: a worker may have another working directory than the
        planner.
        """
        return _joined(self.root, name)

    def shown(self, name: str) -> str:
        """A file as the user would write it."""
        if self.kind == "file":
            return self.text
        base = self.base.partition("?")[0] if _REMOTE.match(self.base) else self.base
        return name if base == "." else _joined(base, name)


def locate(path: str, reach: Reach = ANYWHERE, *, gone: bool = False) -> FoundPath:
    """Resolve a path.

    A path that leads nowhere is refused with suggestions, or is that of a file that has `gone`.
    """
    refuse_outside(path, reach)
    base, parts = _before_wildcards(path)
    with _explained(path):
        system, root = _open(base)
        whole = _joined(root, *parts)
        info = system.get_file_info(whole)
        if parts and info.type.name == "NotFound":
            if "**" in parts:
                raise StreamError(f"{path}: `**` is not understood\nhint: write one * for each directory")
            return FoundPath(path, "pattern", base, root, parts, reach)
        match info.type.name:
            case "NotFound" if not gone:
                raise StreamError(f"there is no file {path}{_meant(system, path, whole, reach)}")
            case "Directory":
                return FoundPath(path, "directory", path, whole, reach=reach)
            case "File" | "NotFound":
                parent, _, name = whole.rpartition("/")
                return FoundPath(path, "file", base, parent or "/", (name,), reach)
    hint = "send it through stdin: ... | anabranch run --stream name=-"
    raise StreamError(f"{path} is a pipe or a device, which cannot be read twice\nhint: {hint}")


def refuse_outside(path: str, reach: Reach) -> None:
    """Refuse a path outside of the folders that may be read, whether or not there is something."""
    if reach.is_bounded:
        if _REMOTE.match(path):
            reach.refuse_network(without_password(path))
        base, parts = _before_wildcards(path)
        for one in (base, os.path.join(base, *parts)):
            reach.within(one, path)


def entries(place: FoundPath, suffixes: Sequence[str], *, identified: bool = False) -> list[FileEntry]:
    """Return the files of a place, by name. A directory gives those with one of the suffixes, perhaps with .gz.

    `identified` entries hold inode and times, and include pipes and devices.
    """
    with _explained(place.text):
        system, _ = _open(place.base)
        match place.kind:
            case "file":
                found = [(place.parts[0], system.get_file_info(place.path(place.parts[0])))]
            case "directory":
                found = [
                    (info.base_name, info)
                    for info in _children(system, place.root)
                    if info.base_name.removesuffix(".gz").endswith(tuple(suffixes)) and not _hidden(info.base_name)
                ]
            case "pattern":
                found = list(_matching(system, place.root, "", place.parts, place.reach))
    kinds = ("File", "Unknown") if identified else ("File",)
    files = [
        FileEntry(name, info.size or 0, info.mtime_ns or 0, is_file=info.type.name == "File")
        for name, info in found
        if info.type.name in kinds
    ]
    if identified and place.is_local:
        files = [known for file in files if (known := entry_at(place.path(file.name), file.name)) is not None]
    return sorted(files, key=lambda file: file.name)


def entry_at(path: str, name: str) -> FileEntry | None:
    """Return the entry at a local path, under a name; None when there is nothing."""
    try:
        said = os.stat(path)
    except OSError:
        return None
    is_file = stat.S_ISREG(said.st_mode)
    return FileEntry(name, said.st_size, said.st_mtime_ns, said.st_ino, said.st_ctime_ns, is_file)


def files_beside(path: str) -> list[FileEntry]:
    """The files in the directory of a file on this machine, whatever they are called, the newest first."""
    folder = os.path.dirname(path)
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    found = [entry for name in names if (entry := entry_at(os.path.join(folder, name), name)) is not None]
    files = [entry for entry in found if entry.is_file and entry.name != os.path.basename(path)]
    return sorted(files, key=lambda entry: (-entry.modified, entry.name))


@contextmanager
def opened(base: str, path: str, shown: str, reach: Reach = ANYWHERE) -> Iterator[BinaryIO]:
    """A file for reading: the place's base tells the file system; a failure while reading names the file."""
    shown = without_password(shown)
    with _explained(shown):
        try:
            file = _wrapped(reach.open(path, shown)) if reach.is_bounded else _open(base)[0].open_input_file(path)
        except FileNotFoundError:
            raise FileGoneError(
                f"{shown} was there and has gone\nhint: leave files until a run has read them"
            ) from None
        except PermissionError as error:
            raise StreamError(f"{shown}: {_reason(error)}") from None
    try:
        with file:
            yield cast(BinaryIO, file)
    except OSError as error:
        # An error caused by the content has no errno; a remote store's answer has none either.
        own = error.errno or _REMOTE.match(base)
        raise (FileSystemError if own else StreamError)(f"{shown}: {_reason(error)}") from None


def _wrapped(file: BinaryIO) -> Any:
    import pyarrow as pa

    return pa.PythonFile(file, "r")


def _before_wildcards(path: str) -> tuple[str, tuple[str, ...]]:
    """The part of a path before its first component with a wildcard, and the components from there on."""
    remote = _REMOTE.match(path) is not None
    head, mark, settings = path.partition("?") if remote else (path, "", "")
    components = head.replace(os.sep, "/").split("/")
    wild = _REMOTE_WILD if remote else _WILD
    first = next((index for index, component in enumerate(components) if wild.search(component)), None)
    if first is None:
        return path, ()
    base = "." if first == 0 else "/".join(components[:first]) or "/"
    return base + mark + settings, tuple(components[first:])


def _open(base: str) -> tuple[Any, str]:
    """The file system of a path or an address, and the absolute path in it."""
    if _REMOTE.match(base):
        return _remote_system(base)
    return _local_system(), os.path.abspath(base).replace(os.sep, "/")


@lru_cache(maxsize=64)
def _remote_system(address: str) -> tuple[Any, str]:
    from pyarrow import fs

    system, path = fs.FileSystem.from_uri(address)
    return system, path


@lru_cache(maxsize=1)
def _local_system() -> Any:
    from pyarrow import fs

    return fs.LocalFileSystem()


def _children(system: Any, directory: str) -> list[Any]:
    from pyarrow import fs

    return list(system.get_file_info(fs.FileSelector(directory, allow_not_found=True)))


def _matching(
    system: Any, directory: str, prefix: str, parts: tuple[str, ...], reach: Reach
) -> Iterator[tuple[str, Any]]:
    """The files whose components match the parts, one by one. As in a shell, * finds no hidden file."""
    part, rest = parts[0], parts[1:]
    if not reach.contains(directory):
        return  # a link that leads outside
    for info in _children(system, directory):
        name = info.base_name
        if not fnmatchcase(name, part) or (_hidden(name) and not _hidden(part)):
            continue
        if not rest:
            yield prefix + name, info
        elif info.type.name == "Directory":
            yield from _matching(system, _joined(directory, name), f"{prefix}{name}/", rest, reach)


def _hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def _joined(*parts: str) -> str:
    head, *rest = parts
    return "/".join((head.rstrip("/"), *rest)) if rest else head


def _meant(system: Any, path: str, whole: str, reach: Reach) -> str:
    parent, _, name = whole.rstrip("/").rpartition("/")
    if not reach.contains(parent or "/"):
        return ""
    near = closest(name, sorted(info.base_name for info in _children(system, parent or "/")), limit=1)
    return f"\nhint: did you mean {path.rstrip('/').removesuffix(name)}{near[0]}?" if near else ""


@contextmanager
def _explained(shown: str) -> Iterator[None]:
    """A failure of the file system, in the user's words."""
    shown = without_password(shown)
    try:
        yield
    except UnicodeDecodeError as error:
        raise StreamError(f"{shown}: a name that is not UTF-8: {error.object!r}") from None
    except (OSError, ValueError, NotImplementedError) as error:
        raise FileSystemError(f"{shown}: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return next(iter(str(error).splitlines()), type(error).__name__)
