"""Static RDF graphs, loaded from a path, `file:`, `http:` or `https:`, plain or gzip.

Invariant: a graph is read whole or refused; a download is limited to 256 MiB.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from pathlib import Path
from typing import NamedTuple

from anabranch.errors import StreamError, closest
from anabranch.formats.rdf.graphs import EXTENSIONS, extension_of, read_triples
from anabranch.model.triples import TripleGraph
from anabranch.sources.reach import ANYWHERE, Reach, file_path

MOST_BYTES = 256 << 20
_GZIP_MAGIC = b"\x1f\x8b"
_WEB = ("http://", "https://")


class _Document(NamedTuple):
    data: bytes
    base: str
    content_type: str | None = None


def is_rdf(name: str) -> bool:
    """Return whether a name leads to an RDF graph: it is on the web, or has a suffix of RDF, unlike a JSON property
    graph.
    """
    return name.lower().startswith(_WEB) or extension_of(file_path(name)) in EXTENSIONS


def load_graph(name: str, base_folder: str | Path = ".", fetch: bool = True, reach: Reach = ANYWHERE) -> TripleGraph:
    """Load the graph behind a path (from `base_folder` on) or an IRI. Without `fetch` nothing is read from the web."""
    if name.lower().startswith(_WEB):
        reach.refuse_network(name)
        if not fetch:
            raise StreamError(f"{name} would be fetched from the web\n{_hint(name)}")
        found = _fetched(name)
    else:
        found = _read(_path(name, base_folder, reach), name, reach)
    document = f"g{zlib.crc32(name.encode('utf-8', 'replace')):08x}"
    data = _unpacked(found.data, name)
    shown = file_path(name)
    return TripleGraph(read_triples(data, shown, content_type=found.content_type, base=found.base, document=document))


def fingerprint(name: str, base_folder: str | Path = ".", reach: Reach = ANYWHERE) -> str:
    """A text that changes when the graph does: a file's time and size, what a server says, else the content's hash."""
    if not name.lower().startswith(_WEB):
        found = _path(name, base_folder, reach).stat()
        return f"{found.st_mtime_ns}-{found.st_size}"
    reach.refuse_network(name)
    from anabranch.sources.web import opened  # loads encryption, which files do not need

    try:
        with opened(name, "HEAD", _hint(name)) as response:
            said = response.headers["ETag"] or response.headers["Last-Modified"]
            if said:
                return str(said)
    except StreamError:
        pass  # a server may know no HEAD
    return hashlib.sha256(_fetched(name).data).hexdigest()


def _hint(url: str) -> str:
    return f"hint: give a file of it: --graph '{url}=FILE'"


def _fetched(name: str) -> _Document:
    from anabranch.sources.web import fetched

    found = fetched(name, MOST_BYTES, _hint(name))
    if len(found.data) > MOST_BYTES:
        raise _too_large(name)
    return _Document(found.data, found.url, found.content_type)


# --- files ------------------------------------------------------------------------------------------------------------


def _path(name: str, base_folder: str | Path, reach: Reach) -> Path:
    path = reach.path(name, base_folder)
    if path.is_dir():
        raise StreamError(f"{name} is a directory\nhint: name one file of RDF")
    if not path.exists():
        near: list[str] = []
        if path.parent.is_dir() and reach.contains(path.parent):
            near = closest(path.name, sorted(one.name for one in path.parent.iterdir()), limit=1)
        raise StreamError(
            f"there is no file {path}" + (f"\nhint: did you mean {path.parent / near[0]}?" if near else "")
        )
    return path


def _read(path: Path, name: str, reach: Reach) -> _Document:
    try:
        with reach.open(path, name) as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise _too_large(str(path))
        return _Document(data, path.resolve().as_uri())
    except OSError as error:
        raise StreamError(f"{path}: {error.strerror or error}") from None


def _unpacked(data: bytes, name: str) -> bytes:
    if not data.startswith(_GZIP_MAGIC):
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            plain = file.read(MOST_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise StreamError(f"{name}: not a whole gzip file: {error}") from None
    if len(plain) > MOST_BYTES:
        raise _too_large(name)
    return plain


def _too_large(name: str) -> StreamError:
    return StreamError(
        f"{name} has more than {MOST_BYTES >> 20} MiB\nhint: static graphs are held in memory: cut it down"
    )
