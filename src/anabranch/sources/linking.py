"""Tables of triples as workers pack them: texts by a compiled table, and streams of links reduced to the needed links.

For a stream of which queries need only links (`planner.link_streams`), the rows of a chunk are reduced to a spanning
forest per slide and kind of links, and to the first and the last row in time, so that the stream's clock moves as with
all rows. Rows that are late by earlier rows of their own chunk are not reduced, and neither is a chunk with few rows or
with little to spare.

Law: chunks that are coded here hold the triples that formats read. All rows of a reduced chunk are in time, or late by
what came before the chunk: its first time says which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from anabranch.delta.batch import Ids, Mask
from anabranch.delta.connectivity.slides import spanning_forests
from anabranch.delta.texts import PADDING, TextTable, plain_iris
from anabranch.formats.arrow_arrays import numbers, text_buffers
from anabranch.formats.rdf.tables import Shaping, TripleColumns
from anabranch.formats.term_columns import TermColumns, TermForm, TermKind, Texts
from anabranch.model.block import Codes
from anabranch.model.mapping import STATEMENT_ROLES
from anabranch.planner.link_streams import LinkStream

_FIRST = 64  # texts that say whether the others are worth a try
_FEWEST_ROWS = 4096
_SPARED = 8  # a chunk is reduced only if at least one row of so many is dropped


def shaping(links: LinkStream | None) -> Shaping:
    """How the rows of a stream are packed."""
    return Shaping(coded, None if links is None else partial(reduced, links))


# --- texts ------------------------------------------------------------------------------------------------------------


def coded(columns: Sequence[Any]) -> tuple[TermColumns, list[Codes]] | None:
    """Columns of texts by one dictionary; None when there is a text that is no plain IRI."""
    parts = [column.chunks if isinstance(column, pa.ChunkedArray) else [column] for column in columns]
    if not all(_begins_plain(chunk) for chunks in parts for chunk in chunks):
        return None
    table = TextTable(room=max(map(len, columns)) // 2)
    found = [[np.empty(0, np.int64), *(_cells(chunk, table) for chunk in chunks)] for chunks in parts]
    # Cells that differ are fewer than cells, so these are looked at, and brackets taken off, at the end.
    data, lengths = table.stored()
    ends = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    where = plain_iris(data, ends)
    if where is None:
        return None
    codes = [np.concatenate(one) for one in found]
    if not np.array_equal(where[0], ends[:-1]):
        bare = TextTable(room=len(table))
        moved = bare.add(data, *where, 0)
        table, codes = bare, [moved[one] for one in codes]
        data, lengths = table.stored()
    texts = Texts(data[: lengths.sum()].tobytes(), lengths.astype(np.uint32))
    return TermColumns(((TermForm(TermKind.IRI), len(table)),), texts), [one.astype(np.int32) for one in codes]


def _begins_plain(chunk: Any) -> bool:
    """Whether the first texts are plain IRIs; where they are not, nothing is lost yet."""
    first = chunk[:_FIRST]
    return not len(first) or plain_iris(*text_buffers(_texts_of(first), PADDING)) is not None


def _cells(chunk: Any, table: TextTable) -> Ids:
    """The ids of an array's texts."""
    if not pa.types.is_dictionary(chunk.type) or len(chunk.dictionary) > len(chunk):
        data, ends = text_buffers(_texts_of(chunk), PADDING)
        return table.add(data, ends[:-1], ends[1:], 0)
    places = numbers(chunk.indices)
    used = np.zeros(len(chunk.dictionary), np.bool_)
    used[places] = True
    data, ends = text_buffers(chunk.dictionary, PADDING)
    ids = np.full(len(used), -1, np.int64)
    ids[used] = table.add(data, ends[:-1][used], ends[1:][used], 0)
    found: Ids = ids[places]
    return found


def _texts_of(chunk: Any) -> Any:
    return chunk.dictionary_decode() if pa.types.is_dictionary(chunk.type) else chunk


# --- links ------------------------------------------------------------------------------------------------------------


def reduced(links: LinkStream, columns: TripleColumns) -> TripleColumns | None:
    """Return the rows that the links of a stream need; None when all rows must stay."""
    times = columns.times
    if len(times) < _FEWEST_ROWS or not _in_time(times, links.lateness):
        return None
    slides = _slides(times, links.borders)
    kept = np.zeros(len(times), np.bool_)
    # The first of the newest has moved the clock; the first of the oldest says whether one is late.
    kept[[int(times.argmin()), int(times.argmax())]] = True
    lefts, rights = columns.subjects.astype(np.int64), columns.objects.astype(np.int64)
    for kinds in links.kinds:
        kept |= spanning_forests(lefts, rights, times, slides, len(columns.terms), _fits(columns, kinds))
    rows = np.flatnonzero(kept)
    if len(rows) * _SPARED > len(times) * (_SPARED - 1):
        return None
    return _narrowed(
        TripleColumns(
            times[rows], columns.subjects[rows], columns.predicates[rows], columns.objects[rows], columns.terms
        )
    )


def _in_time(times: Ids, lateness: int) -> bool:
    """Return whether no row is late by earlier rows of the chunk."""
    return bool((times >= np.maximum.accumulate(times) - lateness).all())


def _slides(times: Ids, borders: Sequence[tuple[int, int]]) -> Ids:
    """Numbers from 0 on that rise at each border and nowhere else."""
    slides = np.zeros(len(times), np.int64)
    for period, place in borders:
        slides += (times - place) // period
    slides -= slides.min()
    return slides


def _fits(columns: TripleColumns, kinds: tuple[str, ...] | None) -> Mask:
    """Which rows are links of these kinds."""
    predicates = _named(columns.terms, columns.predicates)
    if kinds is not None:
        return predicates(kinds)
    are = columns.terms.kinds()
    resources = (are == TermKind.IRI) | (are == TermKind.BLANK)
    found: Mask = resources[columns.objects] & ~predicates([role[0] for role in STATEMENT_ROLES])
    return found


def _named(terms: TermColumns, codes: Codes) -> Callable[[Sequence[str]], Mask]:
    """Which of the codes are those of IRIs with these texts."""
    marked = np.zeros(len(terms), np.bool_)
    marked[codes] = True
    used = np.flatnonzero(marked)
    lazy = terms.lazy()
    texts = [lazy.data[lazy.ends[one] : lazy.ends[one + 1]].tobytes() for one in used.tolist()]

    def which(names: Sequence[str]) -> Mask:
        wanted = {name.encode("utf-8", "surrogatepass") for name in names}
        marks = np.zeros(len(terms), np.bool_)
        marks[used] = [text in wanted for text in texts]
        found: Mask = marks[codes]
        return found

    return which


def _narrowed(columns: TripleColumns) -> TripleColumns:
    """The same rows without most terms that they do not name."""
    named = np.zeros(len(columns.terms), np.bool_)
    for codes in (columns.subjects, columns.predicates, columns.objects):
        named[codes] = True
    places = np.flatnonzero(named)
    if len(places) * 4 > len(named) * 3:
        return columns
    moved = np.cumsum(named, dtype=np.int32) - np.int32(1)
    return TripleColumns(
        columns.times,
        moved[columns.subjects],
        moved[columns.predicates],
        moved[columns.objects],
        columns.terms.picked(places),
    )
