"""A scan of NDJSON bytes: which lines are plain events of a property graph, and the values in them as columns.

Every line is walked once, byte for byte, and checked as JSON. A line with anything that the format treats specially
(other names for a field, typed values, names given twice, times in rare forms, deep nesting) is left to the exact
reader, and so is a line that is malformed. Bytes are known to be UTF-8, apart from lines that were marked before.

Invariant: a REGULAR line is an event that the exact reader accepts, and the columns have its values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from anabranch.delta.batch import Ids
from anabranch.delta.kernels.compiling import Int, compiled, inlined, kernel, unsigned
from anabranch.delta.kernels.json_values import (
    ABSENT,
    INTEGER,
    JSON,
    PROPERTIES,
    REFUSED,
    TEXT,
    any_key_end,
    any_value,
    event_time,
    first_word,
    instant,
    key_end,
    label_list,
    line_end,
    past_colon,
    past_space,
    same_text,
    scalar,
    text_end,
    word_of,
)
from anabranch.delta.kernels.texts import _same
from anabranch.model.graph_block import Bytes

UNKNOWN, REGULAR, EXACT, BLANK = range(4)  # of a line; those marked EXACT are not walked
NODE_FIELDS, RELATIONSHIP_FIELDS = 2, 4  # columns before those of properties: id and labels; id, type and ends
LINES, NODES, RELATIONSHIPS = np.uint64(0), np.uint64(1), np.uint64(2)  # the totals of a scan

_MOST_ELEMENTS = 4096  # of an event: each id is compared with those before it

_ID, _LABELS, _PROPERTIES, _TYPE, _SOURCE, _TARGET = 1, 2, 4, 8, 16, 32  # fields that were seen
_AT, _NODES, _RELATIONSHIPS = 1, 2, 4

_NAME_AT, _NAME_NODES, _NAME_EDGES = word_of("at"), word_of("nodes"), word_of("edges")
_NAME_RELATION, _NAME_SHIPS = word_of("relation"), word_of("ships")
_NAME_ID, _NAME_LABEL, _NAME_LABELS, _NAME_TYPE = (word_of(one) for one in ("id", "label", "labels", "type"))
_NAME_FROM, _NAME_START, _NAME_SOURCE = (word_of(one) for one in ("from", "start", "source"))
_NAME_TO, _NAME_END, _NAME_TARGET = (word_of(one) for one in ("to", "end", "target"))
_NAME_PROPERTI, _NAME_ES = word_of("properti"), word_of("es")
_SMALL = np.uint64(0x2020202020202020)
# The first eight letters of fields of RDF, and of names that are taken for typos of ours.
_MEANT = tuple(
    word_of(one) | _SMALL
    for one in ("triples", "turtle", "graph", "node", "vertices", "vertexes", "relation", "rels", "edge", "links")
)


class AskedKeys(NamedTuple):
    """Property keys as JSON: their first eight bytes, and where they stand in `data`, each with its closing quote.
    `whole` is the number of the key that stands for all properties, or -1."""

    words: npt.NDArray[np.uint64]
    starts: Ids
    stops: Ids
    data: Bytes
    whole: Int


class LineRows(NamedTuple):
    """Lines: where they start and stop, and of regular lines the event time and the numbers of elements."""

    starts: Ids
    stops: Ids
    statuses: Bytes
    times: Ids
    nodes: Ids
    relationships: Ids


class ElementRows(NamedTuple):
    """Values by column and element: the fields of elements, then the asked properties."""

    kinds: npt.NDArray[np.uint8]
    firsts: npt.NDArray[np.int64]
    stops: npt.NDArray[np.int64]


# --- elements ---------------------------------------------------------------------------------------------------------


@inlined
def _put(rows: ElementRows, column: Int, row: Int, kind: Int, first: Int, stop: Int) -> None:
    at, place = unsigned(column), unsigned(row)
    rows.kinds[at, place] = kind
    rows.firsts[at, place] = first
    rows.stops[at, place] = stop


@inlined
def _key_number(data: Bytes, first: Int, stop: Int, asked: AskedKeys) -> Int:
    """Return the number of an asked key, or -1."""
    word, length = first_word(data, first, stop), stop - first
    for number in range(asked.words.size):
        if asked.words[number] == word:
            other = asked.starts[number]
            if asked.stops[number] - other == length and _same(data, first, asked.data, other, length):
                return number
    return -1


@compiled
def _escaped_key_number(data: Bytes, first: Int, asked: AskedKeys) -> Int:
    """Return the same for a key with escapes."""
    for number in range(asked.words.size):
        if same_text(data, first, asked.data, asked.starts[number]):
            return number
    return -1


@inlined
def _properties(data: Bytes, place: Int, asked: AskedKeys, rows: ElementRows, row: Int, column: Int) -> Int:
    """Return the place behind a map of properties, or -1; the asked ones are put into columns from `column` on."""
    if data[unsigned(place)] != 123:
        place, kind, _first, _stop = scalar(data, place)
        return place if kind == ABSENT else -1
    place = past_space(data, place + 1)
    if data[unsigned(place)] == 125:
        return place + 1
    while True:
        first = place + 1
        stop = any_key_end(data, place)
        if stop < 0:
            return -1
        place = past_colon(data, stop)
        if place < 0:
            return -1
        number = _key_number(data, first, stop, asked)
        if number < 0 and text_end(data, first) != stop:
            number = _escaped_key_number(data, first, asked)
        place, kind, first, stop = any_value(data, place)
        if kind == REFUSED:
            return -1
        if number >= 0:  # of a key that comes again, the last value counts
            _put(rows, column + number, row, kind, first, stop)
        place = past_space(data, place)
        if data[unsigned(place)] == 125:
            return place + 1
        if data[unsigned(place)] != 44:
            return -1
        place = past_space(data, place + 1)


@inlined
def _field(word: Int, length: Int, tail: Int, is_node: bool) -> Int:
    """Return which field a name means: 0 for a name that means none, -1 for one that the exact reader looks at."""
    if word == _NAME_ID:
        return _ID
    if word == _NAME_PROPERTI and length == 10 and tail == _NAME_ES:
        return _PROPERTIES
    if is_node:
        if word == _NAME_LABELS:
            return _LABELS
        return -1 if word == _NAME_LABEL else 0
    if word == _NAME_TYPE:
        return _TYPE
    if word in (_NAME_FROM, _NAME_START, _NAME_SOURCE):
        return _SOURCE
    if word in (_NAME_TO, _NAME_END, _NAME_TARGET):
        return _TARGET
    return 0


@inlined
def _element(data: Bytes, place: Int, asked: AskedKeys, rows: ElementRows, row: Int, is_node: bool) -> Int:
    """Return the place behind an element, or -1; its values are put into the columns."""
    fields = NODE_FIELDS if is_node else RELATIONSHIP_FIELDS
    if data[unsigned(place)] != 123:
        return -1
    for column in range(rows.kinds.shape[0]):
        _put(rows, column, row, ABSENT, 0, 0)
    place = past_space(data, place + 1)
    seen = 0
    while True:
        first = place + 1
        stop = key_end(data, place)
        if stop < 0:
            return -1
        place = past_colon(data, stop)
        if place < 0:
            return -1
        length = stop - first
        tail = first_word(data, first + 8, stop) if length > 8 else np.uint64(0)
        field = _field(first_word(data, first, stop), length, tail, is_node)
        if field < 0 or field & seen:
            return -1
        seen |= field
        if field == _PROPERTIES:
            first = place
            place = _properties(data, place, asked, rows, row, fields)
            if place < 0:
                return -1
            if asked.whole >= 0 and data[unsigned(first)] == 123:
                _put(rows, fields + asked.whole, row, PROPERTIES, first, place)
        elif field == _LABELS:
            place, kind, first, stop = label_list(data, place)
            if kind == REFUSED:
                return -1
            _put(rows, 1, row, kind, first, stop)
        else:
            place, kind, first, stop = any_value(data, place)
            if kind == REFUSED:
                return -1
            if field != 0:
                text = kind == TEXT or (kind == JSON and data[unsigned(first)] == 34)
                if field == _TYPE:
                    if not text or first == stop:
                        return -1
                    _put(rows, 1, row, kind, first, stop)
                else:
                    if not text and kind != INTEGER and (kind != ABSENT or is_node or field != _ID):
                        return -1
                    column = 0 if field == _ID else 2 if field == _SOURCE else 3
                    _put(rows, column, row, kind, first, stop)
        place = past_space(data, place)
        if data[unsigned(place)] == 125:
            break
        if data[unsigned(place)] != 44:
            return -1
        place = past_space(data, place + 1)
    wanted = _ID if is_node else _TYPE | _SOURCE | _TARGET
    return place + 1 if seen & wanted == wanted else -1


@inlined
def _is_named_before(data: Bytes, rows: ElementRows, start: Int, row: Int) -> bool:
    """Whether an element from `start` on has the id of this row."""
    kind = rows.kinds[0, unsigned(row)]
    if kind == ABSENT:
        return False
    first, length = rows.firsts[0, unsigned(row)], rows.stops[0, unsigned(row)] - rows.firsts[0, unsigned(row)]
    for other in range(start, row):
        other_kind = rows.kinds[0, unsigned(other)]
        if other_kind == ABSENT:
            continue
        if (kind == INTEGER) != (other_kind == INTEGER):
            continue
        place = rows.firsts[0, unsigned(other)]
        if kind == INTEGER:
            if place == first:
                return True
        elif kind == JSON or other_kind == JSON:
            # The place of JSON is that of the opening quote.
            if same_text(data, place + (other_kind == JSON), data, first + (kind == JSON)):
                return True
        elif rows.stops[0, unsigned(other)] - place == length and _same(data, place, data, first, length):
            return True
    return False


@compiled
def _elements(
    data: Bytes, place: Int, asked: AskedKeys, rows: ElementRows, start: Int, is_node: bool
) -> tuple[Int, Int]:
    """Return the place behind a list of elements, or -1, and their number; their rows begin at `start`."""
    count = np.int64(0)
    if data[unsigned(place)] != 91:
        place, kind, _first, _stop = scalar(data, place)
        return (place if kind == ABSENT else np.int64(-1)), count
    place = past_space(data, place + 1)
    if data[unsigned(place)] == 93:
        return place + 1, count
    while count < _MOST_ELEMENTS:
        place = _element(data, place, asked, rows, start + count, is_node)
        if place < 0 or _is_named_before(data, rows, start, start + count):
            break
        count += 1
        place = past_space(data, place)
        if data[unsigned(place)] == 93:
            return place + 1, count
        if data[unsigned(place)] != 44:
            break
        place = past_space(data, place + 1)
    return np.int64(-1), count


# --- lines ------------------------------------------------------------------------------------------------------------


@kernel
def lines_end(data: Bytes, place: Int, end: Int, count: Int) -> Int:
    """Return the place behind this many lines, or the end."""
    for _ in range(count):
        if place >= end:
            return end
        place = line_end(data, place, end) + 1
    return min(place, end)


@inlined
def _is_own_field(data: Bytes, first: Int, stop: Int) -> bool:
    """Whether the exact reader surely passes over a field of this name: it is neither of RDF nor looks like a typo."""
    if data[unsigned(first)] == 64:
        return False
    for place in range(first, stop):
        if data[unsigned(place)] >= 128:
            return False
    # Small letters; other characters change too, which makes no name that is meant here of one that is not.
    word = first_word(data, first, stop) | _SMALL
    return word not in _MEANT


@inlined
def _event(
    data: Bytes,
    place: Int,
    end: Int,
    asked: AskedKeys,
    nodes: ElementRows,
    relationships: ElementRows,
    row: Int,
    relationship_row: Int,
) -> tuple[Int, Int, Int, Int]:
    """Return the end of the line of an event, -1 where it is for the exact reader, the event's time, and how many nodes
    and relationships it has; their rows begin at these rows."""
    refusal = np.int64(-1)
    time, node_count, relationship_count = np.int64(0), np.int64(0), np.int64(0)
    seen = 0
    place = past_space(data, place + 1)
    while True:
        first = place + 1
        stop = key_end(data, place)
        if stop < 0:
            return refusal, time, node_count, relationship_count
        place = past_colon(data, stop)
        if place < 0:
            return refusal, time, node_count, relationship_count
        word = first_word(data, first, stop)
        field = 0
        if word == _NAME_AT:
            field = _AT
        elif word == _NAME_NODES:
            field = _NODES
        elif word == _NAME_EDGES or (
            word == _NAME_RELATION and stop - first == 13 and first_word(data, first + 8, stop) == _NAME_SHIPS
        ):
            field = _RELATIONSHIPS
        if seen & field:
            return refusal, time, node_count, relationship_count
        seen |= field
        if field == _AT:
            place, time = event_time(data, place)
        elif field == _NODES:
            place, node_count = _elements(data, place, asked, nodes, row, True)
        elif field == _RELATIONSHIPS:
            place, relationship_count = _elements(data, place, asked, relationships, relationship_row, False)
        elif _is_own_field(data, first, stop):
            place, kind, first, stop = any_value(data, place)
            if kind == REFUSED:
                place = refusal
        else:
            place = refusal
        if place < 0:
            return refusal, time, node_count, relationship_count
        place = past_space(data, place)
        byte = data[unsigned(place)]
        place = past_space(data, place + 1)
        if byte == 125:
            if seen & _AT == 0 or (place != end and data[unsigned(place)] != 10):
                place = refusal
            return place, time, node_count, relationship_count
        if byte != 44:
            return refusal, time, node_count, relationship_count


@inlined
def _is_blank(data: Bytes, place: Int, end: Int) -> bool:
    """Whether a line is blank or a comment."""
    place = past_space(data, place)
    byte = data[unsigned(place)]
    if byte == 35:
        return True
    while byte == 32 or byte == 9 or byte == 13 or byte == 11 or byte == 12:
        place += 1
        byte = data[unsigned(place)]
    return bool(place >= end or byte == 10)


@kernel
def scan(
    data: Bytes,
    start: Int,
    end: Int,
    asked: AskedKeys,
    lines: LineRows,
    nodes: ElementRows,
    relationships: ElementRows,
    totals: Ids,
) -> None:
    """Fill the rows of the lines between two places, with the elements of those that are regular. Behind `end` there is
    a line end or zeros, and there are rows for all lines and for as many elements as there are opening braces."""
    line, node_count, relationship_count = np.int64(0), np.int64(0), np.int64(0)
    first = np.int64(start)
    while first < end:
        row = unsigned(line)
        stop = np.int64(-1)
        if lines.statuses[row] != EXACT:
            place = past_space(data, first)
            if data[unsigned(place)] == 123:
                stop, time, own_nodes, own_relationships = _event(
                    data, place, end, asked, nodes, relationships, node_count, relationship_count
                )
                if stop >= 0:
                    lines.statuses[row], lines.times[row] = REGULAR, time
                    lines.nodes[row], lines.relationships[row] = own_nodes, own_relationships
                    node_count += own_nodes
                    relationship_count += own_relationships
            if stop < 0:
                lines.statuses[row] = BLANK if _is_blank(data, first, end) else EXACT
        if stop < 0:
            stop = line_end(data, first, end)
        lines.starts[row], lines.stops[row] = first, stop
        line += 1
        first = stop + 1
    totals[LINES], totals[NODES], totals[RELATIONSHIPS] = line, node_count, relationship_count


# --- single values ----------------------------------------------------------------------------------------------------


@kernel
def scan_maps(
    data: Bytes, starts: Ids, stops: Ids, asked: AskedKeys, rows: ElementRows, statuses: npt.NDArray[np.uint8]
) -> None:
    """Fill the rows of maps of properties, each a text between two places; a text that begins at -1 is absent. A status
    is REGULAR, or EXACT for the exact reader, and then the row is not filled."""
    for row in range(starts.size):
        for column in range(rows.kinds.shape[0]):
            _put(rows, column, row, ABSENT, 0, 0)
        statuses[row] = REGULAR
        if starts[row] < 0:
            continue
        stop = unsigned(stops[row])
        behind = data[stop]
        data[stop] = 0  # no walk goes beyond it
        place = _properties(data, past_space(data, starts[row]), asked, rows, row, 0)
        if place < 0 or past_space(data, place) != stops[row]:
            statuses[row] = EXACT
        data[stop] = behind


@kernel
def scan_instants(data: Bytes, starts: Ids, stops: Ids, times: Ids, statuses: npt.NDArray[np.uint8]) -> None:
    """Fill in the times of texts of the common form, which are REGULAR; others are EXACT."""
    for row in range(starts.size):
        common, micros = instant(data, starts[row], stops[row])
        times[row] = micros
        statuses[row] = REGULAR if common else EXACT
